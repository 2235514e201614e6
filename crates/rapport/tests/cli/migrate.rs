//! `rapport migrate` on an older database: it says how far it is, and leaves a backup of an embedded one.

use std::os::unix::fs::PermissionsExt as _;

use rapport_store::Database;
use rapport_testkit::{old_database, raw};

use crate::program::Place;

const ACCOUNTS: usize = 100;

#[test]
fn an_upgrade_says_how_far_it_is() {
    Place::each(|place| {
        old_database::create(&place.database(), ACCOUNTS);
        let ended = place.run(&["migrate"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for line in [
            "schema version 4: filled, ",
            " rows of account",
            "schema version 11: built the index account_by_status on account (",
            "schema version 18: done (",
        ] {
            assert!(ended.stderr.contains(line), "{line:?} is missing in:\n{}", ended.stderr);
        }
        assert!(ended.stdout.contains("is at schema version"), "{}", ended.stdout);

        let again = place.run(&["migrate"]);
        assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "nothing to do");
        assert_eq!(again.stdout, ended.stdout);
    });
}

#[test]
fn the_backup_is_complete_and_private() {
    let place = Place::sqlite();
    old_database::create(&place.database(), ACCOUNTS);
    assert_eq!(place.run(&["migrate"]).code, Some(0));
    let files = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let names: Vec<_> = files.filter(|path| path.to_string_lossy().contains("rapport.db.")).collect();
    let [backup] = names.as_slice() else { panic!("{names:?}") };
    assert!(backup.to_string_lossy().ends_with("-from-v1"), "{backup:?}");
    assert_eq!(std::fs::metadata(backup).unwrap().permissions().mode() & 0o777, 0o600);
    let backup = Database::Sqlite(backup.clone());
    assert_eq!(raw::ask(&backup, "SELECT count(*) FROM account"), ACCOUNTS.to_string());
    assert_eq!(raw::ask(&backup, "PRAGMA integrity_check"), "ok");
}
