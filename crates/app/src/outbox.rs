//! The effects of a change besides its row: history entries and events, gathered first, written together.
//!
//! A sample account has history, but no events: other systems aren't told about it.

use rapport_domain::account::Account;
use rapport_domain::account_change;
use rapport_domain::cadence::Reminder;
use rapport_domain::company::TrackedStages;
use rapport_domain::contact::Contact;
use rapport_domain::conversation::{Conversation, Message};
use rapport_domain::event::{self, Event, Kind, Occasion};
use rapport_domain::history::HistoryEntry;
use rapport_domain::pipeline::{Move, Source};
use rapport_domain::time::Time;
use rapport_store::{Tx, history};

use crate::command::Context;
use crate::fan_out::FanOut;

/// The history and events of one transaction, in the order they happened.
#[derive(Default)]
pub struct Outbox {
    history: Vec<HistoryEntry>,
    events: Vec<Event>,
    /// Set if someone became a client, who may already be due.
    clients: bool,
}

impl Outbox {
    /// An account was created: adds its first history entry and `account.created`.
    pub fn created(&mut self, cx: &Context, account: &Account, source: Source) {
        self.history.push(entry(cx, account, None, source, None));
        self.tell(account, || event::account_created(occasion(cx), account, source));
    }

    /// An account moved: adds a history entry and `account.status_changed`.
    pub fn moved(&mut self, cx: &Context, account: &Account, step: Move, source: Source, note: Option<&str>) {
        self.history.push(entry(cx, account, Some(step), source, note));
        self.tell(account, || event::status_changed(occasion(cx), account, step, source));
        self.clients |= TrackedStages::may_contain(step.to);
    }

    /// Activity that happened at `happened_at` moved an account: adds the same.
    pub fn moved_by_activity(&mut self, cx: &Context, account: &Account, step: Move, happened_at: Time) {
        self.moved(cx, account, step, Source::Automation, None);
        if let Some(entry) = self.history.last_mut() {
            entry.happened_at = Some(happened_at);
        }
    }

    /// Members of an account changed: adds `account.updated`, if a webhook asks for it. A move alone isn't such a change.
    pub fn updated(&mut self, cx: &Context, before: &Account, after: &Account, source: Source) {
        if !wants(cx, Kind::AccountUpdated) {
            return;
        }
        let changes = account_change::between(before, after);
        if !changes.is_empty() {
            self.tell(after, || event::account_updated(occasion(cx), after, changes, source));
        }
    }

    /// An account was deleted: adds `account.deleted`, if a webhook asks for it.
    pub fn deleted(&mut self, cx: &Context, account: &Account, source: Source) {
        if wants(cx, Kind::AccountDeleted) {
            self.tell(account, || event::account_deleted(occasion(cx), account, source));
        }
    }

    /// Contact was recorded: adds `contact.logged`, if a webhook asks for it.
    pub fn contact(&mut self, cx: &Context, account: &Account, contact: &Contact) {
        if wants(cx, Kind::ContactLogged) {
            self.tell(account, || event::contact_recorded(occasion(cx), account, contact));
        }
    }

    /// A message that counts as contact was logged: adds `contact.logged`, if a webhook asks for it.
    pub fn contact_by_message(
        &mut self,
        cx: &Context,
        account: &Account,
        conversation: &Conversation,
        message: &Message,
    ) {
        if wants(cx, Kind::ContactLogged) {
            self.tell(account, || event::contact_by_message(occasion(cx), account, conversation, message));
        }
    }

    /// A client became overdue: adds `client.contact_due`.
    pub fn contact_due(&mut self, cx: &Context, account: &Account, reminder: Reminder) {
        self.tell(account, || event::contact_due(occasion(cx), account, reminder));
    }

    /// An inbound message was logged: adds `message.inbound`.
    pub fn message(
        &mut self,
        cx: &Context,
        account: &Account,
        conversation: &Conversation,
        message: &Message,
    ) {
        self.tell(account, || event::message_inbound(occasion(cx), account, conversation, message));
    }

    fn tell(&mut self, account: &Account, event: impl FnOnce() -> Event) {
        if !account.sample {
            self.events.push(event());
        }
    }

    /// Writes everything, with a delivery for every webhook that selects an event and whose filter matches it, and
    /// hands the deliveries to the sender after the commit.
    pub fn write(&self, tx: &mut Tx, cx: &Context) -> Result<(), rapport_store::Error> {
        history::insert(tx, &self.history)?;
        if self.clients {
            cx.wake_cadence(tx);
        }
        if self.events.is_empty() {
            return Ok(());
        }
        rapport_store::event::insert(tx, &self.events)?;
        let subscribers = cx.subscribers().of(tx)?;
        if subscribers.is_empty() {
            return Ok(());
        }
        let mut fan = FanOut::new(cx);
        for event in &self.events {
            fan.add_selected(cx, event, &subscribers);
        }
        fan.write(tx)
    }
}

/// Whether some webhook of the company asks for this kind. The company's row, which was read with the credential, says it.
pub(crate) fn wants(cx: &Context, kind: Kind) -> bool {
    cx.company().opt_in.includes(kind)
}

fn occasion<'a>(cx: &'a Context) -> Occasion<'a> {
    Occasion { id: cx.id(), now: cx.now, project: &cx.company().slug }
}

fn entry(
    cx: &Context,
    account: &Account,
    step: Option<Move>,
    source: Source,
    note: Option<&str>,
) -> HistoryEntry {
    HistoryEntry {
        id: cx.id(),
        account: account.id,
        from: step.map(|step| step.from),
        to: account.status,
        source,
        actor: cx.actor().clone(),
        note: note.map(str::to_owned),
        at: cx.now,
        happened_at: None,
    }
}
