//! Readers that follow events and accounts with a cursor miss nothing, however late a change is committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use rapport_domain::account::Account;
use rapport_domain::event::{Event, Kind};
use rapport_domain::feed::Kinds;
use rapport_domain::id::{AccountId, CompanyId, EventId};
use rapport_domain::time::Time;
use rapport_store::account::Edit;
use rapport_store::account_changes::{self, AccountsAfter};
use rapport_store::change::{self, Place, Settled};
use rapport_store::event_feed::{self, EventsAfter};
use rapport_store::{Database, Error, Lane, Tx, Verdict, account, event, tombstone};
use rapport_testkit::{old_database, open};

use crate::support::{
    LONG, Random, World, account_id, answer_of, bytes, for_each_database, fresh_postgres, imported_account,
    new_account, on_both_engines, patient, raw, time,
};

const PAGE: i64 = 7;

fn event(number: u64, kind: Kind) -> Event {
    let id = EventId::from_bytes(bytes(number));
    Event { id, kind, account: None, payload: format!("{number}"), created_at: time(0) }
}

fn settled(world: &World, company: CompanyId) -> Settled {
    world.read(company, change::settled)
}

/// Follows the events of a company.
struct EventReader {
    place: Place,
    seen: Vec<u64>,
}

impl EventReader {
    fn new() -> Self {
        Self { place: Place::START, seen: Vec::new() }
    }

    /// Reads a page; returns whether there is more.
    fn step(&mut self, world: &World, company: CompanyId, kinds: &[Kind]) -> bool {
        let settled = settled(world, company);
        let asked = EventsAfter { place: self.place, kinds: Kinds(kinds.to_vec()), limit: PAGE };
        let page = world.read(company, move |snapshot| event_feed::after(snapshot, &asked, settled));
        assert!(page.next >= self.place, "a cursor never goes back");
        assert!(page.payloads.len() <= usize::try_from(PAGE).expect("small"));
        self.place = page.next;
        self.seen.extend(page.payloads.iter().map(|text| text.parse::<u64>().expect("a number")));
        page.more
    }

    fn all(world: &World, company: CompanyId, kinds: &[Kind]) -> Vec<u64> {
        let mut reader = Self::new();
        while reader.step(world, company, kinds) {}
        reader.seen
    }
}

/// Follows the accounts of a company, and keeps a copy of them.
#[derive(Default)]
struct AccountReader {
    place: Option<Place>,
    updated_after: Option<Time>,
    copy: BTreeMap<AccountId, Account>,
    order: Vec<AccountId>,
}

impl AccountReader {
    fn step(&mut self, world: &World, company: CompanyId) -> bool {
        let settled = settled(world, company);
        let (place, updated_after) = (self.place, self.updated_after);
        let asked = AccountsAfter { place, updated_after, deleted: true, limit: PAGE };
        let page = world.read(company, move |snapshot| account_changes::after(snapshot, &asked, settled));
        assert!(self.place.is_none_or(|place| page.next >= place), "a cursor never goes back");
        self.place = Some(page.next);
        for account in page.accounts {
            self.order.push(account.id);
            self.copy.insert(account.id, account);
        }
        for tombstone in page.deleted {
            self.copy.remove(&tombstone.id);
        }
        page.more
    }

    fn all(world: &World, company: CompanyId, updated_after: Option<Time>) -> Self {
        let mut reader = Self { updated_after, ..Self::default() };
        while reader.step(world, company) {}
        reader
    }
}

