//! The audit log: one line for every change of settings, keys, members, channels and webhooks.

use rapport_store::Tx;
use rapport_store::audit::{self, AuditEntry};
use serde_json::Value;

use crate::command::Context;

/// Writes down who did what; `detail` holds the change and never a secret.
pub(crate) fn record(
    tx: &mut Tx,
    cx: &Context,
    action: &str,
    target: Option<String>,
    detail: &Value,
) -> Result<(), rapport_store::Error> {
    let entry = AuditEntry {
        id: cx.id(),
        actor: cx.actor().clone(),
        action: action.to_owned(),
        target,
        detail: detail.to_string(),
        at: cx.now,
    };
    audit::insert(tx, &entry)
}
