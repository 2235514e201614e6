//! The interface of storage: one company's transaction, one company's read, and the read across all
//! companies.
//!
//! The company is bound here, not by callers: a company-scoped statement gets it as `$1`, so no query can
//! forget it. One transaction, one company.

use std::ops::{Deref, DerefMut};

use rapport_domain::id::CompanyId;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::{DeleteMany, InsertMany, Scope, Statement, UpdateMany};
use crate::value::{Row, Value};

/// The operations of an engine's connection inside an open transaction.
pub(crate) trait Connection {
    fn query(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Error>;
    /// Hands out the rows one by one, without a copy of what they hold.
    fn each(&mut self, statement: &Statement, values: &[Value], take: &mut Take) -> Result<(), Error>;
    /// Runs SQL composed at run time from constant parts; parameters as in a statement.
    fn query_text(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error>;
    fn execute(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Error>;
    /// Runs a statement with `= ANY($n)` as its last parameter.
    fn query_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error>;
    /// `values` are consecutive rows of `insert.width()` values each.
    fn insert(
        &mut self,
        insert: &InsertMany,
        company: CompanyId,
        values: &[Value],
    ) -> Result<Vec<Row>, Error>;
    fn update(&mut self, update: &UpdateMany, company: CompanyId, values: &[Value]) -> Result<(), Error>;
    fn delete(&mut self, delete: &DeleteMany, company: CompanyId, values: &[Value]) -> Result<(), Error>;
    /// One row: the database's name and version, and its size in bytes.
    fn facts(&mut self) -> Result<Vec<Row>, Error>;
    /// The database's own clock, if it has one.
    fn clock(&mut self) -> Result<Option<Time>, Error>;
    /// The number below which every change of the company is there, for snapshots that are taken later.
    fn settled(&mut self, company: CompanyId) -> Result<i64, Error>;
}

/// Takes the columns of one row, which are gone after it.
pub(crate) type Take<'t> = dyn FnMut(&[Value]) -> Result<(), Error> + 't;

/// One company's data at one moment. Read-only.
pub struct Snapshot<'c> {
    connection: &'c mut dyn Connection,
    company: CompanyId,
}

impl<'c> Snapshot<'c> {
    pub(crate) fn new(connection: &'c mut dyn Connection, company: CompanyId) -> Self {
        Self { connection, company }
    }

    pub fn company(&self) -> CompanyId {
        self.company
    }

    pub(crate) fn query(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Error> {
        let company = self.company;
        with_scope(statement, company, values, |values| self.connection.query(statement, values))
    }

    pub(crate) fn query_opt(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Option<Row>, Error> {
        Ok(self.query(statement, values)?.into_iter().next())
    }

    /// Hands out the rows one by one, without a copy of what they hold: for many rows on the hot path.
    pub(crate) fn each(
        &mut self,
        statement: &Statement,
        values: &[Value],
        mut take: impl FnMut(&[Value]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let company = self.company;
        with_scope(statement, company, values, |values| self.connection.each(statement, values, &mut take))
    }

    /// Runs a query with `= ANY($n)`, where `$n` is its last parameter. Rows come in any order.
    pub(crate) fn query_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error> {
        debug_assert!(statement.sql.starts_with("SELECT"), "{} is not a query", statement.name);
        self.run_keys(statement, values, keys)
    }

    fn run_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let company = self.company;
        with_scope(statement, company, values, |values| self.connection.query_keys(statement, values, keys))
    }

    /// See [`crate::change::settled`].
    pub(crate) fn settled(&mut self) -> Result<i64, Error> {
        self.connection.settled(self.company)
    }

    /// Runs SQL composed from constant parts; `$1` is the company.
    pub(crate) fn query_text(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let mut all = Vec::with_capacity(values.len() + 1);
        all.push(Value::from(self.company));
        all.extend_from_slice(values);
        self.connection.query_text(sql, &all)
    }
}

fn with_scope<T>(
    statement: &Statement,
    company: CompanyId,
    values: &[Value],
    run: impl FnOnce(&[Value]) -> T,
) -> T {
    match statement.scope {
        Scope::Reference => run(values),
        Scope::Company => {
            // On the stack, because every statement of the hot path gets here.
            let mut all = [Value::Null; MAX_VALUES + 1];
            assert!(values.len() <= MAX_VALUES, "{} binds too many values", statement.name);
            all[0] = Value::from(company);
            all[1..=values.len()].copy_from_slice(values);
            run(&all[..=values.len()])
        }
    }
}

const MAX_VALUES: usize = 16;

pub(crate) type AfterCommit = Box<dyn FnOnce() + Send>;

/// One company's transaction. Reads are those of `Snapshot`.
pub struct Tx<'c> {
    snapshot: Snapshot<'c>,
    after_commit: Vec<AfterCommit>,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(connection: &'c mut dyn Connection, company: CompanyId) -> Self {
        Self { snapshot: Snapshot::new(connection, company), after_commit: Vec::new() }
    }

    /// Runs a change with `= ANY($n)`, where `$n` is its last parameter; the rows are those of its RETURNING.
    pub(crate) fn execute_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error> {
        self.snapshot.run_keys(statement, values, keys)
    }

    pub(crate) fn execute(&mut self, statement: &Statement, values: &[Value]) -> Result<u64, Error> {
        let company = self.company();
        with_scope(statement, company, values, |values| self.snapshot.connection.execute(statement, values))
    }

    pub(crate) fn insert(&mut self, insert: &InsertMany, values: &[Value]) -> Result<Vec<Row>, Error> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let company = self.company();
        self.snapshot.connection.insert(insert, company, values)
    }

    pub(crate) fn update(&mut self, update: &UpdateMany, values: &[Value]) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let company = self.company();
        self.snapshot.connection.update(update, company, values)
    }

    pub(crate) fn delete(&mut self, delete: &DeleteMany, values: &[Value]) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let company = self.company();
        self.snapshot.connection.delete(delete, company, values)
    }

