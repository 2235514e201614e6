//! Conversations: start one, and log messages in it.

use rapport_domain::account::Account;
use rapport_domain::conversation::{Conversation, Log, Message, Start};
use rapport_domain::id::{AccountId, ConversationId};
use rapport_domain::right::Right;
use rapport_store::account::Edit;
use rapport_store::{Tx, account, conversation, message};

use crate::access::Needs;
use crate::account::lock;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

const NEEDS: Needs = Needs::Right(Right::Work);

pub struct StartConversation {
    pub account: AccountId,
    pub request: Start,
}

impl Command for StartConversation {
    type Reply = Conversation;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Conversation, Error> {
        let account = lock(tx, self.account)?;
        let begun = Conversation::new(cx.id(), account.id, self.request.clone(), cx.now);
        conversation::insert(tx, &begun)?;
        Ok(begun)
    }
}

/// Starts a conversation with its first message.
pub struct StartWithMessage {
    pub account: AccountId,
    pub request: Start,
    pub log: Log,
}

impl Command for StartWithMessage {
    type Reply = Message;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Message, Error> {
        let mut account = lock(tx, self.account)?;
        let mut begun = Conversation::new(cx.id(), account.id, self.request.clone(), cx.now);
        conversation::insert(tx, &begun)?;
        let logged = Message::new(cx.id(), &begun, &self.log, cx.actor(), cx.now);
        let mut outbox = Outbox::default();
        add(tx, cx, &mut account, &mut begun, &logged, &mut outbox)?;
        outbox.write(tx, cx)?;
        Ok(logged)
    }
}

/// Logs a message that was written or received elsewhere. An outbound one counts as contact.
pub struct LogMessage {
    pub conversation: ConversationId,
    pub log: Log,
}

impl Command for LogMessage {
    type Reply = Message;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Message, Error> {
        let missing = Error::NotFound("conversation");
        let found = conversation::get(tx, self.conversation)?.ok_or(missing.clone())?;
        let mut account = lock(tx, found.account).map_err(|error| match error {
            Error::NotFound(_) => missing.clone(),
            other => other,
        })?;
        let mut found = conversation::lock(tx, self.conversation)?.ok_or(missing)?;
        let logged = Message::new(cx.id(), &found, &self.log, cx.actor(), cx.now);
        let mut outbox = Outbox::default();
        add(tx, cx, &mut account, &mut found, &logged, &mut outbox)?;
        outbox.write(tx, cx)?;
        Ok(logged)
    }
}

/// Adds a message to a locked conversation of a locked account, with all its effects.
pub(crate) fn add(
    tx: &mut Tx,
    cx: &Context,
    account: &mut Account,
    conversation: &mut Conversation,
    logged: &Message,
    outbox: &mut Outbox,
) -> Result<(), Error> {
    message::insert(tx, logged)?;
    conversation.extend(logged.occurred_at);
    conversation::update(tx, conversation)?;
    if logged.is_contact() {
        let before = account.clone();
        if account.contact(logged.occurred_at, cx.now) {
            account::update(tx, &[Edit { before: &before, after: account }])?;
            // An old message can begin an episode that is already overdue.
            cx.wake_cadence(tx);
        }
        outbox.contact_by_message(cx, account, conversation, logged);
    }
    if logged.is_reply() {
        outbox.message(cx, account, conversation, logged);
    }
    Ok(())
}
