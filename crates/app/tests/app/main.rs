//! The use cases as their callers meet them, each rule on both engines: the interface document and the
//! decisions beside it, sentence by sentence. `model.rs` runs random sequences against a plain model.

mod account;
mod address_change;
mod audit;
mod audit_lines;
mod bulk;
mod channel;
mod choose;
mod company_deletion;
mod corrections;
mod credential;
mod digest;
mod encryption_key;
mod erasure;
mod every_table;
mod exchange_rates;
mod fan_out;
mod feed;
mod full_export;
mod full_house;
mod identity;
mod import_runs;
mod imported_contact;
mod imports;
mod inbound;
mod ingest;
mod invitation;
mod leaving;
mod mail;
mod mail_limits;
mod member;
mod model;
mod notice;
mod own_data;
mod password;
mod password_reset;
mod races;
mod reading;
mod reads;
mod real_files;
mod redelivery;
mod repeats;
mod retention;
mod rights;
mod sample;
mod saved_view;
mod second_factor;
mod session;
mod settings;
mod sso;
mod sso_border;
mod sso_proof;
mod subscribers;
mod tenancy;
mod upsert;
mod upsert_batch;
mod webhooks;

use rapport_app::session::{Proven, read_cookie};
use rapport_app::{Access, Error};
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, PersonId};
use rapport_domain::member::Role;
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

/// A new member called Bo, who is logged in.
fn logged_in(company: &TestCompany, address: &str, role: Role) -> (PersonId, Access) {
    let person = company.employ(address, "Bo", role).person;
    let proven = Proven { person, company: company.id() };
    let cookie = company.write_as(&proven.access(), proven.begin(None)).expect("a session");
    (person, Access::Credential(read_cookie(&cookie).expect("a session")))
}

/// Why something was refused, in short form: `conflict imported_id_taken`, `invalid /name empty`.
fn refusal<T>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(_) => panic!("expected a refusal, but it succeeded"),
        Err(Error::Unauthenticated) => "unauthenticated".to_owned(),
        Err(Error::Forbidden { code, .. }) => format!("forbidden {code}"),
        Err(Error::NotFound(what)) => format!("no such {what}"),
        Err(Error::Conflict { code, .. }) => format!("conflict {code}"),
        Err(Error::TooMany { code, .. }) => format!("too many {code}"),
        Err(Error::Invalid(invalid)) => {
            let faults: Vec<String> =
                invalid.0.iter().map(|error| format!("{} {}", error.pointer, error.code)).collect();
            format!("invalid {}", faults.join(", "))
        }
        Err(other) => panic!("expected a refusal, got {other:?}"),
    }
}
