//! A server that goes silent: connections stay open and no responses arrive. Work ends in limited time, new
//! connections are made, and closing doesn't wait forever.

use std::time::{Duration, Instant};

use rapport_domain::id::CompanyId;
use rapport_store::{Config, Database, Error, Lane, Store, Verdict, account};
use rapport_testkit::postgres::plain;
use rapport_testkit::{PostgresProxy, open};

use crate::support::{LONG, World, account_id, answer_of, fresh_postgres, new_account, raw};

/// Well above the time to abandon a connection, far below the operating system's timeouts.
const LIMIT: Duration = Duration::from_secs(15);

fn world() -> (World, PostgresProxy, CompanyId) {
    let proxy = PostgresProxy::start(&fresh_postgres());
    let database = Database::Postgres(proxy.url().to_owned());
    let config = Config { writers: 1, readers: 1, ..Config::new(database.clone()) };
    let world = World { store: open(&config), database };
    let company = world.company("acme");
    (world, proxy, company)
}

fn insert(world: &World, company: CompanyId, number: u64) -> Result<(), Error> {
    let answer = world.submit(Lane::Outcome, company, move |tx| {
        account::insert(tx, &[&new_account(number, "Nordlys")])?;
        Ok(Verdict::Commit)
    });
    answer.recv_timeout(LONG).expect("an answer")
}

/// Repeats work until it succeeds; returns how long that took.
fn until_well(mut work: impl FnMut() -> Result<(), Error>) -> Duration {
    let since = Instant::now();
    while let Err(error) = work() {
        assert!(matches!(error, Error::Unavailable(_) | Error::Busy), "{error}");
        assert!(since.elapsed() < LONG, "never recovered: {error}");
    }
    since.elapsed()
}

#[test]
fn silent_connections_are_replaced_when_new_ones_work() {
    let (world, proxy, company) = world();
    insert(&world, company, 1).expect("a server that works");
    proxy.silence_open();
    let took = until_well(|| insert(&world, company, 2));
    assert!(took < LIMIT, "a write took {took:?}");
    let read = || {
        let read = world.store.read(company, |snapshot| account::get(snapshot, account_id(2)));
        read.blocking_recv().expect("an answer").map(|found| assert!(found.is_some()))
    };
    let took = until_well(read);
    assert!(took < LIMIT, "a read took {took:?}");
    assert_eq!(world.rows_of("account"), 2);
}

#[test]
fn a_silence_inside_a_transaction_undoes_it_and_frees_its_locks() {
    let (world, proxy, company) = world();
    insert(&world, company, 1).expect("a server that works");
    let proxy = std::sync::Arc::new(proxy);
    let shared = std::sync::Arc::clone(&proxy);
    let since = Instant::now();
    let answer = world.submit(Lane::Outcome, company, move |tx| {
        account::insert(tx, &[&new_account(2, "Nordlys")])?;
        shared.silence_open();
        account::insert(tx, &[&new_account(3, "Nordlys")])?;
        Ok(Verdict::Commit)
    });
    assert!(matches!(answer_of(&answer), Err(Error::Unavailable(_))), "nothing was committed");
    // The same keys: an abandoned session would still hold their locks.
    until_well(|| insert(&world, company, 2));
    assert!(since.elapsed() < LIMIT, "it took {:?}", since.elapsed());
    assert_eq!(world.rows_of("account"), 2);
}

#[test]
fn a_silence_at_the_commit_leaves_its_outcome_unknown() {
    let (world, proxy, company) = world();
    insert(&world, company, 1).expect("a server that works");
    let proxy = std::sync::Arc::new(proxy);
    let shared = std::sync::Arc::clone(&proxy);
    let answer = world.submit(Lane::Outcome, company, move |tx| {
        account::insert(tx, &[&new_account(2, "Nordlys")])?;
        shared.silence_open();
        Ok(Verdict::Commit)
    });
    let answer = answer_of(&answer);
    assert!(matches!(answer, Err(Error::OutcomeUnknown)), "{answer:?}");
}

