//! Consumers while processes are killed under a mixed load: one reads only the feed, one receives only webhooks, and one
//! keeps a copy of the accounts. Each ends with exactly what the database has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, EventId};
use rapport_domain::time::Time;
use rapport_domain::webhook::SELECTABLE;
use rapport_store::Database;
use rapport_testkit::{Chance, Receiver, raw};
use serde_json::{Value, json};

use crate::check::{DONE_WITHIN, Findings, id_of, wait_until_done};
use crate::client::Nodes;
use crate::follow::{Accounts, Events, Follower};
use crate::kills::life;
use crate::mixed::Mixed;
use crate::program::{Place, Service};
use crate::report::Run;
use crate::scene::Scene;
use crate::size::FEED_SECONDS;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How many events the webhook may be behind the feed before the load rests: what is open at the end must be done soon.
const MOST_BEHIND: usize = 500;
/// How long a request for events waits, in seconds. Connections are given up after ten.
const WAIT: usize = 5;
/// Before anything that happens here.
const LONG_AGO: &str = "2000-01-01T00:00:00Z";

#[test]
fn consumers_end_with_what_the_database_has_on_sqlite() {
    let mut run = Run::start("consumers of a mixed load, SQLite");
    consume(&mut run, &Scene::new(Place::sqlite()), 1);
    run.end();
}

#[test]
fn consumers_end_with_what_the_database_has_on_two_nodes() {
    let mut run = Run::start("consumers of a mixed load, two nodes");
    consume(&mut run, &Scene::new(Place::postgres()), 2);
    run.end();
}

fn consume(run: &mut Run, scene: &Scene, nodes: usize) {
    let chance = Chance::new(6);
    let seconds = FEED_SECONDS.get().try_into().unwrap();
    let mut cluster = Cluster::start(scene, nodes);
    let webhook = scene.create_webhook_for(&cluster.services[0], &SELECTABLE.map(Kind::as_str));
    let mut consumers = Consumers::start(scene, &cluster.nodes);
    let load = Mixed::start(&scene.credentials, &cluster.nodes, &webhook);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let killed_at = Instant::now() + life(&chance);
        while Instant::now() < killed_at {
            consumers.receive(&scene.receiver);
            load.hold(consumers.behind() > MOST_BEHIND);
            thread::sleep(POLL_INTERVAL);
        }
        cluster.kill(chance.below(nodes));
        run.faults += 1;
    }
    load.hold(false);
    let done = load.finish();
    assert!(done.iter().all(|client| client.acknowledged > 0), "the load ran");
    run.acknowledged = done.iter().map(|client| client.acknowledged).sum();
    for client in done {
        run.findings.problems.extend(client.surprises);
    }
    run.open = settle(&mut cluster, &mut consumers, scene);
    drop(cluster);
    consumers.compare(&scene.place, &mut run.findings);
}

/// Waits until the consumers have everything, and stops the nodes: what the database has then is the end. The service does
/// some things by itself, so it is started again if there is more than the consumers have. Returns how many deliveries
/// are open.
fn settle(cluster: &mut Cluster, consumers: &mut Consumers, scene: &Scene) -> usize {
    let deadline = Instant::now() + DONE_WITHIN;
    loop {
        let open = wait_until_done(&scene.place);
        consumers.wait_for_all(scene, deadline);
        cluster.stop();
        consumers.receive(&scene.receiver);
        if consumers.have_all(&scene.place) || Instant::now() > deadline {
            return open;
        }
        cluster.start_again();
    }
}

/// The nodes of a run, which are killed and started again.
struct Cluster<'a> {
    scene: &'a Scene,
    beside: Vec<Place>,
    services: Vec<Service>,
    nodes: Nodes,
}

impl<'a> Cluster<'a> {
    fn start(scene: &'a Scene, count: usize) -> Self {
        let beside: Vec<Place> = (1..count).map(|_| scene.place.beside()).collect();
        let places = std::iter::once(&scene.place).chain(&beside);
        let services: Vec<Service> = places.map(|place| scene.serve_at(place)).collect();
        let nodes = Nodes::at(services.iter().map(|service| service.address.as_str()));
        Self { scene, beside, services, nodes }
    }

    fn kill(&mut self, victim: usize) {
        self.services[victim].signal("KILL");
        self.services[victim].wait();
        self.restart(victim);
    }

