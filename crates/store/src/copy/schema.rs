//! The tables of a database and their columns, as SQLite's catalogue lists them after the migrations.

use std::path::Path;

use rusqlite::Connection;

use super::Error;
use super::backup::METADATA;
use crate::engine::sqlite::from_sqlite;
use crate::migrate;
use crate::migrate::progress::Teller;
use crate::value::Type;

/// Not copied: the target has its own version, and no node of the source works on it.
const LEFT_OUT: [&str; 2] = ["node", "schema_version"];
/// What a node of the source holds. In a copy it is null, so that the first node there takes it.
const RELEASED: [(&str, &str); 4] =
    [("delivery", "owner"), ("import", "lease_until"), ("import", "runner"), ("manual_attempt", "owner")];

pub struct Schema {
    pub tables: Vec<Table>,
}

pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    key: Vec<String>,
}

pub struct Column {
    pub name: String,
    pub kind: Type,
    /// Null in a copy.
    pub is_released: bool,
}

impl Schema {
    /// This program's own schema.
    pub fn newest() -> Result<Self, Error> {
        let mut connection = Connection::open_in_memory().map_err(from_sqlite)?;
        migrate::sqlite::run(&mut connection, Path::new(":memory:"), &mut Teller::new(&mut |_| {}))?;
        Self::read(&connection)
    }

    /// The tables of a SQLite database, whatever its version is.
    pub fn read(connection: &Connection) -> Result<Self, Error> {
        Self::try_read(connection).map_err(|error| from_sqlite(error).into())
    }

    fn try_read(connection: &Connection) -> rusqlite::Result<Self> {
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' \
                     ORDER BY name";
        let mut names = connection.prepare(names)?;
        let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let is_copied =
            |name: &String| !LEFT_OUT.contains(&name.as_str()) && !METADATA.contains(&name.as_str());
        let tables = names.into_iter().filter(is_copied).map(|name| Table::read(connection, name));
        Ok(Self { tables: tables.collect::<rusqlite::Result<_>>()? })
    }

    /// A query for the name of a table that has data. Tables that no company or person has rows in don't count.
    pub fn first_filled(&self) -> String {
        let holds_data = |table: &&Table| {
            ["company", "person"].contains(&table.name.as_str())
                || table.columns.iter().any(|column| column.name == "company")
        };
        let found = self.tables.iter().filter(holds_data).map(|Table { name, .. }| {
            format!("SELECT CAST('{name}' AS TEXT) AS name WHERE EXISTS (SELECT 1 FROM {})", quoted(name))
        });
        format!("SELECT name FROM ({}) AS filled LIMIT 1", found.collect::<Vec<_>>().join(" UNION ALL "))
    }
}

impl Table {
    fn read(connection: &Connection, name: String) -> rusqlite::Result<Self> {
        let mut found =
            connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid")?;
        let mut found = found.query([&name])?;
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        while let Some(row) = found.next()? {
            let (column, kind, place): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let kind = match kind.as_str() {
                "TEXT" => Type::Text,
                "BLOB" => Type::Bytes,
                _ => Type::Int,
            };
            if place > 0 {
                key.push((place, column.clone()));
            }
            let is_released = RELEASED.contains(&(name.as_str(), column.as_str()));
            columns.push(Column { name: column, kind, is_released });
        }
        key.sort();
        Ok(Self { name, columns, key: key.into_iter().map(|(_, column)| column).collect() })
    }

    pub fn column_list(&self) -> String {
        self.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
    }

    /// The query that reads the table.
    pub fn select(&self, super::View { released, ordered }: super::View) -> String {
        let read = |column: &Column| {
            if released && column.is_released { "NULL".to_owned() } else { quoted(&column.name) }
        };
        let columns = self.columns.iter().map(read).collect::<Vec<_>>().join(", ");
        let select = format!("SELECT {columns} FROM {}", quoted(&self.name));
        if !ordered || self.key.is_empty() {
            return select;
        }
        let key = self.key.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ");
        format!("{select} ORDER BY {key}")
    }

    pub fn released(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_released)
    }
}

/// A name that may also be a keyword.
pub fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Statements that make a page-by-page copy one that no node has used.
pub fn release(schema: &Schema) -> String {
    let nodes = "DELETE FROM node;".to_owned();
    let updates = schema.tables.iter().flat_map(|table| {
        table.released().map(|column| {
            let (table, column) = (quoted(&table.name), quoted(&column.name));
            format!("UPDATE {table} SET {column} = NULL WHERE {column} IS NOT NULL;")
        })
    });
    std::iter::once(nodes).chain(updates).collect()
}
