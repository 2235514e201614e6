//! Plain SQL on either engine, for tests that look past the service.

use ::postgres::{Client, NoTls, SimpleQueryMessage};
use rapport_store::Database;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::postgres::{on_a_plain_thread, plain};

/// Runs statements that return nothing.
pub fn run(database: &Database, sql: &str) {
    match database {
        Database::Sqlite(path) => {
            let connection = Connection::open(path).expect("opening the database");
            connection.execute_batch(sql).unwrap_or_else(|error| panic!("{error} in: {}", shortened(sql)));
        }
        Database::Postgres(url) => on_a_plain_thread(|| {
            let mut client = Client::connect(plain(url), NoTls).expect("connecting to the database");
            client.batch_execute(sql).unwrap_or_else(|error| panic!("{error} in: {}", shortened(sql)));
        }),
    }
}

/// The one value that a query finds, as text.
pub fn ask(database: &Database, sql: &str) -> String {
    try_ask(database, sql).unwrap_or_else(|error| panic!("{error} in: {}", shortened(sql)))
}

/// The same, or the reason why it failed.
pub fn try_ask(database: &Database, sql: &str) -> Result<String, String> {
    match database {
        Database::Sqlite(path) => {
            let read = |connection: Connection| connection.query_row(sql, [], |row| row.get_ref(0).map(text));
            Connection::open(path).and_then(read).map_err(|error| error.to_string())
        }
        Database::Postgres(url) => on_a_plain_thread(|| {
            let mut client = Client::connect(plain(url), NoTls).map_err(|error| error.to_string())?;
            let messages = client.simple_query(sql).map_err(|error| error.to_string())?;
            let value = messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            value.ok_or_else(|| "no row".to_owned())
        }),
    }
}

/// All rows that a query finds, each as the text of its columns. A null is an empty text.
pub fn rows(database: &Database, sql: &str) -> Vec<Vec<String>> {
    match database {
        Database::Sqlite(path) => {
            let connection = Connection::open(path).expect("opening the database");
            let read = || {
                let mut statement = connection.prepare(sql)?;
                let columns = statement.column_count();
                let row = |row: &rusqlite::Row| (0..columns).map(|at| row.get_ref(at).map(text)).collect();
                statement.query_map([], row)?.collect::<Result<_, _>>()
            };
            read().unwrap_or_else(|error: rusqlite::Error| panic!("{error} in: {}", shortened(sql)))
        }
        Database::Postgres(url) => on_a_plain_thread(|| {
            let mut client = Client::connect(plain(url), NoTls).expect("connecting to the database");
            let messages = client.simple_query(sql);
            let messages = messages.unwrap_or_else(|error| panic!("{error} in: {}", shortened(sql)));
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            rows.map(|row| (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
                .collect()
        }),
    }
}

fn text(value: ValueRef) -> String {
    match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Null => String::new(),
    }
}

fn shortened(sql: &str) -> String {
    sql.chars().take(200).collect()
}
