//! What is stored about the person who asks: their login, and what the company they are in recorded of them.
//!
//! Their other companies aren't read: each of them may ask for more than this session has proved.

use rapport_domain::audit::Filter;
use rapport_domain::history::Actor;
use rapport_domain::id::{AuditId, PersonId};
use rapport_domain::second_factor::Passkey;
use rapport_domain::time::Time;
use rapport_store::audit::AuditEntry;
use rapport_store::company_data::{Place as RowPlace, Rows, page_of_person};
use rapport_store::own_data::{self, OwnInvitation, OwnLogin, OwnMembership};
use rapport_store::session::Listed;
use rapport_store::{Error, Snapshot, address_change, audit, session};
use serde_json::{Map, Value, json};

use crate::read::Viewer;
use crate::read::factors::{self, Factors};

/// Entries of the audit log per page.
const ENTRIES: i64 = 100;

/// The person and their login, as one object; `None` if the viewer isn't a person.
pub fn login(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Option<Map<String, Value>>, Error> {
    let Some(person) = viewer.person() else { return Ok(None) };
    let Some(login) = own_data::login(snapshot, person)? else { return Ok(None) };
    let company = &viewer.caller.company;
    let mut companies = own_data::memberships(snapshot, person)?;
    let (mut factors, mut resets, mut changes, mut invitations) = (None, Vec::new(), Vec::new(), Vec::new());
    let sessions = if viewer.caller.by_sso {
        // It knows one company, and not what the login does elsewhere.
        companies.retain(|membership| membership.project == company.slug.as_str());
        session::of_member(snapshot, person)?
    } else {
        factors = Some(factors::of(snapshot, person)?);
        resets = own_data::resets(snapshot, person)?;
        changes = address_change::of_person(snapshot, person)?;
        // Somebody else may own an address that was never proven.
        if login.proven_at.is_some() {
            invitations = own_data::invitations(snapshot, &login.email)?;
        }
        session::of_person(snapshot, person)?
    };
    let object = json!({
        "exported_at": viewer.now.to_string(),
        "records_of": { "project": company.slug.as_str(), "company": company.name },
        "login": shown_login(person, &login),
        "companies": companies.iter().map(shown_membership).collect::<Vec<_>>(),
        "sessions": sessions.iter().map(shown_session).collect::<Vec<_>>(),
        "second_factors": factors.as_ref().map(shown_factors),
        "password_resets": resets.into_iter().map(shown_link).collect::<Vec<_>>(),
        "address_changes": changes.iter().map(|(email, created_at, expires_at)| json!({
            "email": email.as_str(),
            "created_at": created_at.to_string(),
            "expires_at": expires_at.to_string(),
        })).collect::<Vec<_>>(),
        "invitations": invitations.iter().map(shown_invitation).collect::<Vec<_>>(),
    });
    Ok(match object {
        Value::Object(members) => Some(members),
        _ => None,
    })
}

/// Where a page of the records begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// What they did, in the audit log, before this entry.
    Did(Option<AuditId>),
    /// What was done to them.
    About(Option<AuditId>),
    Rows(RowPlace),
}

impl Place {
    pub const FIRST: Self = Self::Did(None);
}

/// Some records, each with the table it is from.
pub struct Records {
    pub items: Vec<Value>,
    pub next: Option<Place>,
}

