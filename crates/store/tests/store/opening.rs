//! Opening a database: migrated once, newer schemas refused, several processes at once.

use std::thread;

use rapport_store::{Config, Database, Error, Store, account, migrate_only};

use crate::support::{World, account_id, for_each_database, new_account, raw};

fn open(database: &Database) -> World {
    let store = Store::open(&Config::new(database.clone())).expect("a database that opens");
    World { store, database: database.clone() }
}

fn run(database: &Database, sql: &str) {
    match database {
        Database::Sqlite(path) => {
            rusqlite::Connection::open(path).expect("opened").execute_batch(sql).expect("run");
        }
        Database::Postgres(url) => raw(url).batch_execute(sql).expect("run"),
    }
}

#[test]
fn opening_again_migrates_nothing_and_keeps_everything() {
    for_each_database(|database| {
        let world = open(&database);
        let company = world.company("acme");
        world.insert(company, vec![new_account(1, "Nordlys")]);
        let versions = world.rows_of("schema_version");
        let newest = world.number("SELECT max(version) FROM schema_version");
        assert_eq!(versions, newest, "one row per migration");
        drop(world);
        let again = open(&database);
        assert_eq!(again.rows_of("schema_version"), versions);
        assert_eq!(migrate_only(&database).expect("migrated"), newest);
        assert!(again.account(company, account_id(1)).is_some());
    });
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    for_each_database(|database| {
        let known = migrate_only(&database).expect("migrated");
        run(&database, "INSERT INTO schema_version (version) VALUES (1000)");
        let refused = Store::open(&Config::new(database.clone())).err().expect("refused").to_string();
        for part in ["schema version 1000", &format!("up to {known}"), "newer rapport"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(migrate_only(&database).is_err());
        run(&database, "DELETE FROM schema_version WHERE version = 1000");
        let world = open(&database);
        assert_eq!(world.rows_of("schema_version"), known);
    });
}

#[test]
fn many_open_a_fresh_database_at_once() {
    for _ in 0..5 {
        for_each_database(|database| {
            let opened: Vec<Result<Store, Error>> = thread::scope(|scope| {
                let open = || Store::open(&Config::new(database.clone()));
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|thread| thread.join().expect("joined")).collect()
            });
            for store in &opened {
                assert!(store.is_ok(), "{:?}", store.as_ref().err());
            }
            let newest = open(&database).number("SELECT max(version) FROM schema_version");
            assert_eq!(open(&database).rows_of("schema_version"), newest);
        });
    }
}

#[test]
fn two_stores_write_one_database_side_by_side() {
    for_each_database(|database| {
        let worlds = [open(&database), open(&database)];
        let company = worlds[0].company("acme");
        thread::scope(|scope| {
            for (half, world) in (0..).zip(&worlds) {
                scope.spawn(move || {
                    for n in 0..40 {
                        let number = n * 2 + half;
                        let insert = move |tx: &mut rapport_store::Tx| {
                            account::insert(tx, &[&new_account(number, "Nordlys")])
                        };
                        assert!(world.write(company, insert).expect("written"));
                    }
                });
            }
        });
        let ids: Vec<_> = (0..100).map(account_id).collect();
        for world in &worlds {
            let ids = ids.clone();
            let found = world.read(company, move |snapshot| account::existing(snapshot, &ids));
            assert_eq!(found.len(), 80, "each sees the other's writes");
        }
    });
}

#[test]
fn a_database_that_cannot_be_opened_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = directory.path().join("missing").join("rapport.db");
    let error = Store::open(&Config::new(Database::Sqlite(nowhere))).err().expect("refused");
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("missing")), "{error}");
    let text = directory.path().join("text.db");
    std::fs::write(&text, "this is a letter, not a database, and long enough to be read as one".repeat(50))
        .expect("written");
    let error = Store::open(&Config::new(Database::Sqlite(text))).err().expect("refused");
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("text.db")), "{error}");
    for url in ["postgres://127.0.0.1:1/none", "not an address"] {
        let error = Store::open(&Config::new(Database::Postgres(url.to_owned()))).err().expect("refused");
        assert!(matches!(&error, Error::Unavailable(_)), "{error}");
    }
}