/// What a naive cursor misses: the first of two changes is committed after the second.
#[test]
fn a_change_that_is_committed_late_is_waited_for() {
    // SQLite has one writer, so it can't happen there.
    let database = Database::Postgres(fresh_postgres());
    let world = World { store: open(&patient(database.clone())), database: database.clone() };
    let (acme, globex) = (world.company("acme"), world.company("globex"));
    let (release, released) = channel::<()>();
    let (begun, has_begun) = channel();
    let late = world.submit(Lane::Outcome, acme, move |tx| {
        event::insert(tx, &[event(1, Kind::AccountCreated)])?;
        account::insert(tx, &[&new_account(1, "Late")])?;
        let _ = begun.send(());
        let _ = released.recv();
        Ok(Verdict::Commit)
    });
    has_begun.recv_timeout(LONG).expect("it begins");
    for company in [acme, globex] {
        let written = world.write(company, |tx| {
            event::insert(tx, &[event(2, Kind::AccountCreated)])?;
            account::insert(tx, &[&new_account(2, "Early")])
        });
        written.expect("committed");
    }
    let Database::Postgres(url) = &database else { unreachable!("it is a server") };
    let mut stranger = raw(url);
    stranger.batch_execute("BEGIN; SELECT pg_current_xact_id()").expect("a transaction");

    let (mut events, mut accounts) = (EventReader::new(), AccountReader::default());
    assert!(!events.step(&world, acme, &[]) && !accounts.step(&world, acme));
    assert_eq!((events.seen.len(), accounts.order.len()), (0, 0), "it stops before the running transaction");
    assert_eq!(EventReader::all(&world, globex, &[]), [2], "which holds back no other company");
    assert_eq!(AccountReader::all(&world, globex, None).order, [account_id(2)]);

    drop(release);
    answer_of(&late).expect("committed");
    events.step(&world, acme, &[]);
    accounts.step(&world, acme);
    assert_eq!(events.seen, [1, 2], "a transaction of someone else holds back nobody");
    assert_eq!(accounts.order, [account_id(1), account_id(2)]);
    stranger.batch_execute("ROLLBACK").expect("ended");
}

/// A transaction may have its number from what it wrote before it waited for an account that another one is changing.
#[test]
fn the_changes_of_an_account_are_shown_in_the_order_in_which_they_happened() {
    // SQLite has one writer, so they can't happen in another order there.
    let database = Database::Postgres(fresh_postgres());
    let world = World { store: open(&patient(database.clone())), database };
    let acme = world.company("acme");
    world.write(acme, |tx| account::insert(tx, &[&new_account(1, "Account")])).expect("committed");
    let rename = |tx: &mut Tx, number: u64, name: &str| {
        let before = account::lock(tx, &[account_id(1)])?.pop().expect("an account");
        let after = Account { name: name.to_owned(), ..before.clone() };
        event::insert(tx, &[event(number, Kind::AccountUpdated)])?;
        account::update(tx, &[Edit { before: &before, after: &after }])
    };
    let (release, released) = channel::<()>();
    let (begun, has_begun) = channel();
    let second = world.submit(Lane::Outcome, acme, move |tx| {
        account::insert(tx, &[&new_account(2, "Other")])?;
        let _ = begun.send(());
        let _ = released.recv();
        rename(tx, 1, "Second").map(|()| Verdict::Commit)
    });
    has_begun.recv_timeout(LONG).expect("it begins");
    world.write(acme, move |tx| rename(tx, 2, "First")).expect("committed");
    drop(release);
    answer_of(&second).expect("committed");
    assert_eq!(EventReader::all(&world, acme, &[]), [2, 1]);
    assert_eq!(AccountReader::all(&world, acme, None).copy[&account_id(1)].name, "Second");
}

const WRITERS: u64 = 6;
const ROUNDS: u64 = 25;
/// Every writer has its own numbers.
const RANGE: u64 = 10_000;

/// One round of a writer: some events, and a change of one of its accounts.
fn change_something(tx: &mut Tx, writer: u64, round: u64, choice: usize) -> Result<(), Error> {
    let base = (writer + 1) * RANGE;
    let events: Vec<Event> =
        (0..=round % 3).map(|n| event(base + 10 * round + n, Kind::AccountStatusChanged)).collect();
    event::insert(tx, &events)?;
    let id = base + round / 3;
    let Some(before) = account::lock(tx, &[account_id(id)])?.pop() else {
        account::insert(tx, &[&new_account(id, "new")])?;
        return Ok(());
    };
    // Its number is not used again.
    if round % 3 == 2 && choice == 0 {
        return account::delete(tx, before.id, time(9)).map(drop);
    }
    let after = Account { name: format!("round {round}"), updated_at: time(5), ..before.clone() };
    account::update(tx, &[Edit { before: &before, after: &after }])
}

