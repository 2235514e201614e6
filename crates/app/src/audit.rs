//! The audit log: one entry for every change to settings, keys, members, channels and webhooks.

use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
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

/// Like [`record`], for someone who proved their identity with a link from a mail.
pub(crate) fn record_by(
    tx: &mut Tx,
    cx: &Context,
    actor: Actor,
    action: Action,
    target: Option<String>,
    detail: &Value,
) -> Result<(), rapport_store::Error> {
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
    audit::insert(tx, &entry)
}

/// The members in which two objects differ, each as `{"from", "to"}`.
pub(crate) fn changes(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return json!({}) };
    let changed = to.iter().filter(|(name, value)| from.get(*name) != Some(*value));
    let change = |(name, value): (&String, &Value)| {
        (name.clone(), json!({ "from": from.get(name).unwrap_or(&Value::Null), "to": value }))
    };
    Value::Object(changed.map(change).collect::<Map<_, _>>())
}
