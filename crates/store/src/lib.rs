//! Where it is kept: the only crate that knows SQL. SQLite and PostgreSQL behind one face.
//!
//! - `engine/` owns the connections and threads; work reaches them as jobs through `queue`.
//! - `tx` is the face: a `Tx` is one company's transaction, a `Snapshot` one company's read, an
//!   `Across` a read over all companies that cannot write.
//! - SQL is written once, with `$n`; what must differ between the engines stands in `dialect`.
//! - The other modules are the statements, one module a subject, returning domain types.

pub mod account;
pub mod account_list;
pub mod activity;
pub mod audit;
pub mod channel;
pub mod company;
pub mod credential;
pub mod delivery;
pub mod delivery_list;
mod dialect;
pub mod doctor;
mod engine;
pub mod erasure;
mod error;
pub mod event;
pub mod history;
pub mod import;
pub mod import_data;
pub mod manual_attempt;
pub mod member;
mod migrate;
pub mod node;
pub mod page;
mod queue;
pub mod redelivery;
pub mod retention;
mod statement;
mod tx;
mod value;
pub mod webhook;

pub use engine::{Config, Database, Figures, Query, Store, migrate_only};
pub use error::Error;
pub use queue::{Job, Lane, Verdict};
pub use statement::{InsertMany, Scope, Statement, UpdateMany};
pub use tx::{Across, Snapshot, Tx};
pub use value::{Cell, Row, Type, Value};

/// Every statement of the crate, for the test that prepares each on both engines.
pub fn all_statements() -> Vec<&'static Statement> {
    [
        account::STATEMENTS,
        account_list::STATEMENTS,
        activity::STATEMENTS,
        audit::STATEMENTS,
        channel::STATEMENTS,
        company::STATEMENTS,
        credential::STATEMENTS,
        delivery::STATEMENTS,
        delivery_list::STATEMENTS,
        erasure::STATEMENTS,
        event::STATEMENTS,
        history::STATEMENTS,
        import::STATEMENTS,
        import_data::STATEMENTS,
        manual_attempt::STATEMENTS,
        member::STATEMENTS,
        node::STATEMENTS,
        redelivery::STATEMENTS,
        retention::STATEMENTS,
        webhook::STATEMENTS,
    ]
    .concat()
}
