//! Corrections: edits and deletes what was logged on an account, and undoes that. Who logged it may do so, and everyone
//! with the right to. The account's clock follows.

use rapport_domain::account::Account;
use rapport_domain::audit::Action;
use rapport_domain::conversation::Message;
use rapport_domain::correction::clock::{self, Episode, Left, Shift};
use rapport_domain::correction::content::Correctable;
use rapport_domain::correction::edit::Edit;
use rapport_domain::correction::logged::Logged;
use rapport_domain::correction::{Act, Content, Correction, Entry, Kept, Kind, Mark, Refused, may_correct};
use rapport_domain::history::Actor;
use rapport_domain::id::{AccountId, ContactId, ConversationId, CorrectionId, MessageId, NoteId};
use rapport_domain::right::Right;
use rapport_store::account::Edit as AccountEdit;
use rapport_store::{Snapshot, Tx, account, cadence, contact, conversation, correction, message, note};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::account::lock;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

const NEEDS: Needs = Needs::Right(Right::Work);
/// Members with words that somebody wrote. The audit log doesn't repeat them.
const WORDS: [&str; 4] = ["body", "note", "subject", "text"];

/// The entry that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    OfAccount(AccountId, Entry),
    OfConversation(ConversationId, MessageId),
}

impl From<(AccountId, Entry)> for Target {
    fn from((account, entry): (AccountId, Entry)) -> Self {
        Self::OfAccount(account, entry)
    }
}

impl From<(AccountId, ContactId)> for Target {
    fn from((account, id): (AccountId, ContactId)) -> Self {
        Self::OfAccount(account, Entry::Contact(id))
    }
}

impl From<(AccountId, NoteId)> for Target {
    fn from((account, id): (AccountId, NoteId)) -> Self {
        Self::OfAccount(account, Entry::Note(id))
    }
}

impl From<(ConversationId, MessageId)> for Target {
    fn from((conversation, id): (ConversationId, MessageId)) -> Self {
        Self::OfConversation(conversation, id)
    }
}

impl Target {
    /// The entry; `None` if there is no such entry there.
    pub fn find(self, snapshot: &mut Snapshot) -> Result<Option<Logged>, rapport_store::Error> {
        match self {
            Self::OfAccount(account, Entry::Contact(id)) => {
                Ok(contact::get(snapshot, account, id)?.map(Logged::Contact))
            }
            Self::OfAccount(account, Entry::Note(id)) => {
                Ok(note::get(snapshot, account, id)?.map(Logged::Note))
            }
            Self::OfAccount(account, Entry::Message(id)) => {
                let found = message::get(snapshot, id)?.filter(|found| found.account == account);
                Ok(found.map(Logged::Message))
            }
            Self::OfConversation(conversation, id) => {
                let found = message::get(snapshot, id)?.filter(|found| found.conversation == conversation);
                Ok(found.map(Logged::Message))
            }
        }
    }

    /// Locks the account, and then finds the entry.
    fn lock(self, tx: &mut Tx) -> Result<(Account, Logged), Error> {
        let missing = || Error::NotFound(self.what());
        let id = match self {
            Self::OfAccount(account, _) => account,
            Self::OfConversation(id, _) => conversation::get(tx, id)?.ok_or_else(missing)?.account,
        };
        let account = lock(tx, id).map_err(|error| match error {
            Error::NotFound(_) => missing(),
            other => other,
        })?;
        let logged = self.find(tx)?.ok_or_else(missing)?;
        Ok((account, logged))
    }

    const fn what(self) -> &'static str {
        match self {
            Self::OfAccount(_, entry) => entry.kind().as_str(),
            Self::OfConversation(..) => Kind::Message.as_str(),
        }
    }
}

/// An entry after a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrected {
    pub logged: Logged,
    /// Its last edit.
    pub edited: Option<Mark>,
    /// `None` if there was nothing to change.
    pub correction: Option<CorrectionId>,
}

/// Edits an entry.
pub struct EditEntry {
    pub target: Target,
    pub edit: Edit,
}

