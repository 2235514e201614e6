//! What the tests of the other crates share: the application on either engine with a clock that tests move, a
//! throw-away PostgreSQL server, a webhook receiver that can misbehave, a mail server, and a browser. Nothing here is
//! part of the service.

mod acts;
pub mod app;
pub mod browser;
pub mod gate;
pub mod hands;
pub mod mail;
pub mod postgres;
pub mod receiver;
mod sight;

pub use crate::app::{Engine, SeededRandom, TestApp, TestClock, TestCompany, all, block_on};
pub use crate::browser::Browser;
pub use crate::gate::Gate;
pub use crate::hands::Hands;
pub use crate::mail::{MailSecurity, MailServer, ReceivedMail};
pub use crate::postgres::PostgresServer;
pub use crate::receiver::{Behaviour, ReceivedRequest, Receiver};
pub use crate::sight::PATIENCE;
