//! The delivery list: filters, pages, counts, and the scan of a bulk redelivery.
//!
//! Rows are read newest first from an index, in chunks, and checked one by one; how an open delivery is shown
//! depends on its webhook. The work of one scan is bounded by the number of rows it reads: if few of many
//! match, a page may be short and says where to continue.
//!
//! Waiting deliveries have their own index, ordered by when they are due. If it is short, it is read entirely
//! and sorted; if it is long, it isn't used, since most of the newest deliveries are open then anyway.

use std::collections::{HashMap, VecDeque};

use rapport_domain::delivery::{Delivery, State};
use rapport_domain::delivery_list::{Appearance, Filter, Shown, WebhookState, appearance, is_untried_test};
use rapport_domain::id::{AccountId, DeliveryId, EventId, WebhookId, lowest_at};
use rapport_domain::time::Time;

use crate::delivery::{self, read, select_delivery};
use crate::delivery_state::delivery_state;
use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::value::{Row, Value};
use crate::values;

statements! {
    company STANDINGS = "SELECT id, CASE WHEN disabled_by_hand = 0 AND auto_disabled_at IS NULL THEN 1 ELSE 0 END, \
                         deleted_at, dropped_before FROM webhook WHERE company = $1";
    company ALL = select_delivery!("WHERE d.company = $1 AND d.id < $2 AND d.id >= $3 ORDER BY d.id DESC LIMIT $4");
    // Only the index of webhooks has this order. With `webhook = $2 … ORDER BY id`, a planner could also use
    // the primary key and walk through every other webhook's deliveries.
    company OF_WEBHOOK = select_delivery!("/*INDEXED BY delivery_by_webhook*/ WHERE d.company = $1 \
                                           AND (d.webhook, d.id) < ($2, $3) AND (d.webhook, d.id) >= ($2, $4) \
                                           ORDER BY d.webhook DESC, d.id DESC LIMIT $5");
    company FAILED = select_delivery!(
        "/*INDEXED BY delivery_failed*/ WHERE d.company = $1 AND d.state = ", delivery_state!(failed),
        " AND d.id < $2 AND d.id >= $3 ORDER BY d.id DESC LIMIT $4"
    );
    company FAILED_COUNT = concat!(
        "SELECT count(*) FROM (SELECT 1 FROM delivery /*INDEXED BY delivery_failed*/ ",
        "WHERE company = $1 AND state = ", delivery_state!(failed), " AND id < $2 AND id >= $3 LIMIT $4) AS failed"
    );
    company WAITING = select_delivery!(
        "/*INDEXED BY delivery_waiting*/ WHERE d.company = $1 AND d.webhook = $2 AND d.state = ",
        delivery_state!(open), " AND d.owner IS NULL ORDER BY d.next_at, d.id LIMIT $3"
    );
    company OWNED = select_delivery!(
        "/*INDEXED BY delivery_owned*/ WHERE d.company = $1 AND d.owner = $2 AND d.state = ", delivery_state!(open)
    );
    company FORCED = "SELECT delivery FROM manual_attempt WHERE company = $1";
    company BY_IDS = select_delivery!("WHERE d.company = $1 AND d.id = ANY($2)");
    company EVENTS_OF_ACCOUNT = "SELECT id FROM event /*INDEXED BY event_by_account*/ WHERE company = $1 \
                                 AND (account, id) < ($2, $3) AND (account, id) >= ($2, $4)";
    company OF_EVENTS = select_delivery!("/*INDEXED BY delivery_by_event*/ WHERE d.company = $1 AND d.event = ANY($2)");
    company ACCOUNT_NAMES = "SELECT id, name FROM account WHERE company = $1 AND id = ANY($2)";
    reference OWNERS = concat!(
        "SELECT DISTINCT owner FROM delivery /*INDEXED BY delivery_owned*/ WHERE state = ", delivery_state!(open),
        " AND owner IS NOT NULL"
    );
}

/// Open deliveries are collected and sorted if there are at most this many.
const NARROW_ROWS: i64 = 5_000;
const MAX_CHUNK: i64 = 1_000;
/// An id is generated a little after the time stored with it, or a lot after it if the clock was set back:
/// ids up to this much later may belong to a given time.
const ID_SLACK_SECONDS: i64 = 600;
const LAST: DeliveryId = DeliveryId::from_bytes([0xff; 16]);

/// The limits of one scan.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many deliveries to find.
    pub items: usize,
    /// How many rows to read.
    pub rows: usize,
}

impl Bounds {
    /// A page of a list.
    pub fn page(limit: i64) -> Self {
        Self { items: usize::try_from(limit).unwrap_or(1), rows: 20_000 }
    }
}

/// A delivery and how it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub delivery: Delivery,
    pub shown: Appearance,
}

/// The deliveries found, newest first, and where the scan stopped if it didn't reach the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    pub found: Vec<Listed>,
    pub next: Option<DeliveryId>,
}