impl Command for EditEntry {
    type Reply = Corrected;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Corrected, Error> {
        let (account, before) = self.target.lock(tx)?;
        permit(cx, before.author())?;
        let Some(kept) = self.edit.changes(&before.content()) else {
            let edited = correction::last_edits(tx, account.id, &[before.entry()])?;
            let edited = edited.into_values().next();
            return Ok(Corrected { logged: before, edited, correction: None });
        };
        let mut after = before.clone();
        after.put(&kept.became).ok_or_else(unreadable)?;
        update(tx, &after)?;
        follow(tx, cx, &account, shift(Some(&before), Some(&after)))?;
        let made = record(tx, cx, &before, Act::Edited, kept)?;
        Ok(Corrected { logged: after, edited: Some(made.done), correction: Some(made.id) })
    }
}

/// Deletes an entry. It can be restored for some days.
pub struct DeleteEntry(pub Target);

impl Command for DeleteEntry {
    type Reply = Correction;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Correction, Error> {
        let (account, before) = self.0.lock(tx)?;
        permit(cx, before.author())?;
        remove(tx, &before)?;
        follow(tx, cx, &account, shift(Some(&before), None))?;
        let kept = Kept { was: before.kept(), became: Content::new() };
        record(tx, cx, &before, Act::Deleted, kept)
    }
}

/// Undoes a correction, unless the entry was corrected again since.
pub struct UndoCorrection {
    pub account: AccountId,
    pub id: CorrectionId,
}

impl Command for UndoCorrection {
    type Reply = Correction;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Correction, Error> {
        let missing = || Error::NotFound("correction");
        let account = lock(tx, self.account).map_err(|error| match error {
            Error::NotFound(_) => missing(),
            other => other,
        })?;
        let mut found = correction::get(tx, self.account, self.id)?.ok_or_else(missing)?;
        permit(cx, &found.author)?;
        let current = Target::OfAccount(self.account, found.entry).find(tx)?;
        let content = current.as_ref().map(Correctable::content);
        let kept = found.undo(content.as_ref(), cx.now).map_err(refusal)?;
        let after = if let Some(current) = &current {
            let mut after = current.clone();
            after.put(&kept.was).ok_or_else(unreadable)?;
            update(tx, &after)?;
            after
        } else {
            let after = Logged::restored(&found, &kept.was).ok_or_else(unreadable)?;
            restore(tx, &after)?;
            after
        };
        follow(tx, cx, &account, shift(current.as_ref(), Some(&after)))?;
        let undone = Mark { at: cx.now, by: cx.actor().clone() };
        correction::undo(tx, &found, &undone)?;
        let action = match found.entry.kind() {
            Kind::Contact => Action::ContactRestored,
            Kind::Message => Action::MessageRestored,
            Kind::Note => Action::NoteRestored,
        };
        let detail = json!({ found.entry.kind().as_str(): found.entry.id_text(), "was": found.act.as_str() });
        audit::record(tx, cx, action, Some(self.account.to_string()), &detail)?;
        (found.undone, found.kept) = (Some(undone), None);
        Ok(found)
    }
}

/// Who logged an entry may correct it, and everyone with the right to.
fn permit(cx: &Context, author: &Actor) -> Result<(), Error> {
    if may_correct(author, cx.actor(), cx.caller.may(Right::Correct)) {
        return Ok(());
    }
    cx.caller.require(Right::Correct)
}

fn refusal(refused: Refused) -> Error {
    match refused {
        Refused::Undone => Error::conflict("already_undone", "this correction was already undone"),
        Refused::Expired => Error::conflict(
            "undo_expired",
            "this correction is too old to be undone; what it removed is gone",
        ),
        Refused::Changed => Error::conflict("changed_since", "the entry was changed or deleted since then"),
    }
}

fn unreadable() -> Error {
    Error::Internal("what a correction keeps is not readable".to_owned())
}

fn shift(before: Option<&Logged>, after: Option<&Logged>) -> Shift {
    let at = |logged: Option<&Logged>| logged.and_then(Correctable::contact_at);
    Shift { was: at(before), becomes: at(after) }
}

fn update(tx: &mut Tx, after: &Logged) -> Result<(), Error> {
    match after {
        Logged::Contact(contact) => contact::update(tx, contact)?,
        Logged::Note(note) => note::update(tx, note)?,
        Logged::Message(message) => {
            message::update(tx, message)?;
            resume(tx, message, 0)?;
        }
    }
    Ok(())
}

