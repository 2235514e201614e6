//! What the tests of the other crates share: a throw-away PostgreSQL server and a webhook receiver that can
//! misbehave. Nothing here is part of the service.

pub mod postgres;
pub mod receiver;

pub use crate::postgres::PostgresServer;
pub use crate::receiver::{Behaviour, ReceivedRequest, Receiver};
