//! What the tests of the other crates share: the application on either engine with a clock that tests move, a
//! throw-away PostgreSQL server and a proxy that breaks connections to it, a webhook receiver that can misbehave, a mail
//! server, and a browser. Nothing here is part of the service.

pub mod app;
pub mod browser;
pub mod hands;
pub mod mail;
pub mod postgres;
pub mod postgres_proxy;
pub mod receiver;

pub use crate::app::{Engine, SeededRandom, TestApp, TestClock, TestCompany, all, block_on};
pub use crate::browser::Browser;
pub use crate::hands::Hands;
pub use crate::mail::{MailSecurity, MailServer, ReceivedMail};
pub use crate::postgres::PostgresServer;
pub use crate::postgres_proxy::PostgresProxy;
pub use crate::receiver::{Behaviour, ReceivedRequest, Receiver};
