//! The audit log: who did what, from where, and what it changed.
//!
//! Recorded are all changes to settings, exchange rates, keys, members, channels, campaigns, views, webhooks and imports; all
//! deletions, exports and bulk actions; changes that people make to accounts; logins, failed logins, logouts and
//! refusals.
//! Not recorded are programs that change accounts (upsert, ingest, PATCH with a token), because there are too many of
//! them and an account's history has its moves; nor contacts and messages, which the account's timeline keeps with
//! the name of who logged them. Corrections of contacts and messages are recorded, by people and programs alike.
//!
//! Each entry is in the service's log too, so that whatever carries logs to another machine carries it there: what
//! happens to the database doesn't change what was already sent.

use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
use rapport_domain::id::AuditId;
use rapport_store::Tx;
use rapport_store::audit::{self, AuditEntry};
use serde_json::{Map, Value, json};

use crate::command::Context;

/// Records who did what, and from where. `detail` describes the change and never contains a secret.
pub(crate) fn record(
    tx: &mut Tx,
    cx: &Context,
    action: Action,
    target: Option<String>,
    detail: &Value,
) -> Result<(), rapport_store::Error> {
    record_by(tx, cx, cx.actor().clone(), action, target, detail)
}

/// Like [`record`], for an entry whose detail is completed by later steps; returns its id.
pub(crate) fn begin(
    tx: &mut Tx,
    cx: &Context,
    action: Action,
    target: Option<String>,
    detail: &Value,
) -> Result<AuditId, rapport_store::Error> {
    insert(tx, cx, cx.actor().clone(), action, target, detail)
}

/// Like [`record`], for someone who proved their identity with a link from a mail.
pub(crate) fn record_by(
    tx: &mut Tx,
    cx: &Context,
    actor: Actor,
    action: Action,
    target: Option<String>,
    detail: &Value,
) -> Result<(), rapport_store::Error> {
    insert(tx, cx, actor, action, target, detail).map(drop)
}

fn insert(
    tx: &mut Tx,
    cx: &Context,
    actor: Actor,
    action: Action,
    target: Option<String>,
    detail: &Value,
) -> Result<AuditId, rapport_store::Error> {
    let entry = AuditEntry {
        id: cx.id(),
        actor,
        action: action.as_str().to_owned(),
        target,
        detail: detail.to_string(),
        at: cx.now,
        address: cx.address_text(),
        request_id: cx.origin.map(|origin| origin.request.as_str().to_owned()),
    };
    audit::insert(tx, &entry)?;
    let id = entry.id;
    log_once_committed(tx, action, entry);
    Ok(id)
}

/// Logs an entry after the commit, and only then. Names and the detail are left out, because they may be personal.
fn log_once_committed(tx: &mut Tx, action: Action, entry: AuditEntry) {
    let company = tx.company().0;
    tx.after_commit(move || {
        let AuditEntry { id, actor, target, address, request_id, .. } = entry;
        tracing::info!(
            target: "audit",
            company,
            entry = %id,
            action = action.as_str(),
            actor = actor.kind(),
            actor_id = actor.id_text(),
            target_id = target.filter(|_| action.targets_an_id()),
            client = address,
            request_id,
            "recorded"
        );
    });
}

/// Whether the caller is a person, whose changes to accounts are recorded.
pub(crate) fn is_by_hand(cx: &Context) -> bool {
    matches!(cx.actor(), Actor::Person { .. })
}

/// The members in which two objects differ, each as `{"from", "to"}`. A member that one of them lacks is null.
pub(crate) fn changes(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return json!({}) };
    let names = from.keys().chain(to.keys().filter(|name| !from.contains_key(*name)));
    let change = |name: &String| {
        let value = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or(Value::Null);
        let (from, to) = (value(from), value(to));
        (from != to).then(|| (name.clone(), json!({ "from": from, "to": to })))
    };
    Value::Object(names.filter_map(change).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_members_are_changes_too() {
        let from = json!({"same": 1, "other": "a", "gone": true, "nothing": null});
        let to = json!({"same": 1, "other": "b", "new": [2]});
        let expected = json!({
            "other": {"from": "a", "to": "b"}, "gone": {"from": true, "to": null}, "new": {"from": null, "to": [2]},
        });
        assert_eq!(changes(&from, &to), expected);
    }
}
