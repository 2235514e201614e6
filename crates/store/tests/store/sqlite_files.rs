//! SQLite's files deleted or replaced while in use: nothing that would be lost is acknowledged.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rapport_store::{Config, Database, Error, Store};

use crate::support::{LONG, World, new_account};

fn wait_for_health(world: &World, is_healthy: bool) {
    let begun = Instant::now();
    while world.store.health().is_ok() != is_healthy {
        assert!(begun.elapsed() < LONG, "health stays {:?}", world.store.health());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Damages a file of a database in use, checks the reported fault, and undoes the damage.
fn check(file: &str, spoil: impl Fn(&Path), expected: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rapport.db");
    let database = Database::Sqlite(path.clone());
    let store = Store::open(&Config::new(database.clone())).expect("a database that opens");
    let world = World { store, database };
    let company = world.company("acme");
    let write = |number| {
        world.write(company, move |tx| rapport_store::account::insert(tx, &[&new_account(number, "Nordlys")]))
    };
    assert!(write(1).is_ok());
    assert!(world.store.health().is_ok());

    let file = directory.path().join(file);
    let aside: PathBuf = directory.path().join("aside");
    fs::rename(&file, &aside).expect("moved");
    spoil(&file);
    let refused = write(2).expect_err("refused");
    assert!(matches!(&refused, Error::Unavailable(fault) if fault.contains(expected)), "{refused}");
    assert!(refused.to_string().contains(&*file.to_string_lossy()), "{refused}");
    assert!(world.store.health().expect_err("not healthy").cause.contains(expected));

    fs::rename(&aside, &file).expect("put back");
    wait_for_health(&world, true);
    assert!(write(3).is_ok());
    // It is noticed without a write, too.
    fs::rename(&file, &aside).expect("moved");
    wait_for_health(&world, false);
    fs::rename(&aside, &file).expect("put back");
}

#[test]
fn a_deleted_database_is_noticed_and_takes_no_writes() {
    check("rapport.db", |_| {}, "was deleted");
}

#[test]
fn a_replaced_database_is_noticed_and_takes_no_writes() {
    let replace = |file: &Path| fs::write(file, "another").expect("written");
    check("rapport.db", replace, "was replaced");
}

#[test]
fn a_deleted_log_is_noticed_and_takes_no_writes() {
    check("rapport.db-wal", |_| {}, "was deleted");
}
