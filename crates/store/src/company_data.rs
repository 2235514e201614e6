//! All data of a company, or of one of its accounts, table by table: to export it, and to delete a company, both in small
//! steps.
//!
//! `tables` lists every table with rows of a company, its key, what an export says of it, and how its rows belong to an
//! account. A test compares the list with the database, so that no table and no column can be forgotten.

mod shape;
mod tables;
mod way;

use std::fmt::Write as _;

use rapport_domain::id::PersonId;
use serde_json::{Map, Value as Json};

use crate::error::Error;
use crate::tx::{Snapshot, Tx};
use crate::value::{Cell, Row, Type, Value};
use shape::Shape;
use tables::{Keys, TABLES, Table};
use way::Way;

pub use way::Subject;

/// What an export is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the company stored.
    Company,
    /// Everything about one of its accounts, which may be deleted.
    Account(Subject),
}

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

/// Reads a page of everything that is stored about a company or an account, secrets excepted. It may be empty.
pub fn page(snapshot: &mut Snapshot, scope: &Scope, place: &Place) -> Result<Rows, Error> {
    read(snapshot, scope, place, |table| table.is_in(scope))
}

/// Reads a page of what a person did or was sent. Rows of others are left out, so a page may be empty.
pub fn page_of_person(snapshot: &mut Snapshot, place: &Place, person: PersonId) -> Result<Rows, Error> {
    let person = person.to_string();
    let mut found = read(snapshot, &Scope::Company, place, |table| table.people().next().is_some())?;
    let table = TABLES.iter().find(|table| table.name == found.table);
    let columns: Vec<&str> = table.into_iter().flat_map(Table::people).collect();
    found.rows.retain(|row| columns.iter().any(|column| row.get(*column).is_some_and(|id| *id == person)));
    Ok(found)
}

