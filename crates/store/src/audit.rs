//! The audit log: who changed settings, keys, members and webhooks, when and from where. Never contains
//! secrets.

use rapport_domain::history::Actor;
use rapport_domain::id::AuditId;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::page::Page;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    company INSERT = "INSERT INTO audit (company, id, actor_kind, actor_id, actor_name, action, target, detail, at, \
                      address, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    company LIST = "SELECT id, actor_kind, actor_id, actor_name, action, target, detail, at, address, request_id FROM audit \
                    WHERE company = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
}

/// One entry; `detail` is JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: AuditId,
    pub actor: Actor,
    pub action: String,
    pub target: Option<String>,
    pub detail: String,
    pub at: Time,
    /// The network address the request came from; `None` on the command line and for the service itself.
    pub address: Option<String>,
    /// The id of that request; `None` like the address, and for entries from before ids were kept.
    pub request_id: Option<String>,
}

pub fn insert(tx: &mut Tx, entry: &AuditEntry) -> Result<(), Error> {
    let AuditEntry { id, actor, action, target, detail, at, address, request_id } = entry;
    let actor_id = actor.id_bytes().map(<[u8; 16]>::as_slice);
    tx.execute(
        &INSERT,
        values![
            id,
            actor.kind(),
            actor_id,
            actor.name(),
            action,
            target.as_deref(),
            detail,
            *at,
            address.as_deref(),
            request_id.as_deref()
        ],
    )?;
    Ok(())
}

/// Newest first, before `before` if given.
pub fn list(snapshot: &mut Snapshot, before: Option<AuditId>, limit: i64) -> Result<Page<AuditEntry>, Error> {
    let before = before.unwrap_or(AuditId::from_bytes([0xff; 16]));
    let rows = snapshot.query(&LIST, values![&before, limit + 1])?;
    let entries = rows.into_iter().map(|mut row| {
        let row = &mut row;
        Ok(AuditEntry {
            id: row.take()?,
            actor: Actor::from_parts(&row.take::<String>()?, row.take()?, row.take()?),
            action: row.take()?,
            target: row.take()?,
            detail: row.take()?,
            at: row.take()?,
            address: row.take()?,
            request_id: row.take()?,
        })
    });
    Ok(Page::from_one_more(entries.collect::<Result<Vec<_>, Error>>()?, limit))
}
