//! PgBouncer in front of PostgreSQL: session mode works, transaction mode is refused.

use rapport_store::doctor::{Level, examine};
use rapport_store::{Config, Database, Store, migrate_only};
use rapport_testkit::raw::ask;
use rapport_testkit::{Pgbouncer, PostgresServer};

use crate::support::{World, account_id, new_account, raw};

const REFUSAL: &str = "connection pooler in transaction mode";

fn pooled(settings: &[&str]) -> (Pgbouncer, String) {
    let server = PostgresServer::shared();
    let pooler = Pgbouncer::start(server, settings);
    let url = pooler.url(&server.fresh_database());
    (pooler, url)
}

#[track_caller]
fn is_refused(url: &str) {
    let database = Database::Postgres(url.to_owned());
    for problem in [Store::open(&Config::new(database.clone())).err(), migrate_only(&database).err()] {
        let problem = problem.expect("refused").to_string();
        assert!(problem.contains(REFUSAL) && problem.contains("pool_mode = session"), "{problem}");
    }
    let findings = examine(&database);
    assert!(findings.iter().any(|finding| finding.level == Level::Fail && finding.text.contains(REFUSAL)));
    let is_empty = ask(&database, "SELECT to_regclass('schema_version') IS NULL");
    assert_eq!(is_empty, "t", "refused before anything is written");
}

#[test]
fn transaction_and_statement_mode_are_refused() {
    for mode in ["pool_mode = transaction", "pool_mode = statement"] {
        let (_pooler, url) = pooled(&[mode]);
        is_refused(&url);
    }
}

#[test]
fn a_pool_of_one_and_a_pool_that_takes_turns_are_recognized_too() {
    let (_pooler, url) = pooled(&["pool_mode = transaction", "default_pool_size = 1"]);
    is_refused(&url);

    let (_pooler, url) = pooled(&["pool_mode = transaction", "server_round_robin = 1"]);
    // Several sessions that are free afterwards.
    let mut clients: Vec<_> = (0..12).map(|_| raw(&url)).collect();
    for client in &mut clients {
        client.batch_execute("BEGIN; SELECT 1").expect("begun");
    }
    for client in &mut clients {
        client.batch_execute("COMMIT").expect("ended");
    }
    is_refused(&url);
}

#[test]
fn session_mode_works() {
    let (_pooler, url) = pooled(&["pool_mode = session"]);
    let database = Database::Postgres(url);
    let store = Store::open(&Config::new(database.clone())).expect("a database that opens");
    let world = World { store, database };
    let company = world.company("acme");
    world.insert(company, vec![new_account(1, "Nordlys")]);
    assert!(world.account(company, account_id(1)).is_some());
}