    /// The transaction that creates a company becomes that company's transaction.
    pub(crate) fn adopt(&mut self, company: CompanyId) {
        assert_eq!(self.snapshot.company, CompanyId(0), "one transaction, one company");
        self.snapshot.company = company;
    }

    /// Registers an action to run right after the commit, and only if it succeeds.
    pub fn after_commit(&mut self, action: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(action));
    }

    /// The result of the commit will be lost, so none of the actions may run.
    pub(crate) fn forget_after_commit(&mut self) {
        self.after_commit.clear();
    }

    pub(crate) fn into_after_commit(self) -> Vec<AfterCommit> {
        self.after_commit
    }
}

impl<'c> Deref for Tx<'c> {
    type Target = Snapshot<'c>;

    fn deref(&self) -> &Snapshot<'c> {
        &self.snapshot
    }
}

impl<'c> DerefMut for Tx<'c> {
    fn deref_mut(&mut self) -> &mut Snapshot<'c> {
        &mut self.snapshot
    }
}

/// A read across all companies. Read-only.
pub struct Across<'c> {
    connection: &'c mut dyn Connection,
}

impl<'c> Across<'c> {
    pub(crate) fn new(connection: &'c mut dyn Connection) -> Self {
        Self { connection }
    }

    pub(crate) fn query(&mut self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Error> {
        assert_eq!(statement.scope, Scope::Reference, "{} is scoped to a company", statement.name);
        self.connection.query(statement, values)
    }

    pub(crate) fn query_opt(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Option<Row>, Error> {
        Ok(self.query(statement, values)?.into_iter().next())
    }

    pub(crate) fn facts(&mut self) -> Result<Vec<Row>, Error> {
        self.connection.facts()
    }

    /// The database's own clock, which all nodes share; an embedded database has none.
    pub fn clock(&mut self) -> Result<Option<Time>, Error> {
        self.connection.clock()
    }

    /// Runs a statement with `= ANY($n)`, where `$n` is its last parameter.
    pub(crate) fn query_keys(
        &mut self,
        statement: &Statement,
        values: &[Value],
        keys: &[Value],
    ) -> Result<Vec<Row>, Error> {
        assert_eq!(statement.scope, Scope::Reference, "{} is scoped to a company", statement.name);
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.connection.query_keys(statement, values, keys)
    }
}
