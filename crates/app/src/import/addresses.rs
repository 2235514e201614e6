//! The email addresses that rows add to accounts.

use std::collections::HashMap;

use rapport_domain::account::Account;
use rapport_domain::id::AccountId;
use rapport_domain::inbound::MAX_ADDRESSES;
use rapport_domain::member::Email;
use rapport_store::{Error, Snapshot, Tx, account_address};

use super::work::{Known, Line, rows};
use crate::command::Context;

/// Who has the addresses that some rows name, and how many addresses the rows' accounts have.
#[derive(Debug, Default)]
pub struct Addresses {
    owners: HashMap<Email, AccountId>,
    counts: HashMap<AccountId, usize>,
}

/// Why an account can't have an address: a code and what it means.
pub type Refused = (&'static str, String);

impl Addresses {
    pub fn over(snapshot: &mut Snapshot, accounts: &[Account], lines: &[Line]) -> Result<Self, Error> {
        let mut named: Vec<&Email> = rows(lines).flat_map(|row| &row.emails).collect();
        if named.is_empty() {
            return Ok(Self::default());
        }
        named.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        named.dedup();
        let owners = account_address::find(snapshot, &named)?.into_iter().collect();
        let ids: Vec<AccountId> = accounts.iter().map(|account| account.id).collect();
        let counts = account_address::counts(snapshot, &ids)?.into_iter();
        let counts = counts.map(|(id, count)| (id, usize::try_from(count).unwrap_or(MAX_ADDRESSES)));
        Ok(Self { owners, counts: counts.collect() })
    }

    /// Notes an address that earlier rows gave to an account. Nothing was written yet.
    pub fn give(&mut self, email: &Email, account: AccountId) {
        self.owners.entry(email.clone()).or_insert(account);
    }

    /// The addresses among these that are new to the account.
    pub fn new_to(&self, account: AccountId, emails: &[Email]) -> Result<Vec<Email>, Refused> {
        let mut added = Vec::new();
        for email in emails {
            match self.owners.get(email) {
                Some(owner) if *owner == account => {}
                Some(_) => {
                    let detail = format!("another account has the email address {}", email.as_str());
                    return Err(("address_taken", detail));
                }
                None => added.push(email.clone()),
            }
        }
        if self.counts.get(&account).unwrap_or(&0) + added.len() > MAX_ADDRESSES {
            let detail = format!("an account can have at most {MAX_ADDRESSES} email addresses");
            return Err(("too_many_addresses", detail));
        }
        Ok(added)
    }

    pub fn add(&mut self, account: AccountId, added: &[Email]) {
        *self.counts.entry(account).or_default() += added.len();
        self.owners.extend(added.iter().map(|email| (email.clone(), account)));
    }
}

/// Writes the new addresses of accounts.
pub fn write(tx: &mut Tx, cx: &Context, accounts: &[&Known]) -> Result<(), Error> {
    let added = accounts.iter().flat_map(|known| known.added.iter().map(|email| (email, known.account.id)));
    let mut added: Vec<(&Email, AccountId)> = added.collect();
    // In the one order that every transaction uses, so that they can't deadlock.
    added.sort_unstable_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    if account_address::insert_many(tx, &added, cx.now)? {
        return Ok(());
    }
    // Someone gave one of them to another account between our check and our insert.
    Err(Error::Again)
}
