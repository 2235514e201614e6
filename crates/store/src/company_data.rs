//! All data of a company, table by table: to export it and to delete it, both in small steps.
//!
//! `tables` lists every table with rows of a company, its key, and what an export says of it. A test compares the list
//! with the database, so that no table and no column can be forgotten.

mod shape;
mod tables;

use std::fmt::Write as _;

use rapport_domain::id::PersonId;
use serde_json::{Map, Value as Json};

use crate::error::Error;
use crate::tx::{Snapshot, Tx};
use crate::value::{Cell, Row, Type, Value};
use shape::Shape;
use tables::{TABLES, Table};

/// Where a page of the export begins: a table, and the key of the row before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    table: usize,
    after: Vec<Cell>,
}

impl Place {
    pub const FIRST: Self = Self { table: 0, after: Vec::new() };

    fn of(table: usize) -> Option<Self> {
        (table < TABLES.len()).then_some(Self { table, after: Vec::new() })
    }
}

/// Some rows of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub table: &'static str,
    pub rows: Vec<Map<String, Json>>,
    /// Where the next page begins.
    pub next: Option<Place>,
}

/// Reads a page of everything that the company stored, secrets excepted.
pub fn page(snapshot: &mut Snapshot, place: &Place) -> Result<Rows, Error> {
    read(snapshot, place, Table::is_exported)
}

/// Reads a page of what a person did or was sent. Rows of others are left out, so a page may be empty.
pub fn page_of_person(snapshot: &mut Snapshot, place: &Place, person: PersonId) -> Result<Rows, Error> {
    let person = person.to_string();
    let mut found = read(snapshot, place, |table| table.people().next().is_some())?;
    let table = TABLES.iter().find(|table| table.name == found.table);
    let columns: Vec<&str> = table.into_iter().flat_map(Table::people).collect();
    found.rows.retain(|row| columns.iter().any(|column| row.get(*column).is_some_and(|id| *id == person)));
    Ok(found)
}

/// Reads the next page of the tables that are wanted.
fn read(snapshot: &mut Snapshot, place: &Place, is_wanted: impl Fn(&Table) -> bool) -> Result<Rows, Error> {
    let mut place = place.clone();
    loop {
        let Place { table: number, after } = place;
        let Some(table) = TABLES.get(number) else {
            return Ok(Rows { table: "", rows: Vec::new(), next: None });
        };
        let mut found = if is_wanted(table) { table.read(snapshot, &after)? } else { Vec::new() };
        let is_full = i64::try_from(found.len()).unwrap_or(0) == table.rows;
        let last = found.last_mut().filter(|_| is_full).map(|(key, _)| std::mem::take(key));
        let next = match last {
            Some(after) => Some(Place { table: number, after }),
            None => Place::of(number + 1),
        };
        let rows: Vec<Map<String, Json>> = found.into_iter().map(|(_, row)| row).collect();
        match next {
            Some(next) if rows.is_empty() => place = next,
            next => return Ok(Rows { table: table.name, rows, next }),
        }
    }
}

/// The number of tables that [`delete_some`] empties.
pub fn table_count() -> usize {
    TABLES.len()
}

/// Deletes some rows of a table; returns how many.
pub fn delete_some(tx: &mut Tx, table: usize) -> Result<usize, Error> {
    let Some(table) = TABLES.get(table) else { return Ok(0) };
    let mut keys = Vec::new();
    for mut row in tx.query_text(&table.first_keys(), &[Value::from(table.rows)])? {
        keys.extend(table.take_key(&mut row)?);
    }
    let values: Vec<Value> = keys.iter().map(Value::from).collect();
    tx.delete(&table.delete, &values)?;
    Ok(keys.len() / table.keys.len())
}

