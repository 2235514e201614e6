//! Things that only a server can do to us: cancel statements and drop connections.

use std::thread;
use std::time::{Duration, Instant};

use postgres::Client;
use rapport_domain::id::CompanyId;
use rapport_store::{Config, Database, Error, Lane, Verdict, account};
use rapport_testkit::open;

use crate::support::{LONG, World, account_id, answer_of, fresh_postgres, new_account, raw};

fn world_with_one_writer() -> (World, Client) {
    let url = fresh_postgres();
    let database = Database::Postgres(url.clone());
    let config = Config { writers: 1, readers: 1, ..Config::new(database.clone()) };
    (World { store: open(&config), database }, raw(&url))
}

fn insert(world: &World, company: CompanyId, number: u64) -> Result<(), Error> {
    let answer = world.submit(Lane::Outcome, company, move |tx| {
        account::insert(tx, &[&new_account(number, "Nordlys")])?;
        Ok(Verdict::Commit)
    });
    answer_of(&answer)
}

/// Runs a statement repeatedly until it affects a row.
fn until_done(client: &mut Client, sql: &str) {
    let deadline = Instant::now() + LONG;
    while client.execute(sql, &[]).expect("run") == 0 {
        assert!(Instant::now() < deadline, "never affected a row: {sql}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_writer_whose_wait_for_the_lock_was_cancelled_works_on() {
    let (world, mut raw) = world_with_one_writer();
    let company = world.company("acme");
    // The lock that ordinary work of a company shares, held exclusively by another session.
    let taken = raw.execute(
        "SELECT pg_advisory_lock(1918988400, $1::int)",
        &[&i32::try_from(company.0).expect("small")],
    );
    taken.expect("the lock");
    let waiting = world.submit(Lane::Outcome, company, |_| Ok(Verdict::Commit));
    until_done(
        &mut raw,
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event = 'advisory'",
    );
    assert!(matches!(answer_of(&waiting), Err(Error::Unavailable(_))));
    raw.execute("SELECT pg_advisory_unlock_all()", &[]).expect("released");
    insert(&world, company, 1).expect("the transaction without its lock has ended");
    assert!(world.account(company, account_id(1)).is_some());
}

#[test]
fn connections_that_were_cut_are_made_again() {
    let (world, mut raw) = world_with_one_writer();
    let company = world.company("acme");
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'rapport'";
    assert_eq!(raw.execute(cut, &[]).expect("run"), 2, "a reader and a writer");
    let deadline = Instant::now() + LONG;
    let mut number = 1;
    while let Err(error) = insert(&world, company, number) {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        assert!(Instant::now() < deadline, "never connected again");
        number += 1;
    }
    let read = || world.store.read(company, move |snapshot| account::get(snapshot, account_id(number)));
    let mut found = read().blocking_recv().expect("an answer");
    while let Err(error) = found {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        assert!(Instant::now() < deadline, "never connected again");
        found = read().blocking_recv().expect("an answer");
    }
    assert!(found.expect("read").is_some());
    assert_eq!(world.rows_of("account"), 1, "work that failed is not stored");
}

#[test]
fn a_connection_cut_inside_a_transaction_leaves_nothing() {
    let (world, raw) = world_with_one_writer();
    let company = world.company("acme");
    let raw = std::sync::Arc::new(parking_lot::Mutex::new(raw));
    let shared = std::sync::Arc::clone(&raw);
    let answer = world.submit(Lane::Outcome, company, move |tx| {
        account::insert(tx, &[&new_account(1, "Nordlys")])?;
        until_done(
            &mut shared.lock(),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND state = 'idle in transaction'",
        );
        // Work that ignores an error must still not continue on another connection, outside a transaction.
        let _ = account::insert(tx, &[&new_account(2, "Nordlys")]);
        let _ = account::existing(tx, &[account_id(3)]);
        let _ = account::insert(tx, &[&new_account(4, "Nordlys")]);
        Ok(Verdict::Commit)
    });
    assert!(answer_of(&answer).is_err());
    assert_eq!(world.rows_of("account"), 0);
    insert(&world, company, 3).expect("a new connection");
}
