//! The use cases as their callers meet them, each rule on both engines: the interface document and the
//! decisions beside it, sentence by sentence. `model.rs` runs random sequences against a plain model.

mod account;
mod audit;
mod bulk;
mod channel;
mod credential;
mod digest;
mod encryption_key;
mod fan_out;
mod identity;
mod import_runs;
mod imports;
mod inbound;
mod ingest;
mod invitation;
mod mail;
mod member;
mod model;
mod password_reset;
mod races;
mod reading;
mod reads;
mod redelivery;
mod retention;
mod saved_view;
mod settings;
mod tenancy;
mod upsert;
mod webhooks;

use rapport_app::Error;
use rapport_domain::event::Kind;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::{Source, Status};
use rapport_testkit::TestCompany;
use serde_json::Value;

/// An account's moves, oldest first; the first entry has no `from`.
fn moves(company: &TestCompany, account: AccountId) -> Vec<(Option<Status>, Status, Source)> {
    company.history(account).into_iter().map(|entry| (entry.from, entry.to, entry.source)).collect()
}

fn kinds(company: &TestCompany, account: AccountId) -> Vec<Kind> {
    company.events(account).into_iter().map(|event| event.kind).collect()
}

/// The `data` of an account's payloads, oldest first.
fn payloads(company: &TestCompany, account: AccountId) -> Vec<Value> {
    let events = company.events(account);
    let read = |text: &str| serde_json::from_str::<Value>(text).expect("a payload is JSON")["data"].take();
    events.iter().map(|event| read(&event.payload)).collect()
}

/// Why something was refused, in short form: `conflict imported_id_taken`, `invalid /name empty`.
fn refusal<T>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(_) => panic!("expected a refusal, but it succeeded"),
        Err(Error::Unauthenticated) => "unauthenticated".to_owned(),
        Err(Error::Forbidden { code, .. }) => format!("forbidden {code}"),
        Err(Error::NotFound(what)) => format!("no such {what}"),
        Err(Error::Conflict { code, .. }) => format!("conflict {code}"),
        Err(Error::Invalid(invalid)) => {
            let faults: Vec<String> =
                invalid.0.iter().map(|error| format!("{} {}", error.pointer, error.code)).collect();
            format!("invalid {}", faults.join(", "))
        }
        Err(other) => panic!("expected a refusal, got {other:?}"),
    }
}