/// The deliveries that match a filter, before `before` if given.
pub fn scan(
    snapshot: &mut Snapshot,
    filter: &Filter,
    before: Option<DeliveryId>,
    bounds: Bounds,
) -> Result<Scan, Error> {
    let standings = standings(snapshot)?;
    let mut stream = Stream::open(snapshot, filter, before, &standings, bounds)?;
    let (mut found, mut last, mut rows) = (Vec::new(), None, 0);
    while let Some(delivery) = stream.next(snapshot)? {
        let shown = appearance(&delivery, standings.get(&delivery.webhook));
        let admitted = filter.admits(&delivery, shown.state);
        if rows == bounds.rows || (admitted && found.len() == bounds.items) {
            return Ok(Scan { found, next: last });
        }
        rows += 1;
        last = Some(delivery.id);
        if admitted {
            found.push(Listed { delivery, shown });
        }
    }
    Ok(Scan { found, next: None })
}

/// One delivery as shown.
pub fn get(snapshot: &mut Snapshot, id: DeliveryId) -> Result<Option<Listed>, Error> {
    let Some(delivery) = delivery::get(snapshot, id)? else { return Ok(None) };
    let shown = appearance(&delivery, standings(snapshot)?.get(&delivery.webhook));
    Ok(Some(Listed { delivery, shown }))
}

/// The names of these accounts, without deleted ones.
pub fn account_names(
    snapshot: &mut Snapshot,
    accounts: impl IntoIterator<Item = AccountId>,
) -> Result<HashMap<AccountId, String>, Error> {
    let mut ids: Vec<AccountId> = accounts.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let keys: Vec<Value> = ids.iter().map(Value::from).collect();
    let rows = snapshot.query_keys(&ACCOUNT_NAMES, &[], &keys)?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

type Standings = HashMap<WebhookId, WebhookState>;

/// The states of all webhooks of the company, including deleted ones.
fn standings(snapshot: &mut Snapshot) -> Result<Standings, Error> {
    let read = |mut row: Row| {
        let (id, enabled, deleted_at, dropped_before) = (row.take()?, row.take()?, row.take()?, row.take()?);
        Ok((id, WebhookState { enabled, deleted_at, dropped_before }))
    };
    snapshot.query(&STANDINGS, &[])?.into_iter().map(read).collect()
}

/// An index to walk, newest first.
#[derive(Debug, Clone, Copy)]
enum Walk {
    All,
    OfWebhook(WebhookId),
    Failed,
}

/// Deliveries newest first, merged from rows collected beforehand and an index walked in chunks.
struct Stream {
    collected: VecDeque<Delivery>,
    walk: Option<Walk>,
    read_ahead: VecDeque<Delivery>,
    /// The current position of the walk, and where it ends.
    place: DeliveryId,
    end: DeliveryId,
    chunk: i64,
}

impl Stream {
    fn open(
        snapshot: &mut Snapshot,
        filter: &Filter,
        before: Option<DeliveryId>,
        standings: &Standings,
        bounds: Bounds,
    ) -> Result<Self, Error> {
        let until = filter.until.map_or(LAST, |until| lowest_at(until.plus_seconds(ID_SLACK_SECONDS)));
        let place = before.unwrap_or(LAST).min(until);
        let end = lowest_at(filter.since.unwrap_or(Time::from_micros(0)));
        let chunk = i64::try_from(bounds.items).unwrap_or(MAX_CHUNK).saturating_add(1).min(MAX_CHUNK);
        let none =
            Self { collected: VecDeque::new(), walk: None, read_ahead: VecDeque::new(), place, end, chunk };
        if let Some(account) = filter.account {
            return Ok(none.with(of_account(snapshot, account, place, end)?));
        }
        let walk = filter.webhook.map_or(Walk::All, Walk::OfWebhook);
        let Some(state) = filter.state.filter(|state| *state != Shown::Succeeded) else {
            return Ok(Self { walk: Some(walk), ..none });
        };
        let Some(open) = open_rows(snapshot, filter.webhook, state, standings)? else {
            return Ok(Self { walk: Some(walk), ..none });
        };
        let walk = match (state, filter.webhook) {
            (Shown::Failed, None) => Some(Walk::Failed),
            (Shown::Failed, Some(_)) if few_failed(snapshot, place, end)? => Some(Walk::Failed),
            (Shown::Failed, Some(_)) => Some(walk),
            _ => None,
        };
        Ok(Self { walk, ..none }.with(open))
    }

    fn with(mut self, mut collected: Vec<Delivery>) -> Self {
        collected.retain(|delivery| delivery.id < self.place);
        collected.sort_unstable_by_key(|delivery| std::cmp::Reverse(delivery.id));
        collected.dedup_by_key(|delivery| delivery.id);
        self.collected = collected.into();
        self
    }

    fn next(&mut self, snapshot: &mut Snapshot) -> Result<Option<Delivery>, Error> {
        if self.read_ahead.is_empty() {
            self.read_on(snapshot)?;
        }
        let walked = self.read_ahead.front().map(|delivery| delivery.id);
        let collected = self.collected.front().map(|delivery| delivery.id);
        if walked >= collected {
            // A collected delivery may have ended in the meantime and turn up in the walk too.
            if walked == collected {
                self.collected.pop_front();
            }
            return Ok(self.read_ahead.pop_front());
        }
        Ok(self.collected.pop_front())
    }

    fn read_on(&mut self, snapshot: &mut Snapshot) -> Result<(), Error> {
        let (place, end, chunk) = (self.place, self.end, self.chunk);
        let rows = match self.walk {
            None => return Ok(()),
            Some(Walk::All) => snapshot.query(&ALL, values![&place, &end, chunk])?,
            Some(Walk::OfWebhook(id)) => snapshot.query(&OF_WEBHOOK, values![&id, &place, &end, chunk])?,
            Some(Walk::Failed) => snapshot.query(&FAILED, values![&place, &end, chunk])?,
        };
        if i64::try_from(rows.len()).unwrap_or(0) < chunk {
            self.walk = None;
        }
        self.read_ahead = rows.into_iter().map(read).collect::<Result<_, _>>()?;
        self.place = self.read_ahead.back().map_or(place, |last| last.id);
        self.chunk = MAX_CHUNK;
        Ok(())
    }
}

/// Whether a company has so few failed deliveries between two ids that they can be searched for one
/// webhook's.
fn few_failed(snapshot: &mut Snapshot, place: DeliveryId, end: DeliveryId) -> Result<bool, Error> {
    let count = snapshot.query_opt(&FAILED_COUNT, values![&place, &end, NARROW_ROWS])?;
    Ok(count.map_or(Ok(0), |mut row| row.take::<i64>())? < NARROW_ROWS)
}

/// The deliveries of an account, found through its events.
fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    place: DeliveryId,
    end: DeliveryId,
) -> Result<Vec<Delivery>, Error> {
    // An event is created just before its deliveries, at the same time.
    let (place, end) = (EventId::from_bytes(*place.as_bytes()), EventId::from_bytes(*end.as_bytes()));
    let events = snapshot.query(&EVENTS_OF_ACCOUNT, values![&account, &place, &end])?;
    let events: Vec<EventId> = events.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = events.iter().map(Value::from).collect();
    snapshot.query_keys(&OF_EVENTS, &[], &keys)?.into_iter().map(read).collect()
}