/// Reads the next page of the tables that are wanted.
fn read(
    snapshot: &mut Snapshot,
    scope: &Scope,
    place: &Place,
    is_wanted: impl Fn(&Table) -> bool,
) -> Result<Rows, Error> {
    let mut place = place.clone();
    loop {
        let Place { table: number, after } = place;
        let Some(table) = TABLES.get(number) else {
            return Ok(Rows { table: "", rows: Vec::new(), next: None });
        };
        let (rows, last) = if is_wanted(table) { table.read(snapshot, scope, &after)? } else { NOTHING };
        let is_left = last.is_some();
        let next = match last {
            Some(after) => Some(Place { table: number, after }),
            None => Place::of(number + 1),
        };
        match next {
            // A table without rows costs one statement. One that isn't read to its end may cost many.
            Some(next) if rows.is_empty() && !is_left => place = next,
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

/// Rows as they are exported, and the key to continue after, unless these were the last.
type Found = (Vec<Map<String, Json>>, Option<Vec<Cell>>);

const NOTHING: Found = (Vec::new(), None);

impl Table {
    /// Selects the first keys of the company. `$2` is the limit.
    fn first_keys(&self) -> String {
        let keys = self.names("");
        // The order of the index; the number of an activity only tells equal ones apart.
        let order = keys.strip_suffix(", seq").unwrap_or(&keys);
        format!("SELECT {keys} FROM {} WHERE company = $1 ORDER BY {order} LIMIT $2", self.name)
    }

    /// Selects rows of the company after a key, which begins at `$2`; the limit comes last.
    fn next_rows(&self) -> String {
        let source = format!("{} t{}", self.name, self.join);
        self.select(&source, "t.company = $1", &self.names("t."), 2)
    }

    /// Selects rows of an account after a key; the limit comes last.
    fn next_rows_of(&self, way: Way) -> String {
        let order: Vec<&str> = way.order().iter().map(|(name, _)| *name).collect();
        let condition = format!("t.company = $1 AND {}", way.condition());
        self.select(&way.source(self.name), &condition, &order.join(", "), way.first_place())
    }

    /// Selects rows in the order of a key, after one that begins at a place.
    fn select(&self, source: &str, condition: &str, order: &str, first: usize) -> String {
        let mut selected = order.to_owned();
        for (column, _) in self.columns {
            let owner = if column.contains('.') { "" } else { "t." };
            let _ = write!(selected, ", {owner}{column}");
        }
        let limit = first + order.split(", ").count();
        let places = (first..limit).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        format!(
            "SELECT {selected} FROM {source} WHERE {condition} AND ({order}) > ({places}) \
             ORDER BY {order} LIMIT ${limit}"
        )
    }

    fn names(&self, owner: &str) -> String {
        self.keys.iter().map(|(name, _)| format!("{owner}{name}")).collect::<Vec<_>>().join(", ")
    }

    /// Reads rows after a key, or the first ones.
    fn read(&self, snapshot: &mut Snapshot, scope: &Scope, after: &[Cell]) -> Result<Found, Error> {
        match (scope, self.of_account) {
            (Scope::Company, _) => self.read_by(snapshot, &self.next_rows(), &[], self.keys, after),
            (Scope::Account(subject), Some(way)) => self.read_of(snapshot, subject, way, after),
            (Scope::Account(_), None) => Ok(NOTHING),
        }
    }

    fn read_of(
        &self,
        snapshot: &mut Snapshot,
        subject: &Subject,
        way: Way,
        after: &[Cell],
    ) -> Result<Found, Error> {
        let text = subject.id.to_string();
        let key = way.key().values(subject, &text);
        let (rows, last) = self.read_by(snapshot, &self.next_rows_of(way), &key, way.order(), after)?;
        let Some(last_event) = way.last_event().filter(|_| last.is_none()) else { return Ok((rows, last)) };
        let first = after.first().map_or(before_all(Type::Bytes), Value::from);
        let events = snapshot.query_text(&last_event, &[&key[..], &[first]].concat())?;
        let last = events.into_iter().next().map(|mut row| row.take()).transpose()?;
        let rest = way.order().iter().skip(1).map(|(_, kind)| after_all(*kind));
        Ok((rows, last.map(|event| std::iter::once(event).chain(rest).collect())))
    }

    /// Reads rows with a statement whose parameters are the company, these, a key and the limit.
    fn read_by(
        &self,
        snapshot: &mut Snapshot,
        text: &str,
        values: &[Value],
        keys: Keys,
        after: &[Cell],
    ) -> Result<Found, Error> {
        let mut values = values.to_vec();
        if after.is_empty() {
            values.extend(keys.iter().map(|(_, kind)| before_all(*kind)));
        }
        values.extend(after.iter().map(Value::from));
        values.push(Value::from(self.rows));
        let (mut rows, mut last) = (Vec::new(), Vec::new());
        for mut row in snapshot.query_text(text, &values)? {
            last = keys.iter().map(|_| row.take()).collect::<Result<_, _>>()?;
            rows.push(self.take_row(&mut row)?);
        }
        let is_full = i64::try_from(rows.len()).unwrap_or(0) == self.rows;
        Ok((rows, Some(last).filter(|_| is_full)))
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

    fn shown_columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(column, _)| shown_name(column)).collect()
    }

    fn is_exported(&self) -> bool {
        !self.columns.is_empty()
    }

    fn is_in(&self, scope: &Scope) -> bool {
        self.is_exported() && (*scope == Scope::Company || self.of_account.is_some())
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

/// A value after every key.
fn after_all(kind: Type) -> Cell {
    match kind {
        Type::Int => Cell::Int(i64::MAX),
        // No text is a key that comes after another.
        Type::Text => Cell::Text(char::MAX.to_string()),
        Type::Bytes => Cell::Bytes(vec![u8::MAX; 32]),
    }
}

/// The tables of an export, each with its columns, in the order in which they are read.
pub fn exported(scope: &Scope) -> Vec<(&'static str, Vec<&'static str>)> {
    let tables = TABLES.iter().filter(|table| table.is_in(scope));
    tables.map(|table| (table.name, table.shown_columns())).collect()
}

/// A table as the export describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub table: &'static str,
    /// What an export says; empty if the table isn't exported.
    pub columns: Vec<&'static str>,
    /// Columns that an exported table keeps to itself.
    pub left_out: &'static [&'static str],
    /// Whether its rows are in the export of an account.
    pub is_of_account: bool,
}

/// Every table with rows of a company, except those with one row for each company.
pub fn described() -> Vec<Described> {
    let described = |table: &Table| Described {
        table: table.name,
        columns: table.shown_columns(),
        left_out: table.left_out,
        is_of_account: table.of_account.is_some(),
    };
    TABLES.iter().map(described).collect()
}

/// The statements that are composed here, for the test of their plans.
#[cfg(test)]
pub(crate) fn planned() -> Vec<(String, String)> {
    let planned = |table: &Table| {
        let rows = table.is_exported().then(|| ("rows", table.next_rows()));
        let of_account = table.of_account.map(|way| ("of_account", table.next_rows_of(way)));
        let last_event = table.of_account.and_then(Way::last_event).map(|text| ("last_event", text));
        let keys = [("keys", table.first_keys()), ("delete", table.delete.postgres().to_owned())];
        let named = |(what, text): (&str, String)| (format!("company_data::{}::{what}", table.name), text);
        keys.into_iter().chain(rows).chain(of_account).chain(last_event).map(named).collect::<Vec<_>>()
    };
    TABLES.iter().flat_map(planned).collect()
}
