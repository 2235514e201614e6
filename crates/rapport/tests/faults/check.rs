//! What must hold after every fault, read from the database itself.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::event::Kind;
use rapport_domain::id::CompanyId;
use rapport_store::delivery_list::{self, Bounds, Listed};
use rapport_store::{Config, Database, Error, Snapshot, Store};
use rapport_testkit::{Receiver, raw};
use serde_json::Value;

use crate::load::{EVENTS_PER_BATCH, Written};
use crate::program::Place;

/// All deliveries must be done this long after the last fault.
pub const DONE_WITHIN: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// More requests than any run makes.
const ANY_NUMBER: usize = 1 << 40;
const EVERYTHING: Bounds = Bounds { items: usize::MAX, rows: usize::MAX };

/// The problems that were found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Acknowledged requests that are missing, in whole or in part.
    pub lost: usize,
    pub problems: Vec<String>,
}

impl Findings {
    pub fn lose(&mut self, requests: usize, how: String) {
        self.lost += requests;
        self.problems.push(how);
    }

    pub fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(otherwise());
        }
    }
}

/// Whether the clients have ended, or may each have one more request in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    Ended,
    CutOff,
    /// They went on after what was noted, any number of times.
    WentOn,
}

/// Nothing acknowledged is lost or applied twice; an account moved ⇔ a history row ⇔ an event ⇔ a delivery.
pub fn verify(place: &Place, written: &[Written], clients: Clients) -> Findings {
    let store = open(place);
    let mut findings = Findings::default();
    let mut deliveries: HashMap<String, usize> = HashMap::new();
    for listed in deliveries_in(&store, Filter::default()) {
        *deliveries.entry(listed.delivery.event.to_string()).or_default() += 1;
    }
    let more = match clients {
        Clients::Ended => 0,
        Clients::CutOff => 1,
        Clients::WentOn => ANY_NUMBER,
    };
    for Written { imported_id, upserts, events, surprises } in written {
        findings.problems.extend(surprises.iter().cloned());
        let key = imported_id.clone();
        let found = look(&store, move |snapshot| Kept::read(snapshot, &key));
        let moves = found.history;
        if moves < *upserts {
            let lost = upserts - moves;
            findings.lose(lost, format!("{imported_id}: {moves} of {upserts} upserts are in its history"));
        }
        findings.expect(moves <= upserts + more, || {
            format!("{imported_id}: {upserts} upserts, and {moves} entries in its history")
        });
        let state = moves.checked_sub(1).map(|last| format!(r#"{{"n":{last}}}"#));
        findings.expect(found.custom_fields == state, || {
            format!(
                "{imported_id}: {moves} entries in its history, and its fields are {:?}",
                found.custom_fields
            )
        });
        let missing = (events - found.counted).max(0) / EVENTS_PER_BATCH;
        if found.counted < *events {
            let lost = usize::try_from(missing).unwrap().max(1);
            findings.lose(
                lost,
                format!("{imported_id}: {} of {events} activity events are counted", found.counted),
            );
        }
        let limit = events + EVENTS_PER_BATCH * i64::try_from(more).unwrap();
        findings.expect(found.counted <= limit && found.counted % EVENTS_PER_BATCH == 0, || {
            format!(
                "{imported_id}: {events} activity events were acknowledged, and {} counted",
                found.counted
            )
        });
        let created = found.events.iter().filter(|(_, kind)| *kind == Kind::AccountCreated).count();
        findings.expect(found.events.len() == moves && created == moves.min(1), || {
            format!("{imported_id}: {moves} entries in its history, and {} events", found.events.len())
        });
        for (event, _) in &found.events {
            let times = deliveries.remove(event).unwrap_or_default();
            findings.expect(times == 1, || format!("{imported_id}: event {event} has {times} deliveries"));
        }
    }
    findings.expect(deliveries.is_empty(), || format!("{} deliveries have no event", deliveries.len()));
    findings
}

/// What the database holds about a client's account.
#[derive(Default)]
struct Kept {
    custom_fields: Option<String>,
    history: usize,
    counted: i64,
    events: Vec<(String, Kind)>,
}

impl Kept {
    fn read(snapshot: &mut Snapshot, imported_id: &str) -> Result<Self, Error> {
        let Some((_, id)) = rapport_store::account::ids_by_imported_id(snapshot, &[imported_id])?.pop()
        else {
            return Ok(Self::default());
        };
        let account = rapport_store::account::get(snapshot, id)?;
        let history = rapport_store::history::of_account(snapshot, id, None, i64::from(i32::MAX))?;
        let features = rapport_store::activity::features(snapshot, id)?;
        let events = rapport_store::event::of_account(snapshot, id)?;
        Ok(Self {
            custom_fields: account.map(|account| account.custom_fields.as_json().to_owned()),
            history: history.items.len(),
            counted: features.first().map_or(0, |feature| feature.count),
            events: events.into_iter().map(|event| (event.id.to_string(), event.kind)).collect(),
        })
    }
}

/// The events that reached the receiver, in order.
pub fn received(receiver: &Receiver) -> Vec<String> {
    receiver.requests().iter().map(|request| id_of(&request.body)).collect()
}

/// The id of the event in a payload.
pub fn id_of(payload: &[u8]) -> String {
    serde_json::from_slice::<Value>(payload).unwrap()["id"].as_str().unwrap().to_owned()
}

/// Waits until no delivery is open; returns how many are if it has waited long enough. The service may be running, so
/// no store is opened next to it.
pub fn wait_until_done(place: &Place) -> usize {
    let deadline = Instant::now() + DONE_WITHIN;
    loop {
        let open = raw::try_ask(&place.database(), "SELECT count(*) FROM delivery WHERE state = 0");
        match open.as_deref() {
            Ok("0") => return 0,
            found if Instant::now() > deadline => return found.unwrap().parse().unwrap(),
            _ => thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Every event reached the receiver.
pub fn verify_arrivals(place: &Place, receiver: &Receiver, findings: &mut Findings) {
    let arrived: HashSet<String> = received(receiver).into_iter().collect();
    let all = deliveries_in(&open(place), Filter::default());
    let missing = all.iter().filter(|listed| !arrived.contains(&listed.delivery.event.to_string())).count();
    findings.expect(missing == 0, || format!("{missing} events never reached their receiver"));
}

/// Why events may reach their receiver more than once: how many times an event's outcome was not on record when a node
/// that knew it died.
#[derive(Default)]
pub struct Unrecorded(HashMap<String, usize>);

impl Unrecorded {
    /// Call this after a kill, before the deliveries that were open then are attempted again.
    pub fn note(&mut self, place: &Place) {
        let copy = copy_of_embedded(place);
        for event in events_with_open_deliveries(copy.as_ref().unwrap_or(place)) {
            *self.0.entry(event).or_default() += 1;
        }
    }

    /// How many arrivals have no such reason.
    pub fn needless(&self, receiver: &Receiver) -> usize {
        let mut arrivals: HashMap<String, usize> = HashMap::new();
        for event in received(receiver) {
            *arrivals.entry(event).or_default() += 1;
        }
        let reasons = |event: &String| self.0.get(event).copied().unwrap_or_default();
        arrivals.iter().map(|(event, times)| times.saturating_sub(1 + reasons(event))).sum()
    }
}

/// Compares what reached the receiver, which always answers 200, with the attempts on record. An arrival may have been
/// repeated because its outcome was not recorded; repeats without that reason are counted. An attempt on record that
/// was never made is a problem of its own.
pub fn compare_attempts(place: &Place, receiver: &Receiver, findings: &mut Findings) -> usize {
    let mut arrivals: HashMap<String, usize> = HashMap::new();
    for event in received(receiver) {
        *arrivals.entry(event).or_default() += 1;
    }
    let (mut needless, mut never_made) = (0, 0);
    for listed in deliveries_in(&open(place), Filter::default()) {
        let arrived = arrivals.get(&listed.delivery.event.to_string()).copied().unwrap_or_default();
        let recorded = usize::try_from(listed.delivery.attempts).unwrap();
        needless += recorded.min(arrived).saturating_sub(1);
        never_made += recorded.saturating_sub(arrived);
    }
    findings.expect(never_made == 0, || format!("{never_made} attempts are on record that were never made"));
    needless
}

/// A copy of the embedded database as a kill left it. Opening the original would do the recovery that the next start
/// of the service is supposed to do.
fn copy_of_embedded(place: &Place) -> Option<Place> {
    let Database::Sqlite(original) = place.database() else { return None };
    let copy = Place::in_memory();
    for name in ["rapport.db", "rapport.db-wal"] {
        let from = original.with_file_name(name);
        if from.exists() {
            std::fs::copy(from, copy.path().join(name)).unwrap();
        }
    }
    Some(copy)
}

/// The events whose delivery is not recorded as done.
pub fn events_with_open_deliveries(place: &Place) -> Vec<String> {
    let filter = Filter { state: Some(Shown::Pending), ..Filter::default() };
    deliveries_in(&open(place), filter).into_iter().map(|listed| listed.delivery.event.to_string()).collect()
}

fn deliveries_in(store: &Store, filter: Filter) -> Vec<Listed> {
    look(store, move |snapshot| Ok(delivery_list::scan(snapshot, &filter, None, EVERYTHING)?.found))
}

fn open(place: &Place) -> Store {
    Store::open(&Config::new(place.database())).unwrap()
}

/// Reads, and tries again if a busy machine made the read wait too long.
fn look<T: Send + 'static>(
    store: &Store,
    read: impl Fn(&mut Snapshot) -> Result<T, Error> + Clone + Send + 'static,
) -> T {
    let deadline = Instant::now() + DONE_WITHIN;
    loop {
        match store.read(CompanyId(1), read.clone()).blocking_recv().unwrap() {
            Ok(found) => return found,
            Err(Error::Busy | Error::Unavailable(_)) if Instant::now() < deadline => {
                thread::sleep(POLL_INTERVAL);
            }
            Err(error) => panic!("the database cannot be read: {error}"),
        }
    }
}