/// The first table that has a row of the company.
pub fn first_filled(snapshot: &mut Snapshot) -> Result<Option<usize>, Error> {
    for (number, table) in TABLES.iter().enumerate() {
        if !snapshot.query_text(&table.first_keys(), &[Value::from(1)])?.is_empty() {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// A row as it is exported, after its key.
type KeyedRow = (Vec<Cell>, Map<String, Json>);

impl Table {
    /// Selects the first keys of the company. `$2` is the limit.
    fn first_keys(&self) -> String {
        let keys = self.names("");
        // The order of the index; the number of an activity only tells equal ones apart.
        let order = keys.strip_suffix(", seq").unwrap_or(&keys);
        format!("SELECT {keys} FROM {} WHERE company = $1 ORDER BY {order} LIMIT $2", self.name)
    }

    /// Selects rows after a key, which begins at `$2`; the limit comes last.
    fn next_rows(&self) -> String {
        let Self { name, keys, columns, join, .. } = self;
        let (names, count) = (self.names("t."), keys.len());
        let mut selected = names.clone();
        for (column, _) in *columns {
            let owner = if column.contains('.') { "" } else { "t." };
            let _ = write!(selected, ", {owner}{column}");
        }
        let places = (2..count + 2).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        format!(
            "SELECT {selected} FROM {name} t{join} WHERE t.company = $1 AND ({names}) > ({places}) \
             ORDER BY {names} LIMIT ${}",
            count + 2
        )
    }

    fn names(&self, owner: &str) -> String {
        self.keys.iter().map(|(name, _)| format!("{owner}{name}")).collect::<Vec<_>>().join(", ")
    }

    /// Reads rows after a key, or the first ones, each with its key.
    fn read(&self, snapshot: &mut Snapshot, after: &[Cell]) -> Result<Vec<KeyedRow>, Error> {
        let mut values: Vec<Value> = after.iter().map(Value::from).collect();
        if values.is_empty() {
            values.extend(self.keys.iter().map(|(_, kind)| before_all(*kind)));
        }
        values.push(Value::from(self.rows));
        let rows = snapshot.query_text(&self.next_rows(), &values)?;
        rows.into_iter().map(|mut row| Ok((self.take_key(&mut row)?, self.take_row(&mut row)?))).collect()
    }

    fn take_key(&self, row: &mut Row) -> Result<Vec<Cell>, Error> {
        self.keys.iter().map(|_| row.take()).collect()
    }

    fn take_row(&self, row: &mut Row) -> Result<Map<String, Json>, Error> {
        let mut members = Map::new();
        for (column, shape) in self.columns {
            let value = shape.show(row.take()?, &members);
            members.insert(shown_name(column).to_owned(), value);
        }
        Ok(members)
    }

    fn is_exported(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The columns that say whom a row is about, as far as rows are looked for by them. The audit log has an index.
    fn people(&self) -> impl Iterator<Item = &'static str> {
        let columns: &'static [(&'static str, Shape)] = if self.name == "audit" { &[] } else { self.columns };
        let is_person =
            |(name, shape): &&(&'static str, Shape)| matches!(shape, Shape::Actor(_)) || *name == "person";
        columns.iter().filter(is_person).map(|(name, _)| *name)
    }
}

/// The name of a column without that of its table.
fn shown_name(column: &'static str) -> &'static str {
    column.rsplit('.').next().unwrap_or(column)
}

/// A value before every key.
fn before_all(kind: Type) -> Value<'static> {
    match kind {
        Type::Int => Value::Int(i64::MIN),
        Type::Text => Value::Text(""),
        Type::Bytes => Value::Bytes(&[]),
    }
}

/// A table as the export describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub table: &'static str,
    /// What an export says; empty if the table isn't exported.
    pub columns: Vec<&'static str>,
    /// Columns that an exported table keeps to itself.
    pub left_out: &'static [&'static str],
}

/// Every table with rows of a company, except those with one row for each company.
pub fn described() -> Vec<Described> {
    let described = |table: &Table| Described {
        table: table.name,
        columns: table.columns.iter().map(|(column, _)| shown_name(column)).collect(),
        left_out: table.left_out,
    };
    TABLES.iter().map(described).collect()
}

/// The statements that are composed here, for the test of their plans.
#[cfg(test)]
pub(crate) fn planned() -> Vec<(String, String)> {
    let planned = |table: &Table| {
        let rows = table.is_exported().then(|| ("rows", table.next_rows()));
        let keys = [("keys", table.first_keys()), ("delete", table.delete.postgres().to_owned())];
        let named = |(what, text): (&str, String)| (format!("company_data::{}::{what}", table.name), text);
        keys.into_iter().chain(rows).map(named).collect::<Vec<_>>()
    };
    TABLES.iter().flat_map(planned).collect()
}