    fn restart(&mut self, node: usize) {
        let place = if node == 0 { &self.scene.place } else { &self.beside[node - 1] };
        self.services[node] = self.scene.serve_again_at(place);
        self.nodes.redirect(node, &self.services[node].address);
    }

    fn stop(&mut self) {
        for service in &mut self.services {
            service.signal("TERM");
            service.wait();
        }
    }

    fn start_again(&mut self) {
        (0..self.services.len()).for_each(|node| self.restart(node));
    }
}

struct Consumers {
    /// Reads the events, which leaves out tests of webhooks.
    feed: Follower<Events>,
    /// Reads the events of every kind.
    whole: Follower<Events>,
    accounts: Follower<Accounts>,
    /// What a webhook received.
    received: HashSet<String>,
}

impl Consumers {
    fn start(scene: &Scene, nodes: &Nodes) -> Self {
        let kinds = Kind::ALL.map(Kind::as_str).join(",");
        let feed = format!("/api/events/?wait={WAIT}");
        let whole = format!("/api/events/?wait={WAIT}&limit=200&type={kinds}");
        let accounts = format!("/api/accounts/?updated_after={LONG_AGO}&deleted=true");
        Self {
            feed: Follower::start(&scene.credentials, nodes, &feed),
            whole: Follower::start(&scene.credentials, nodes, &whole),
            accounts: Follower::start(&scene.credentials, nodes, &accounts),
            received: HashSet::new(),
        }
    }

    /// Takes what has reached the receiver. Only the ids are kept, so that an hour of it fits into memory.
    fn receive(&mut self, receiver: &Receiver) {
        self.received.extend(receiver.take().iter().map(|request| id_of(&request.body)));
    }

    /// How many more events the feed has than the webhook.
    fn behind(&self) -> usize {
        self.whole.look(|events| events.ids.len()).saturating_sub(self.received.len())
    }

    /// Whether each has as many events as the database.
    fn have_all(&self, place: &Place) -> bool {
        let count = |which: &str| -> usize {
            raw::ask(&place.database(), &format!("SELECT count(*) FROM event{which}")).parse().unwrap()
        };
        let (all, without_tests) = (count(""), count(" WHERE kind <> 'webhook.test'"));
        let read = |follower: &Follower<Events>| follower.look(|events| events.ids.len());
        self.received.len() >= all && read(&self.whole) >= all && read(&self.feed) >= without_tests
    }

