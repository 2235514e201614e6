//! The event catalogue: every kind of event with when it is sent, every member of its payload, and an example.
//!
//! The members come from the types that payloads are made of (`domain/event.rs`), and the examples are payloads that a
//! test has made with the real service (`tests/api/catalogue.rs`). The page, `docs/events.md`, the OpenAPI document and
//! the JSON Schemas are all made from this.

mod members;
mod schema;
mod words;

pub use members::Member;
pub use schema::schema;
pub use words::{summary, when};

use std::sync::LazyLock;

use rapport_domain::event::Kind;
use serde_json::Value;

use crate::shared::prose::{Line, line};

/// Where the JSON Schemas of payloads are served, each as `account.created.json`.
pub const SCHEMAS_PATH: &str = "/api/schemas/events/";
/// Where the page is.
pub const PAGE: &str = "/webhooks/events";

/// One kind of event.
pub struct Entry {
    pub kind: Kind,
    pub summary: &'static str,
    pub when: &'static str,
    pub members: Vec<Member>,
    /// A payload, as JSON with line breaks.
    pub example: &'static str,
}

impl Entry {
    fn of(kind: Kind) -> Self {
        let members = members::of(kind);
        Self { kind, summary: summary(kind), when: when(kind), members, example: example_text(kind) }
    }

    /// The anchor of the event on the pages that show it.
    pub fn anchor(&self) -> String {
        format!("event-{}", self.kind.as_str().replace(['.', '_'], "-"))
    }

    /// When it is sent, with `code` marked up.
    pub fn occasion(&self) -> Line<'static> {
        line(self.when)
    }

    pub fn schema_path(&self) -> String {
        schema_path(self.kind)
    }
}

/// All kinds, in the order of the interface document.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| Kind::ALL.map(Entry::of).into());
    &ENTRIES
}

/// The path of the JSON Schema of a kind's payload.
pub fn schema_path(kind: Kind) -> String {
    format!("{SCHEMAS_PATH}{}.json", kind.as_str())
}

/// A payload of this kind, made by the real service.
pub fn example(kind: Kind) -> Value {
    serde_json::from_str(example_text(kind)).expect("a test checks the examples")
}

fn example_text(kind: Kind) -> &'static str {
    match kind {
        Kind::AccountCreated => include_str!("../../../../../docs/events/account.created.json"),
        Kind::AccountStatusChanged => include_str!("../../../../../docs/events/account.status_changed.json"),
        Kind::MessageInbound => include_str!("../../../../../docs/events/message.inbound.json"),
        Kind::WebhookTest => include_str!("../../../../../docs/events/webhook.test.json"),
        Kind::ClientContactDue => include_str!("../../../../../docs/events/client.contact_due.json"),
        Kind::AccountUpdated => include_str!("../../../../../docs/events/account.updated.json"),
        Kind::AccountDeleted => include_str!("../../../../../docs/events/account.deleted.json"),
        Kind::ContactLogged => include_str!("../../../../../docs/events/contact.logged.json"),
    }
}

#[cfg(test)]
mod tests;