#[test]
fn concurrent_writers_with_late_commits_lose_nothing_for_a_reader() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let (passes, is_done) = (Arc::new(AtomicUsize::new(0)), AtomicBool::new(false));
        let (events, accounts) = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let passes = Arc::clone(&passes);
                    scope.spawn(move || write_rounds(world, company, writer, &passes))
                })
                .collect();
            let reader = scope.spawn(|| {
                let (mut events, mut accounts) = (EventReader::new(), AccountReader::default());
                loop {
                    let was_done = is_done.load(Ordering::SeqCst);
                    let more_events = events.step(world, company, &[]);
                    let more_accounts = accounts.step(world, company);
                    passes.fetch_add(1, Ordering::SeqCst);
                    if was_done && !more_events && !more_accounts {
                        return (events, accounts);
                    }
                }
            });
            writers.into_iter().for_each(|writer| writer.join().expect("written"));
            is_done.store(true, Ordering::SeqCst);
            reader.join().expect("read")
        });
        assert!(passes.load(Ordering::SeqCst) > 5, "the reader read meanwhile");

        let stored = world.rows_of("event");
        assert_eq!(i64::try_from(events.seen.len()), Ok(stored), "every event, and each of them once");
        assert_eq!(events.seen, EventReader::all(world, company, &[]), "in an order that stays");
        assert!(world.rows_of("account_tombstone") > 0 && world.rows_of("account") > 0);
        let now = AccountReader::all(world, company, None);
        assert_eq!(accounts.copy, now.copy, "the copy of the reader is what is stored");
        assert_eq!(i64::try_from(now.order.len()), Ok(world.rows_of("account")));
    });
}

fn write_rounds(world: &World, company: CompanyId, writer: u64, passes: &Arc<AtomicUsize>) {
    let mut random = Random::seeded(writer);
    for round in 0..ROUNDS {
        let choice = random.below(4);
        let (waits, verdict) =
            (random.one_in(3), if random.one_in(6) { Verdict::Rollback } else { Verdict::Commit });
        let passes = Arc::clone(passes);
        let answer = world.submit(Lane::Outcome, company, move |tx| {
            change_something(tx, writer, round, choice)?;
            // The reader passes by between the change and its commit.
            let (before, since) = (passes.load(Ordering::SeqCst), Instant::now());
            while waits && passes.load(Ordering::SeqCst) < before + 2 {
                assert!(since.elapsed() < LONG, "the reader stopped");
                thread::yield_now();
            }
            Ok(verdict)
        });
        answer_of(&answer).expect("an outcome");
    }
}

#[test]
fn a_reader_gets_the_kinds_that_it_asks_for() {
    on_both_engines(|world| {
        let company = world.company("acme");
        for number in 1..=30 {
            let kind = match number % 3 {
                0 => Kind::AccountCreated,
                1 => Kind::WebhookTest,
                _ => Kind::MessageInbound,
            };
            world.write(company, move |tx| event::insert(tx, &[event(number, kind)])).expect("inserted");
        }
        let numbers = |keep: fn(&u64) -> bool| (1..=30).filter(keep).collect::<Vec<u64>>();
        assert_eq!(EventReader::all(world, company, &[]), numbers(|n| n % 3 != 1), "not the tests");
        assert_eq!(EventReader::all(world, company, &[Kind::AccountCreated]), numbers(|n| n % 3 == 0));
        assert_eq!(
            EventReader::all(world, company, &[Kind::WebhookTest, Kind::MessageInbound]),
            numbers(|n| n % 3 != 0)
        );
        assert!(EventReader::all(world, company, &[Kind::ClientContactDue]).is_empty());
        world.change("UPDATE event SET payload = NULL WHERE kind = 'account.created'");
        assert_eq!(EventReader::all(world, company, &[]), numbers(|n| n % 3 == 2), "nor what was erased");
    });
}

#[test]
fn a_reader_can_begin_with_the_accounts_that_changed_after_a_time() {
    const HOUR: i64 = 3_600;
    on_both_engines(|world| {
        let company = world.company("acme");
        for number in 1..=30_u64 {
            let at = time(HOUR * i64::try_from(number).expect("small"));
            let made = Account { created_at: at, updated_at: at, ..new_account(number, "made") };
            world.insert(company, vec![made]);
        }
        let expect = |what: &str| {
            for hours in [-1, 0, 1, 15, 29, 30, 31] {
                let found = AccountReader::all(world, company, Some(time(HOUR * hours))).order;
                let expected: Vec<AccountId> = (1..=30_u64)
                    .filter(|number| i64::try_from(*number).expect("small") > hours)
                    .map(account_id)
                    .collect();
                assert_eq!(found, expected, "{what}, after {hours} hours");
            }
        };
        expect("with numbers");
        world.change(
            "UPDATE account SET change = 0; DELETE FROM account_change;
             INSERT INTO account_change (company, change, account, at)
             SELECT company, change, id, updated_at FROM account",
        );
        expect("from before there were numbers");
    });
}