fn remove(tx: &mut Tx, before: &Logged) -> Result<(), Error> {
    match before {
        Logged::Contact(contact) => contact::delete(tx, contact)?,
        Logged::Note(note) => note::delete(tx, note)?,
        Logged::Message(message) => {
            message::delete(tx, message)?;
            resume(tx, message, -1)?;
        }
    }
    Ok(())
}

fn restore(tx: &mut Tx, after: &Logged) -> Result<(), Error> {
    match after {
        Logged::Contact(contact) => contact::insert(tx, contact)?,
        Logged::Note(note) => note::insert(tx, note)?,
        Logged::Message(message) => {
            message::insert(tx, message)?;
            resume(tx, message, 1)?;
        }
    }
    Ok(())
}

/// Brings the conversation of a corrected message up to date. Its account is locked.
fn resume(tx: &mut Tx, corrected: &Message, added: i64) -> Result<(), Error> {
    let Some(mut found) = conversation::lock(tx, corrected.conversation)? else { return Err(unreadable()) };
    found.message_count += added;
    found.last_message_at = message::latest(tx, found.id)?.unwrap_or(found.created_at);
    conversation::update(tx, &found)?;
    Ok(())
}

/// Lets the account's clock follow a correction that is written already.
fn follow(tx: &mut Tx, cx: &Context, before: &Account, shift: Shift) -> Result<(), Error> {
    if shift.was == shift.becomes {
        return Ok(());
    }
    let logged = contact::latest(tx, before.id)?.max(message::latest_contact(tx, before.id)?);
    let left = Left { logged, imported: before.imported_contact_at };
    let last = clock::last_contact(before.last_contact_at, shift, left);
    if last == before.last_contact_at {
        return Ok(());
    }
    let mut after = before.clone();
    after.correct_contact(last, cx.now);
    account::update(tx, &[AccountEdit { before, after: &after }])?;
    let announced_at = cadence::announced_at(tx, before)?;
    let episode = clock::episode(&before.clock(), &after.clock(), announced_at, cx.settings(), cx.now);
    if let Episode::Announced(at) = episode {
        cadence::open_episodes(tx, &[&after], at)?;
        cadence::set_announced(tx, &[&after])?;
    }
    // The episode that runs now can be overdue already.
    cx.wake_cadence(tx);
    Ok(())
}

/// Writes down a correction, in the account's history and in the audit log.
fn record(tx: &mut Tx, cx: &Context, before: &Logged, act: Act, kept: Kept) -> Result<Correction, Error> {
    let entry = before.entry();
    let detail = detail(entry, act, &kept);
    let made = Correction {
        id: cx.id(),
        account: before.account(),
        entry,
        act,
        author: before.author().clone(),
        done: Mark { at: cx.now, by: cx.actor().clone() },
        fields: kept.became.keys().cloned().collect(),
        kept: Some(kept),
        undone: None,
    };
    correction::insert(tx, &made)?;
    let action = match (entry.kind(), act) {
        (Kind::Contact, Act::Edited) => Action::ContactEdited,
        (Kind::Contact, Act::Deleted) => Action::ContactDeleted,
        (Kind::Message, Act::Edited) => Action::MessageEdited,
        (Kind::Message, Act::Deleted) => Action::MessageDeleted,
        (Kind::Note, Act::Edited) => Action::NoteEdited,
        (Kind::Note, Act::Deleted) => Action::NoteDeleted,
    };
    audit::record(tx, cx, action, Some(made.account.to_string()), &detail)?;
    Ok(made)
}

/// What the audit log says about a correction: what changed, but not the words that somebody wrote.
fn detail(entry: Entry, act: Act, kept: &Kept) -> Value {
    let mut detail = Map::new();
    detail.insert(entry.kind().as_str().to_owned(), entry.id_text().into());
    if act == Act::Deleted {
        detail.extend(kept.was.get("occurred_at").map(|at| ("occurred_at".to_owned(), at.clone())));
        return Value::Object(detail);
    }
    detail.insert("changed".to_owned(), kept.became.keys().cloned().collect());
    for (name, to) in kept.became.iter().filter(|(name, _)| !WORDS.contains(&name.as_str())) {
        detail.insert(name.clone(), json!({ "from": kept.was.get(name), "to": to }));
    }
    Value::Object(detail)
}