#[test]
fn work_for_a_silent_server_is_rejected_in_time() {
    let (world, proxy, company) = world();
    proxy.silence();
    let _holds_the_writer = world.submit(Lane::Outcome, company, |_| Ok(Verdict::Commit));
    let _holds_the_reader = world.store.read(company, |_| Ok(()));
    let since = Instant::now();
    let write = world.submit(Lane::Interactive, company, |_| Ok(Verdict::Commit));
    let read = world.store.read(company, |_| Ok(()));
    assert!(answer_of(&write).is_err());
    assert!(read.blocking_recv().expect("an answer").is_err());
    assert!(since.elapsed() < LIMIT, "it took {:?}", since.elapsed());
    let health = world.store.health();
    proxy.heal();
    let took = until_well(|| insert(&world, company, 1));
    assert!(took < LIMIT, "recovered after {took:?} (was {health:?})");
}

#[test]
fn a_store_on_a_silent_server_closes_in_limited_time() {
    let (world, proxy, company) = world();
    proxy.silence();
    for _ in 0..20 {
        drop(world.submit(Lane::Outcome, company, |_| Ok(Verdict::Commit)));
    }
    let since = Instant::now();
    assert!(!world.store.close_within(Duration::from_millis(200)), "the writer waits for the server");
    assert!(since.elapsed() < LIMIT);
    drop(world);
    assert!(since.elapsed() < LIMIT, "dropping it must not wait: {:?}", since.elapsed());
}

#[test]
fn opening_on_a_silent_server_fails_in_limited_time() {
    let proxy = PostgresProxy::start(&fresh_postgres());
    proxy.silence();
    let since = Instant::now();
    let opened = Store::open(&Config::new(Database::Postgres(proxy.url().to_owned())));
    assert!(matches!(opened.err(), Some(Error::Unavailable(_))));
    assert!(since.elapsed() < LIMIT);
}

#[test]
fn a_slow_statement_is_not_taken_for_silence() {
    let (world, _proxy, company) = world();
    // Blocked by a lock for longer than we wait without asking the server.
    let Database::Postgres(url) = &world.database else { unreachable!("a PostgreSQL database") };
    let mut raw = raw(url);
    let since = Instant::now();
    loop {
        raw.batch_execute("BEGIN; LOCK TABLE account IN ACCESS EXCLUSIVE MODE").expect("the lock");
        let answer = world.submit(Lane::Outcome, company, move |tx| {
            account::insert(tx, &[&new_account(1, "Nordlys")])?;
            Ok(Verdict::Commit)
        });
        assert!(answer.recv_timeout(Duration::from_millis(4_500)).is_err(), "it waits for the lock");
        raw.batch_execute("COMMIT").expect("released");
        match answer_of(&answer) {
            // On a loaded machine the lock was held until the statement's own limit.
            Err(Error::Busy) if since.elapsed() < LONG => {}
            answer => break answer.expect("it was slow, not lost"),
        }
    }
    assert!(world.store.health().is_ok());
}

#[test]
fn a_server_that_only_reads_is_not_available_for_writing() {
    let (world, _proxy, company) = world();
    insert(&world, company, 1).expect("a server that works");
    let Database::Postgres(url) = &world.database else { unreachable!("a PostgreSQL database") };
    let name = plain(url).rsplit('/').next().expect("a name");
    let mut raw = raw(url);
    let switch = |raw: &mut postgres::Client, setting: &str| {
        raw.batch_execute("SET default_transaction_read_only = off").expect("set");
        raw.batch_execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = {setting}"))
            .expect("switched");
        // Sessions read the setting when they begin.
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND application_name = 'rapport'";
        raw.execute(end, &[]).expect("ended");
    };
    switch(&mut raw, "on");
    let refused = insert(&world, company, 2);
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let outage = world.store.health().expect_err("writes fail");
    assert!(outage.writes_only && outage.cause.contains("read-only"), "{outage:?}");
    let read = world.store.read(company, |snapshot| account::get(snapshot, account_id(1)));
    assert!(read.blocking_recv().expect("an answer").expect("read").is_some(), "reads still work");
    assert!(world.store.health().is_err(), "a successful read proves nothing about writing");
    switch(&mut raw, "off");
    let since = Instant::now();
    let mut number = 3;
    while world.store.health().is_err() {
        assert!(since.elapsed() < LONG, "never recovered");
        let _ = insert(&world, company, number);
        number += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
}
