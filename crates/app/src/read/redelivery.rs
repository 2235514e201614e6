//! Bulk redeliveries: their progress, and the names in their filters.

use rapport_domain::delivery_list::Filter;
use rapport_domain::id::RedeliveryId;
use rapport_domain::webhook::Webhook;
use rapport_store::{Error, Snapshot, account, redelivery, webhook};

use crate::redelivery::{Progress, follow, progress};

/// How many are listed, newest first.
const RECENT: i64 = 50;

/// The names behind the ids of a filter, of those that still exist.
pub struct Names {
    pub webhook: Option<Webhook>,
    pub account: Option<String>,
}

pub fn names(snapshot: &mut Snapshot, filter: &Filter) -> Result<Names, Error> {
    let webhook = match filter.webhook {
        Some(id) => webhook::get(snapshot, id)?,
        None => None,
    };
    let account = match filter.account {
        Some(id) => account::get(snapshot, id)?.map(|account| account.name),
        None => None,
    };
    Ok(Names { webhook, account })
}

/// The latest bulk redeliveries.
pub fn recent(snapshot: &mut Snapshot) -> Result<Vec<(Progress, Names)>, Error> {
    let mut found = Vec::new();
    for redelivery in redelivery::recent(snapshot, RECENT)? {
        let names = names(snapshot, &redelivery.filter)?;
        found.push((follow(snapshot, redelivery)?, names));
    }
    Ok(found)
}

pub fn one(snapshot: &mut Snapshot, id: RedeliveryId) -> Result<Option<(Progress, Names)>, Error> {
    let Some(progress) = progress(snapshot, id)? else { return Ok(None) };
    let names = names(snapshot, &progress.redelivery.filter)?;
    Ok(Some((progress, names)))
}
