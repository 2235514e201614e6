//! Sample data: added on request while a company has no accounts of its own, and removed again in one click.
//!
//! Nothing about it leaves the service by itself. Sample accounts have no events, so there is nothing to deliver to
//! webhooks or to list in the feed (`outbox`); readers that follow the accounts don't see them
//! (`store/account_changes.rs`); and the digest leaves them out. Lists and exports that somebody asks for show them
//! like the pages do.

mod writing;

use std::collections::BTreeMap;

use rapport_domain::account::Account;
use rapport_domain::audit::{Action, KEPT, REMOVED};
use rapport_domain::company::Company;
use rapport_domain::erasure::counts;
use rapport_domain::id::{AccountId, ChannelId};
use rapport_domain::right::Right;
use rapport_domain::sample;
use rapport_store::{Snapshot, Tx, account, activity_day, channel, company, sample as marks};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// Like an import and its undo.
const NEEDS: Needs = Needs::Right(Right::Import);

/// Adds the sample data, once.
pub struct AddSampleData;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// This many accounts.
    Accounts(usize),
    /// It was there already.
    Before,
    /// The company has accounts of its own, among which samples would only be in the way.
    HasAccounts,
}

impl Command for AddSampleData {
    type Reply = Added;
    const NEEDS: Needs = NEEDS;
    /// Nobody adds accounts, or the sample data, at the same time.
    const EXCLUSIVE: bool = true;

    fn weight(&self) -> usize {
        sample::COUNT
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Added, Error> {
        let found = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
        if found.sample_since.is_some() {
            return Ok(Added::Before);
        }
        if marks::has_any_account(tx)? {
            return Ok(Added::HasAccounts);
        }
        let channels = writing::channels(tx, cx)?;
        let accounts = writing::accounts(tx, cx, &channels)?;
        marks::set_since(tx, Some(cx.now))?;
        // Some of them are overdue.
        cx.wake_cadence(tx);
        let added = channels.iter().flatten().count();
        let detail = json!({ "accounts": accounts, "channels": added });
        audit::record(tx, cx, Action::SampleDataAdded, None, &detail)?;
        Ok(Added::Accounts(accounts))
    }
}

/// Removes the sample data, whatever happened to it since, and nothing else.
pub struct RemoveSampleData;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    pub accounts: usize,
    /// Sample channels that stay, because accounts that aren't samples came through them.
    pub kept_channels: usize,
}

impl Command for RemoveSampleData {
    type Reply = Removed;
    const NEEDS: Needs = NEEDS;
    /// No ingest may count for an account that is being deleted.
    const EXCLUSIVE: bool = true;

    fn weight(&self) -> usize {
        sample::COUNT
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Removed, Error> {
        let found = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
        if found.sample_since.is_none() {
            return Ok(Removed::default());
        }
        let accounts = marks::accounts(tx)?;
        account::lock(tx, &accounts)?;
        let mut rows = BTreeMap::new();
        for id in &accounts {
            for (table, deleted) in account::delete(tx, *id, cx.now)? {
                *rows.entry(table).or_default() += deleted;
            }
        }
        activity_day::remove_samples(tx)?;
        let (deleted, kept) = remove_channels(tx)?;
        marks::set_since(tx, None)?;
        let detail = json!({
            "accounts": accounts.len(), "channels": deleted, REMOVED: counts(rows), KEPT: { "channel": kept },
        });
        audit::record(tx, cx, Action::SampleDataRemoved, None, &detail)?;
        Ok(Removed { accounts: accounts.len(), kept_channels: kept })
    }
}

/// Deletes the sample channels; those in use become the company's own. Returns how many of each there were.
fn remove_channels(tx: &mut Tx) -> Result<(usize, usize), Error> {
    let all: Vec<ChannelId> = marks::channels(tx)?;
    let mut deleted = 0;
    for id in &all {
        if !channel::is_in_use(tx, *id)? {
            channel::delete(tx, *id)?;
            deleted += 1;
        }
    }
    marks::keep_channels(tx)?;
    Ok((deleted, all.len() - deleted))
}

/// The ids of a company's sample accounts. Companies without any pay nothing for the question.
pub(crate) fn sample_accounts(
    snapshot: &mut Snapshot,
    company: &Company,
) -> Result<Vec<AccountId>, rapport_store::Error> {
    if company.sample_since.is_none() { Ok(Vec::new()) } else { marks::accounts(snapshot) }
}

/// A company's sample accounts themselves.
pub(crate) fn loaded(
    snapshot: &mut Snapshot,
    company: &Company,
) -> Result<Vec<Account>, rapport_store::Error> {
    let ids = sample_accounts(snapshot, company)?;
    ids.into_iter().filter_map(|id| account::get(snapshot, id).transpose()).collect()
}
