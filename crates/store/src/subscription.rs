//! What the webhooks of a company select, and which of them are enabled, with a version for those who keep it in memory.
//!
//! Whatever changes it renews the version in the same transaction: creating and deleting a webhook and setting its
//! filter do so here in the store, and an update of a webhook has to say whether it does ([`Selects`]).

use rapport_domain::event_filter::EventFilter;
use rapport_domain::id::WebhookId;
use rapport_domain::time::Time;
use rapport_domain::webhook::Selection;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::Value;
use crate::values;

statements! {
    company VERSION = "SELECT version FROM subscription WHERE company = $1";
    // Above all that the company had before, and above those that were used after a backup which was then restored.
    company RENEW = "INSERT INTO subscription (company, version) VALUES ($1, $2) ON CONFLICT (company) DO UPDATE \
                     SET version = CASE WHEN excluded.version > subscription.version THEN excluded.version \
                     ELSE subscription.version + 1 END";
    company SUBSCRIBERS = "SELECT id, events, CASE WHEN disabled_by_hand = 0 AND auto_disabled_at IS NULL THEN 1 ELSE 0 END, \
                           filters FROM webhook WHERE company = $1 AND deleted_at IS NULL ORDER BY id";
}

/// A webhook as the fan-out of events sees it.
#[derive(Debug, Clone)]
pub struct Subscriber {
    pub id: WebhookId,
    pub selection: Selection,
    pub enabled: bool,
    /// `None` without conditions, which is the rule.
    pub filter: Option<Box<EventFilter>>,
}

/// Whether an update of a webhook changes its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selects {
    AsBefore,
    /// Its events changed, or it was enabled or disabled, at this time.
    Anew(Time),
}

/// What was read under a version is what every later transaction that sees the same version would read.
pub fn version(snapshot: &mut Snapshot) -> Result<i64, Error> {
    snapshot.query_opt(&VERSION, &[])?.map_or(Ok(0), |mut row| row.take())
}

pub(crate) fn renew(tx: &mut Tx, now: Time) -> Result<(), Error> {
    tx.execute(&RENEW, values![now])?;
    Ok(())
}

/// All webhooks of the company as subscribers of events.
pub fn subscribers(snapshot: &mut Snapshot) -> Result<Vec<Subscriber>, Error> {
    let mut found = Vec::new();
    // Most webhooks select the same as the one before.
    let (mut read, mut selection) = (String::new(), Selection::from_stored(""));
    snapshot.each(&SUBSCRIBERS, &[], |columns| {
        let [Value::Bytes(id), Value::Text(events), Value::Int(enabled), Value::Text(filters)] = *columns
        else {
            return Err(Error::fault("a webhook's columns are not what was asked for"));
        };
        let id = id.try_into().map_err(|_| Error::fault("a webhook's id is not 16 bytes long"))?;
        if events != read {
            (read, selection) = (events.to_owned(), Selection::from_stored(events));
        }
        found.push(Subscriber {
            id: WebhookId::from_bytes(id),
            selection,
            enabled: enabled != 0,
            filter: (!filters.is_empty()).then(|| Box::new(EventFilter::from_stored(filters))),
        });
        Ok(())
    })?;
    Ok(found)
}
