//! Records a contact on an account. It resets the account's clock, unless a later contact already did.

use rapport_domain::contact::{Contact, NewContact};
use rapport_domain::id::AccountId;
use rapport_domain::right::Right;
use rapport_store::account::Edit;
use rapport_store::{Tx, contact};

use crate::access::Needs;
use crate::account::lock;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

pub struct RecordContact {
    pub account: AccountId,
    pub contact: NewContact,
}

impl Command for RecordContact {
    type Reply = Contact;
    const NEEDS: Needs = Needs::Right(Right::Work);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Contact, Error> {
        let before = lock(tx, self.account)?;
        let mut account = before.clone();
        let NewContact { kind, note, occurred_at } = self.contact.clone();
        let made = Contact {
            id: cx.id(),
            account: account.id,
            kind,
            note,
            actor: cx.actor().clone(),
            occurred_at,
            created_at: cx.now,
        };
        contact::insert(tx, &made)?;
        if account.contact(occurred_at, cx.now) {
            rapport_store::account::update(tx, &[Edit { before: &before, after: &account }])?;
            // An old contact can begin an episode that is already overdue.
            cx.wake_cadence(tx);
        }
        let mut outbox = Outbox::default();
        outbox.contact(cx, &account, &made);
        outbox.write(tx, cx)?;
        Ok(made)
    }
}
