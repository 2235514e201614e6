//! Changes that are made only if the thing to change is still as the caller knows it.

use rapport_domain::id::{
    AccountId, CampaignId, ContactId, ConversationId, ExchangeRateId, MessageId, NoteId, WebhookId,
};
use rapport_store::{Lane, Snapshot, Tx, account, campaign, company, conversation, webhook};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::read::Viewer;

/// What a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The account, and everything that was logged on it.
    Account(AccountId),
    Conversation(ConversationId),
    Webhook(WebhookId),
    Campaign(CampaignId),
    /// The company, its settings and its exchange rates.
    Company,
}

impl From<AccountId> for Subject {
    fn from(id: AccountId) -> Self {
        Self::Account(id)
    }
}

impl From<WebhookId> for Subject {
    fn from(id: WebhookId) -> Self {
        Self::Webhook(id)
    }
}

impl From<CampaignId> for Subject {
    fn from(id: CampaignId) -> Self {
        Self::Campaign(id)
    }
}

impl From<ExchangeRateId> for Subject {
    fn from(_: ExchangeRateId) -> Self {
        Self::Company
    }
}

impl From<(AccountId, ContactId)> for Subject {
    fn from((account, _): (AccountId, ContactId)) -> Self {
        Self::Account(account)
    }
}

impl From<(AccountId, NoteId)> for Subject {
    fn from((account, _): (AccountId, NoteId)) -> Self {
        Self::Account(account)
    }
}

impl From<(ConversationId, MessageId)> for Subject {
    fn from((conversation, _): (ConversationId, MessageId)) -> Self {
        Self::Conversation(conversation)
    }
}

impl Subject {
    /// Keeps everyone else from changing it until the transaction ends.
    fn lock(self, tx: &mut Tx, viewer: &mut Viewer) -> Result<(), rapport_store::Error> {
        match self {
            Self::Account(id) => drop(account::lock(tx, &[id])?),
            Self::Conversation(id) => {
                // A command that changes a conversation locks its account first.
                if let Some(found) = conversation::get(tx, id)? {
                    account::lock(tx, &[found.account])?;
                }
            }
            Self::Webhook(id) => drop(webhook::lock(tx, &[id])?),
            Self::Campaign(id) => drop(campaign::lock(tx, id)?),
            Self::Company => {
                // The caller's company was read before the lock, and may have changed since.
                if let Some(company) = company::lock(tx)? {
                    viewer.caller.company = company;
                }
            }
        }
        Ok(())
    }
}

/// The reply of the command, or what the caller must know to try again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked<T, S> {
    Done(T),
    /// Nothing was changed.
    Stale(S),
}

/// Returns what the caller must know if the subject is no longer as they know it.
pub type FindStale<S> =
    Box<dyn Fn(&mut Snapshot, &Viewer) -> Result<Option<S>, rapport_store::Error> + Send + Sync>;

/// Runs its command unless the subject is stale. That is found out in the transaction, when nobody else can change the
/// subject any more.
pub struct IfCurrent<C, S> {
    pub subject: Subject,
    pub command: C,
    pub find_stale: FindStale<S>,
}

impl<C: Command, S: Send + 'static> Command for IfCurrent<C, S> {
    type Reply = Checked<C::Reply, S>;
    const NEEDS: Needs = C::NEEDS;
    const LANE: Lane = C::LANE;
    const EXCLUSIVE: bool = C::EXCLUSIVE;

    fn weight(&self) -> usize {
        self.command.weight()
    }

    fn needs_proof(&self, cx: &Context) -> bool {
        self.command.needs_proof(cx)
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Self::Reply, Error> {
        let mut viewer = Viewer { caller: cx.caller.clone(), now: cx.now };
        self.subject.lock(tx, &mut viewer)?;
        if let Some(stale) = (self.find_stale)(tx, &viewer)? {
            return Ok(Checked::Stale(stale));
        }
        self.command.run(tx, cx).map(Checked::Done)
    }
}
