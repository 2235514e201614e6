//! Conversations and their messages.

use rapport_domain::account::Account;
use rapport_domain::conversation::{Conversation, Message};
use rapport_domain::id::{AccountId, ConversationId};
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, account, conversation, message};

use crate::read::Page;
use crate::read::account::of_existing;
use crate::read::correction::{Edits, with_edits};

pub use rapport_store::conversation::get as one;
pub use rapport_store::message::Place;

/// Everything a conversation's page shows.
pub struct ConversationPage {
    pub account: Account,
    pub conversation: Conversation,
    pub messages: Page<Message>,
    /// Their last edits.
    pub edits: Edits,
}

/// How many messages a page shows.
const MESSAGES: i64 = 10;

/// Returns `None` if the conversation isn't one of the account.
pub fn page(
    snapshot: &mut Snapshot,
    (account, id): (AccountId, ConversationId),
    from: Option<Place>,
) -> Result<Option<ConversationPage>, Error> {
    let conversation = one(snapshot, id)?.filter(|found| found.account == account);
    let (Some(account), Some(conversation)) = (account::get(snapshot, account)?, conversation) else {
        return Ok(None);
    };
    let messages = message::of_conversation(snapshot, id, from, MESSAGES)?;
    let (messages, edits) = with_edits(snapshot, account.id, messages)?;
    Ok(Some(ConversationPage { account, conversation, messages, edits }))
}

/// An account's conversations, latest first.
pub fn of_account(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<(Time, ConversationId)>,
    limit: i64,
) -> Result<Option<Page<Conversation>>, Error> {
    of_existing(snapshot, account, |snapshot| conversation::of_account(snapshot, account, before, limit))
}

/// Its messages, latest first, and their last edits.
pub fn messages(
    snapshot: &mut Snapshot,
    id: ConversationId,
    before: Option<Place>,
    limit: i64,
) -> Result<Option<(Page<Message>, Edits)>, Error> {
    let Some(found) = one(snapshot, id)? else { return Ok(None) };
    let page = message::of_conversation(snapshot, id, before, limit)?;
    with_edits(snapshot, found.account, page).map(Some)
}
