//! Statements: constants, each written once for both engines.

use std::sync::OnceLock;

use crate::dialect;
use crate::value::Type;

/// Whether a statement's `$1` is the company, bound by the transaction itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `$1` is the company; the caller's values begin at `$2`.
    Company,
    /// A reference table (companies, people, sessions) or a read across all companies.
    Reference,
}

#[derive(Debug)]
pub struct Statement {
    pub name: &'static str,
    pub sql: &'static str,
    pub scope: Scope,
    sqlite: OnceLock<String>,
}

impl Statement {
    pub const fn company(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, scope: Scope::Company, sqlite: OnceLock::new() }
    }

    pub const fn reference(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, scope: Scope::Reference, sqlite: OnceLock::new() }
    }

    pub fn sqlite(&self) -> &str {
        self.sqlite.get_or_init(|| dialect::to_sqlite(self.sql))
    }
}

/// Declares a module's statements and a list of them.
///
/// `company NAME = "…"` binds the company as `$1`; `reference NAME = "…"` does not.
macro_rules! statements {
    ($($scope:ident $name:ident = $sql:expr;)+) => {
        $(pub(crate) static $name: $crate::statement::Statement = $crate::statement::Statement::$scope(
            concat!(module_path!(), "::", stringify!($name)),
            $sql,
        );)+
        pub(crate) static STATEMENTS: &[&$crate::statement::Statement] = &[$(&$name),+];
    };
}
pub(crate) use statements;

/// Which rows of a table get the number of their change: see [`crate::change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    None,
    /// Each row has it.
    Row,
    /// Each row has it, and so has the log `TABLE_change`, because the rows change often. The first value of a row is its
    /// id, the last one when it was written.
    Log,
}

impl Numbering {
    pub fn is_numbered(self) -> bool {
        self != Self::None
    }
}

/// Inserts many rows into one table: one statement on PostgreSQL, one prepared statement per row on SQLite.
/// The company is the first column and bound by the transaction.
#[derive(Debug)]
pub struct InsertMany {
    pub table: &'static str,
    pub columns: &'static [(&'static str, Type)],
    /// `ON CONFLICT …`. No two rows of one call may have the same conflict key.
    pub tail: &'static str,
    /// The same on PostgreSQL.
    pub postgres_tail: &'static str,
    pub numbering: Numbering,
    /// Returns the first column of each row that was written: not of those that the tail left as they were.
    pub tells_written: bool,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl InsertMany {
    pub const fn new(
        table: &'static str,
        columns: &'static [(&'static str, Type)],
        tail: &'static str,
    ) -> Self {
        Self::with(table, columns, tail, Numbering::None)
    }

    const fn with(
        table: &'static str,
        columns: &'static [(&'static str, Type)],
        tail: &'static str,
        numbering: Numbering,
    ) -> Self {
        Self {
            table,
            columns,
            tail,
            postgres_tail: tail,
            numbering,
            tells_written: false,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
    }

    /// The same with another tail on PostgreSQL, where the engines differ in what a tail costs.
    #[must_use]
    pub const fn with_postgres_tail(mut self, tail: &'static str) -> Self {
        self.postgres_tail = tail;
        self
    }

    /// The same, and returns the first column of each row that was written.
    #[must_use]
    pub const fn telling_written(mut self) -> Self {
        self.tells_written = true;
        self
    }

    /// The same for a table whose rows have the number of their change.
    pub const fn numbered(
        table: &'static str,
        columns: &'static [(&'static str, Type)],
        tail: &'static str,
    ) -> Self {
        Self::with(table, columns, tail, Numbering::Row)
    }

    /// The same with a log of the changes. It returns the ids of the rows that were written.
    pub const fn logged(
        table: &'static str,
        columns: &'static [(&'static str, Type)],
        tail: &'static str,
    ) -> Self {
        Self::with(table, columns, tail, Numbering::Log).telling_written()
    }

    pub fn sqlite(&self) -> &str {
        self.sqlite.get_or_init(|| dialect::insert_sqlite(self))
    }

    pub fn postgres(&self) -> &str {
        self.postgres.get_or_init(|| dialect::insert_postgres(self))
    }

    pub fn width(&self) -> usize {
        self.columns.len()
    }
}

/// Deletes many rows of one table by key, like `InsertMany` inserts them.
#[derive(Debug)]
pub struct DeleteMany {
    pub table: &'static str,
    pub keys: &'static [(&'static str, Type)],
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl DeleteMany {
    pub const fn new(table: &'static str, keys: &'static [(&'static str, Type)]) -> Self {
        Self { table, keys, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    pub fn sqlite(&self) -> &str {
        self.sqlite.get_or_init(|| dialect::delete_sqlite(self))
    }

    pub fn postgres(&self) -> &str {
        self.postgres.get_or_init(|| dialect::delete_postgres(self))
    }

    pub fn width(&self) -> usize {
        self.keys.len()
    }
}

/// Updates many rows of one table by key; the values of a row are its keys, then its columns.
#[derive(Debug)]
pub struct UpdateMany {
    pub table: &'static str,
    pub keys: &'static [(&'static str, Type)],
    pub columns: &'static [(&'static str, Type)],
    pub numbering: Numbering,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl UpdateMany {
    pub const fn new(
        table: &'static str,
        keys: &'static [(&'static str, Type)],
        columns: &'static [(&'static str, Type)],
    ) -> Self {
        Self::with(table, keys, columns, Numbering::None)
    }

    const fn with(
        table: &'static str,
        keys: &'static [(&'static str, Type)],
        columns: &'static [(&'static str, Type)],
        numbering: Numbering,
    ) -> Self {
        Self { table, keys, columns, numbering, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    /// The same for a table whose rows have the number of their change, with a log of the changes.
    pub const fn logged(
        table: &'static str,
        keys: &'static [(&'static str, Type)],
        columns: &'static [(&'static str, Type)],
    ) -> Self {
        Self::with(table, keys, columns, Numbering::Log)
    }

    pub fn sqlite(&self) -> &str {
        self.sqlite.get_or_init(|| dialect::update_sqlite(self))
    }

    pub fn postgres(&self) -> &str {
        self.postgres.get_or_init(|| dialect::update_postgres(self))
    }

    pub fn width(&self) -> usize {
        self.keys.len() + self.columns.len()
    }
}
