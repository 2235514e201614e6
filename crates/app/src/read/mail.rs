//! The mails of a company.

pub use rapport_store::mail::{Mail, list};
