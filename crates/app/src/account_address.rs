//! The email addresses an account is known by, added and removed by hand. Incoming mail adds them
//! automatically.

use rapport_domain::audit::Action;
use rapport_domain::id::AccountId;
use rapport_domain::inbound::MAX_ADDRESSES;
use rapport_domain::member::Email;
use rapport_domain::right::Right;
use rapport_store::account_address::{self, Known};
use rapport_store::{Snapshot, Tx};
use serde_json::json;

use crate::access::Needs;
use crate::account::lock;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

const NEEDS: Needs = Needs::Right(Right::Work);

/// Every address of an account.
pub(crate) fn all(snapshot: &mut Snapshot, account: AccountId) -> Result<Vec<Known>, rapport_store::Error> {
    account_address::of_account(snapshot, account, i64::try_from(MAX_ADDRESSES).unwrap_or(i64::MAX))
}

/// Whether the account can take one more address.
pub(crate) fn has_room(snapshot: &mut Snapshot, account: AccountId) -> Result<bool, rapport_store::Error> {
    Ok(all(snapshot, account)?.len() < MAX_ADDRESSES)
}

pub struct AddAddress {
    pub account: AccountId,
    pub address: Email,
}

impl Command for AddAddress {
    type Reply = Known;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Known, Error> {
        let account = lock(tx, self.account)?;
        let kept = all(tx, account.id)?;
        if let Some(known) = kept.iter().find(|(address, _)| *address == self.address) {
            return Ok(known.clone());
        }
        if kept.len() >= MAX_ADDRESSES {
            let detail = format!("an account can have at most {MAX_ADDRESSES} email addresses");
            return Err(Error::conflict("too_many_addresses", detail));
        }
        if !account_address::insert(tx, &self.address, account.id, cx.now)? {
            return Err(Error::conflict("address_taken", "another account has this email address"));
        }
        if audit::is_by_hand(cx) {
            let detail = json!({ "email": self.address.as_str() });
            audit::record(tx, cx, Action::AccountAddressAdded, Some(account.id.to_string()), &detail)?;
        }
        Ok((self.address.clone(), cx.now))
    }
}

pub struct RemoveAddress {
    pub account: AccountId,
    pub address: Email,
}

impl Command for RemoveAddress {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        if !account_address::delete(tx, &self.address, self.account)? {
            return Err(Error::NotFound("address"));
        }
        let detail = json!({ "email": self.address.as_str() });
        Ok(audit::record(tx, cx, Action::AccountAddressRemoved, Some(self.account.to_string()), &detail)?)
    }
}