#[test]
fn an_account_is_shown_once_however_often_it_changed() {
    const CHANGES: i64 = 20;
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![imported_account(1, "crm-1"), imported_account(2, "crm-2")]);
        world.insert(company, vec![imported_account(3, "crm-3")]);
        for number in 0..CHANGES {
            let before = imported_account(1, "crm-1");
            let changed = world.write(company, move |tx| {
                let after = Account { updated_at: time(number), ..before.clone() };
                account::update(tx, &[Edit { before: &before, after: &after }])
            });
            changed.expect("changed");
        }
        world.write(company, |tx| account::delete(tx, account_id(3), time(60))).expect("deleted");
        assert_eq!(world.number("SELECT count(*) FROM account_change"), 3 + CHANGES);
        let expect = |what: &str| {
            let order = AccountReader::all(world, company, None).order;
            assert_eq!(order, [account_id(2), account_id(1)], "{what}");
        };
        expect("with the entries of every change");
        let mut place = Some(Place::START);
        while let Some(after) = place {
            let past = world.read(company, move |snapshot| account_changes::past(snapshot, after, 7));
            world.write(company, move |tx| account_changes::forget(tx, &past.entries)).expect("forgotten");
            place = past.next;
        }
        assert_eq!(world.number("SELECT count(*) FROM account_change"), 2, "one entry for each account");
        expect("after the others were forgotten");
    });
}

#[test]
fn a_deleted_account_is_told_of_until_that_is_forgotten() {
    on_both_engines(|world| {
        let company = world.company("acme");
        world.insert(company, vec![imported_account(1, "crm-1"), imported_account(2, "crm-2")]);
        let mut reader = AccountReader::all(world, company, None);
        assert_eq!(reader.copy.len(), 2);
        world.write(company, |tx| account::delete(tx, account_id(1), time(60))).expect("deleted");
        reader.step(world, company);
        assert_eq!(reader.copy.keys().copied().collect::<Vec<_>>(), [account_id(2)]);
        let kept = "SELECT count(*) FROM account_tombstone WHERE imported_id = 'crm-1'";
        assert_eq!(world.number(kept), 1);
        world.write(company, |tx| tombstone::erase(tx, account_id(1))).expect("erased");
        assert_eq!(world.number(kept), 0);
        let prune =
            |cutoff| world.write(company, move |tx| tombstone::prune(tx, cutoff, 10)).expect("pruned");
        assert_eq!((prune(time(60)), prune(time(61)), prune(time(61))), (0, 1, 0));
    });
}

fn insert(world: &World, company: CompanyId, number: u64) {
    let inserted = world.write(company, move |tx| event::insert(tx, &[event(number, Kind::AccountCreated)]));
    inserted.expect("inserted");
}

/// Several nodes, or a service and a command beside it.
#[test]
fn processes_that_take_turns_number_their_changes_in_order() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let other = World { store: open(&patient(world.database.clone())), database: world.database.clone() };
        let mut reader = EventReader::new();
        // Each id is below the last one, so only the numbers can make the order.
        for number in (1..=6).rev() {
            insert(if number % 2 == 0 { world } else { &other }, company, number);
            reader.step(world, company, &[]);
        }
        assert_eq!(reader.seen, [6, 5, 4, 3, 2, 1]);
    });
}