    fn wait_for_all(&mut self, scene: &Scene, deadline: Instant) {
        let mut ends = None;
        while Instant::now() < deadline {
            self.receive(&scene.receiver);
            if self.have_all(&scene.place) {
                // A page that was asked for since then is empty, so the copy of the accounts is complete as well.
                let now = self.accounts.ends();
                if now > *ends.get_or_insert(now) + 1 {
                    return;
                }
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn compare(self, place: &Place, findings: &mut Findings) {
        let Self { feed, whole, accounts, received } = self;
        let (feed, whole, accounts) = (feed.finish(), whole.finish(), accounts.finish());
        findings.problems.extend([feed.problems, whole.problems, accounts.problems].concat());
        let stored = Stored::read(place);
        let ids = |wanted: fn(&str) -> bool| -> Vec<&str> {
            let events = stored.events.iter().filter(|(_, kind)| wanted(kind));
            events.map(|(id, _)| id.as_str()).collect()
        };
        let (all, without_tests) = (ids(|_| true), ids(|kind| kind != Kind::WebhookTest.as_str()));
        for (name, read, stored) in
            [("the feed", &feed.ids, &without_tests), ("the feed of every kind", &whole.ids, &all)]
        {
            let read: Vec<&str> = read.iter().map(String::as_str).collect();
            compare_sets(name, read.iter().copied(), stored, findings);
            let place = read.iter().zip(stored).position(|(read, stored)| read != stored);
            findings.expect(read.len() == stored.len() && place.is_none(), || {
                format!(
                    "{name} has {} events, {} are stored, and their order differs at {place:?}",
                    read.len(),
                    stored.len()
                )
            });
        }
        compare_sets("the webhook", received.iter().map(String::as_str), &all, findings);
        for kind in Kind::ALL.map(Kind::as_str) {
            let is_there = stored.events.iter().any(|(_, found)| found == kind);
            findings.expect(is_there, || format!("the load caused no {kind}"));
        }
        let copied = accounts.present.iter().map(|(id, account)| (id.clone(), shown(account))).collect();
        compare_copies(&copied, &stored.accounts, findings);
        findings.expect(accounts.deleted == stored.deleted, || {
            format!(
                "{} accounts were read as deleted, and {} are",
                accounts.deleted.len(),
                stored.deleted.len()
            )
        });
    }
}

/// What the database has.
struct Stored {
    /// The id and kind of each event, in the order of the feed.
    events: Vec<(String, String)>,
    accounts: BTreeMap<String, Value>,
    deleted: BTreeSet<String>,
}

impl Stored {
    fn read(place: &Place) -> Self {
        let database = place.database();
        let hex = |column: &str| match database {
            Database::Sqlite(_) => format!("lower(hex({column}))"),
            Database::Postgres(_) => format!("encode({column}, 'hex')"),
        };
        let events = format!("SELECT {}, kind FROM event ORDER BY change, id", hex("id"));
        let accounts = format!(
            "SELECT {}, coalesce(imported_id, ''), name, status, custom_fields, updated_at, \
             coalesce(last_contact_at, 0) FROM account",
            hex("id")
        );
        let deleted = format!("SELECT {} FROM account_tombstone", hex("account"));
        let account = |row: &Vec<String>| {
            let time = |micros: &str| Time::from_micros(micros.parse().unwrap()).to_string();
            let fields: Value = serde_json::from_str(&row[4]).unwrap();
            let contacted = if row[6] == "0" { String::new() } else { time(&row[6]) };
            let account = json!([row[1], row[2], row[3], fields, time(&row[5]), contacted]);
            (AccountId::from_bytes(bytes(&row[0])).to_string(), account)
        };
        Self {
            events: raw::rows(&database, &events)
                .into_iter()
                .map(|row| (EventId::from_bytes(bytes(&row[0])).to_string(), row[1].clone()))
                .collect(),
            accounts: raw::rows(&database, &accounts).iter().map(account).collect(),
            deleted: raw::rows(&database, &deleted)
                .iter()
                .map(|row| AccountId::from_bytes(bytes(&row[0])).to_string())
                .collect(),
        }
    }
}

fn bytes(hex: &str) -> [u8; 16] {
    u128::from_str_radix(hex, 16).unwrap().to_be_bytes()
}

/// The members of an account that are compared, as `Stored` has them.
fn shown(account: &Value) -> Value {
    let text = |name: &str| account[name].as_str().unwrap_or_default();
    json!([
        text("imported_id"),
        text("name"),
        text("status"),
        account["custom_fields"],
        text("updated_at"),
        text("last_contact_at"),
    ])
}

/// Nothing is missing, nothing is there that is not stored, and nothing is there twice.
fn compare_sets<'a>(
    name: &str,
    read: impl Iterator<Item = &'a str>,
    stored: &[&str],
    findings: &mut Findings,
) {
    let mut times: HashMap<&str, usize> = HashMap::new();
    read.for_each(|id| *times.entry(id).or_default() += 1);
    let twice = times.values().filter(|times| **times > 1).count();
    let missing = stored.iter().filter(|id| times.remove(**id).is_none()).count();
    if missing > 0 {
        findings.lose(missing, format!("{name} misses {missing} of {} events", stored.len()));
    }
    findings.expect(times.is_empty(), || format!("{name} has {} events that are not stored", times.len()));
    findings.expect(twice == 0, || format!("{name} has {twice} events more than once"));
}

fn compare_copies(
    copied: &BTreeMap<String, Value>,
    stored: &BTreeMap<String, Value>,
    findings: &mut Findings,
) {
    let differs = |id: &&String| copied.get(*id) != stored.get(*id);
    let ids: BTreeSet<&String> = copied.keys().chain(stored.keys()).collect();
    let different: Vec<&&String> = ids.iter().filter(|id| differs(id)).collect();
    findings.expect(different.is_empty(), || {
        let example = different[0].as_str();
        format!(
            "{} of {} accounts are not as they were read: {example} is {:?}, and was {:?}",
            different.len(),
            ids.len(),
            stored.get(example),
            copied.get(example)
        )
    });
}