/// The open deliveries that may be shown in this state; `None` if there are too many to collect.
fn open_rows(
    snapshot: &mut Snapshot,
    webhook: Option<WebhookId>,
    state: Shown,
    standings: &Standings,
) -> Result<Option<Vec<Delivery>>, Error> {
    let concerned = |standing: &WebhookState| match state {
        Shown::Pending => standing.enabled && standing.deleted_at.is_none(),
        Shown::Held => !standing.enabled && standing.deleted_at.is_none(),
        Shown::Failed | Shown::Succeeded => standing.ends_some(),
    };
    let webhooks = standings
        .iter()
        .filter(|(id, standing)| webhook.is_none_or(|webhook| webhook == **id) && concerned(standing));
    let mut found: Vec<Delivery> = Vec::new();
    for (id, _) in webhooks {
        let room = NARROW_ROWS - i64::try_from(found.len()).unwrap_or(NARROW_ROWS);
        let rows = snapshot.query(&WAITING, values![id, room])?;
        if i64::try_from(rows.len()).unwrap_or(0) >= room {
            return Ok(None);
        }
        found.extend(rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?);
    }
    found.extend(owned(snapshot)?);
    if state == Shown::Pending {
        found.extend(untried_tests(snapshot)?);
    }
    Ok(Some(found))
}

/// The deliveries that sending nodes hold in memory: a bounded number.
fn owned(snapshot: &mut Snapshot) -> Result<Vec<Delivery>, Error> {
    let mut found = Vec::new();
    for mut row in snapshot.query(&OWNERS, &[])? {
        let rows = snapshot.query(&OWNED, values![row.take::<i64>()?])?;
        found.extend(rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

/// Tests of disabled webhooks wait as manual attempts.
fn untried_tests(snapshot: &mut Snapshot) -> Result<Vec<Delivery>, Error> {
    let forced = snapshot.query(&FORCED, &[])?;
    let forced: Vec<DeliveryId> = forced.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    let keys: Vec<Value> = forced.iter().map(Value::from).collect();
    let mut found =
        snapshot.query_keys(&BY_IDS, &[], &keys)?.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    found.retain(|delivery| is_untried_test(delivery) && matches!(delivery.state, State::Open { .. }));
    Ok(found)
}