/// A database that goes on elsewhere, or from an earlier state, numbers its changes above those that a reader may have
/// seen before.
#[test]
fn numbers_go_on_from_above_after_a_restore() {
    on_both_engines(|world| {
        let company = world.company("acme");
        let insert = |world: &World, number| insert(world, company, number);
        insert(world, 1);
        let mut reader = EventReader::new();
        reader.step(world, company, &[]);
        // The reader had seen more before the restore, and no longer existing rows had numbers up to this one.
        let ahead = reader.place.change + 1_000_000;
        reader.place = Place::before(ahead);
        let tables = ["account", "account_change", "event"];
        world.change(&tables.map(|table| format!("UPDATE {table} SET change = {ahead}")).join("; "));
        if matches!(world.database, Database::Postgres(_)) {
            // As a dump of another server has it.
            world.change("UPDATE change_clock SET server = 5, shift = 0");
        }
        let again = World { store: open(&patient(world.database.clone())), database: world.database.clone() };
        insert(&again, 2);
        reader.step(&again, company, &[]);
        assert_eq!(reader.seen, [1, 1, 2], "the row that was changed by hand, and the new one");
        insert(&again, 3);
        reader.step(&again, company, &[]);
        assert_eq!(reader.seen, [1, 1, 2, 3]);
    });
}

#[test]
fn a_database_from_before_there_were_numbers_is_followed_from_its_beginning() {
    const ROWS: usize = 300;
    for_each_database(|database| {
        old_database::create(&database, ROWS);
        let world = World { store: open(&patient(database.clone())), database };
        let company = CompanyId(1);
        let events = usize::try_from(world.rows_of("event")).expect("small");
        let (mut place, mut read) = (Place::START, 0);
        loop {
            let settled = settled(&world, company);
            let asked = EventsAfter { place, kinds: Kinds::default(), limit: PAGE };
            let page = world.read(company, move |snapshot| event_feed::after(snapshot, &asked, settled));
            (place, read) = (page.next, read + page.payloads.len());
            if !page.more {
                break;
            }
        }
        assert_eq!(read, events);
        let mut reader = AccountReader::all(&world, company, None);
        assert_eq!(reader.copy.len(), ROWS);
        let id = reader.order[ROWS / 2];
        let changed = world.write(company, move |tx| {
            let before = account::lock(tx, &[id])?.remove(0);
            let after = Account { name: "Changed".to_owned(), updated_at: time(1), ..before.clone() };
            account::update(tx, &[Edit { before: &before, after: &after }])
        });
        changed.expect("changed");
        reader.step(&world, company);
        assert_eq!((reader.order.len(), reader.copy[&id].name.as_str()), (ROWS + 1, "Changed"));
        let since = AccountReader::all(&world, company, Some(time(0)));
        assert_eq!(since.order, [id], "the others changed long before");
    });
}

/// A node of the previous release knows neither numbers nor tombstones. It can only be there if it used the database
/// before.
#[test]
fn changes_by_the_previous_release_are_followed_too() {
    let database = Database::Postgres(fresh_postgres());
    old_database::create(&database, 1);
    let world = World { store: open(&patient(database.clone())), database };
    let company = CompanyId(1);
    world.change("DELETE FROM event");
    world.insert(company, vec![imported_account(1, "crm-1"), imported_account(2, "crm-2")]);
    let mut reader = AccountReader::all(&world, company, None);
    let mut events = EventReader::new();
    world.change("UPDATE account SET name = 'Renamed' WHERE imported_id = 'crm-1'");
    world.change("DELETE FROM account WHERE imported_id = 'crm-2'");
    world.change(&format!(
        "INSERT INTO account (company, id, name, name_folded, status, custom_fields, campaign_hold, created_at, \
         updated_at) VALUES ({}, decode('{:032x}', 'hex'), 'Added', 'added', 'prospect', '{{}}', 0, 1, 1)",
        company.0, 3
    ));
    world.change(&format!(
        "INSERT INTO event (company, id, kind, payload, created_at) \
         VALUES ({}, decode('{:032x}', 'hex'), 'account.created', '7', 1)",
        company.0, 7
    ));
    while reader.step(&world, company) {}
    let names: Vec<&str> = reader.copy.values().map(|account| account.name.as_str()).collect();
    assert_eq!(names, ["account 0", "Renamed", "Added"]);
    events.step(&world, company, &[]);
    assert_eq!(events.seen, [7]);
}

/// No node of the previous release can know it, so nothing is done for one at each write.
#[test]
fn a_new_database_has_no_triggers_for_the_previous_release() {
    let database = Database::Postgres(fresh_postgres());
    let world = World { store: open(&patient(database.clone())), database };
    assert_eq!(world.number("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"), 0);
}