/// The next records of the company about the viewer. There may be none on a page before the last.
pub fn records(snapshot: &mut Snapshot, viewer: &Viewer, place: Place) -> Result<Records, Error> {
    let Some(person) = viewer.person() else { return Ok(Records { items: Vec::new(), next: None }) };
    match place {
        Place::Did(before) => {
            let filter = Filter { person: Some(person), ..Filter::default() };
            let page = audit::list(snapshot, &filter, before, ENTRIES)?;
            let last = page.items.last().filter(|_| page.more).map(|entry| entry.id);
            let next = last.map_or(Place::About(None), |last| Place::Did(Some(last)));
            Ok(Records {
                items: page.items.iter().map(|entry| shown_entry(entry, person)).collect(),
                next: Some(next),
            })
        }
        Place::About(before) => {
            let entries = audit::about(snapshot, &person.to_string(), before, ENTRIES)?;
            let is_full = i64::try_from(entries.len()).unwrap_or(0) == ENTRIES;
            let last = entries.last().filter(|_| is_full).map(|entry| entry.id);
            let next = last.map_or(Place::Rows(RowPlace::FIRST), |last| Place::About(Some(last)));
            // What they did themselves is there already.
            let by_others = entries.iter().filter(|entry| !is_by(entry, person));
            Ok(Records {
                items: by_others.map(|entry| shown_entry(entry, person)).collect(),
                next: Some(next),
            })
        }
        Place::Rows(place) => {
            let Rows { table, rows, next } = page_of_person(snapshot, &place, person)?;
            let items = rows.into_iter().map(|row| json!({ "table": table, "row": row })).collect();
            Ok(Records { items, next: next.map(Place::Rows) })
        }
    }
}

fn is_by(entry: &AuditEntry, person: PersonId) -> bool {
    matches!(entry.actor, Actor::Person { id, .. } if id == person)
}

/// An entry of the audit log. Who else acted, and from where, is not about this person.
fn shown_entry(entry: &AuditEntry, person: PersonId) -> Value {
    let detail: Value = serde_json::from_str(&entry.detail).unwrap_or_default();
    let mut row = json!({
        "id": entry.id.to_string(), "at": entry.at.to_string(), "action": entry.action, "detail": detail,
        "target": entry.target,
    });
    if is_by(entry, person) {
        row["address"] = json!(entry.address);
        row["request_id"] = json!(entry.request_id);
    }
    json!({ "table": "audit", "row": row })
}

fn shown_login(person: PersonId, login: &OwnLogin) -> Value {
    json!({
        "id": person.to_string(),
        "email": login.email.as_str(),
        "name": login.name,
        "created_at": login.created_at.to_string(),
        "proven_at": login.proven_at.map(|at| at.to_string()),
    })
}

fn shown_membership(membership: &OwnMembership) -> Value {
    json!({
        "project": membership.project,
        "company": membership.company,
        "role": membership.role.as_str(),
        "created_at": membership.created_at.to_string(),
        "deactivated_at": membership.deactivated_at.map(|at| at.to_string()),
    })
}

/// What a person has, without what it is checked with.
fn shown_factors(factors: &Factors) -> Value {
    let passkey = |passkey: &Passkey| {
        json!({
            "id": passkey.id.to_string(),
            "name": passkey.name,
            "created_at": passkey.created_at.to_string(),
            "last_used_at": passkey.last_used_at.map(|at| at.to_string()),
        })
    };
    let app = factors.app.as_ref().map(|app| {
        json!({
            "confirmed_at": app.confirmed_at.to_string(),
            "last_used_at": app.last_used_at.map(|at| at.to_string()),
        })
    });
    json!({
        "passkeys": factors.passkeys.iter().map(passkey).collect::<Vec<_>>(),
        "authenticator_app": app,
        "unused_recovery_codes": factors.recovery_codes,
    })
}

fn shown_session(session: &Listed) -> Value {
    json!({
        "id": session.id.to_string(),
        "company": session.company,
        "created_at": session.created_at.to_string(),
        "last_seen_at": session.last_seen_at.to_string(),
        "second_factor_at": session.second_factor_at.map(|at| at.to_string()),
        "address": session.address,
        "browser": session.browser,
    })
}

fn shown_link((created_at, expires_at): (Time, Time)) -> Value {
    json!({ "created_at": created_at.to_string(), "expires_at": expires_at.to_string() })
}

fn shown_invitation(invitation: &OwnInvitation) -> Value {
    json!({
        "company": invitation.company,
        "role": invitation.role.as_str(),
        "created_at": invitation.created_at.to_string(),
        "expires_at": invitation.expires_at.to_string(),
    })
}
