//! The list of encrypted columns.

use std::collections::BTreeSet;

use rapport_store::sealed::Owner;
use rapport_store::{Database, migrate_only};

/// If you encrypt another column, name it like these, and this test will find it.
#[test]
fn every_column_for_secrets_is_in_the_list() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rapport.db");
    migrate_only(&Database::Sqlite(path.clone())).expect("migrated");
    let connection = rusqlite::Connection::open(path).expect("opened");
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
               WHERE t.type = 'table' AND c.type = 'BLOB' AND (c.name LIKE '%secret%' OR c.name LIKE '%sealed%')";
    let mut statement = connection.prepare(sql).expect("prepared");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    let found: BTreeSet<(String, String)> = rows.map(|row| row.expect("a row")).collect();
    let own = |name: &str| name.to_owned();
    let listed: BTreeSet<(String, String)> =
        Owner::BEFORE_ALL.map(Owner::column).map(|(table, column)| (own(table), own(column))).into();
    assert_eq!(found, listed);
}
