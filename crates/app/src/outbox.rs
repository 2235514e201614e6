//! What a change leaves besides its row: history entries and events, gathered first, written together.

use std::sync::Arc;

use rapport_domain::account::Account;
use rapport_domain::cadence::Reminder;
use rapport_domain::company::TrackedStages;
use rapport_domain::conversation::{Conversation, Message};
use rapport_domain::event::{self, Event, Kind, Occasion};
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::{CompanyId, DeliveryId, WebhookId};
use rapport_domain::pipeline::{Move, Source};
use rapport_store::delivery::{self, NewDelivery};
use rapport_store::{Tx, history, webhook};

use crate::command::Context;
use crate::dispatch::{Asking, Dispatch, Owned, Place, Sender};

/// The history and events of one transaction, in the order they happened.
#[derive(Default)]
pub struct Outbox {
    history: Vec<HistoryEntry>,
    events: Vec<Event>,
    /// Somebody became a client, who may be due already.
    clients: bool,
}

impl Outbox {
    /// An account came to be: a first history entry and `account.created`.
    pub fn created(&mut self, cx: &Context, account: &Account, source: Source) {
        self.history.push(entry(cx, account, None, source, None));
        self.events.push(event::account_created(occasion(cx), account, source));
    }

    /// An account moved: a history entry and `account.status_changed`.
    pub fn moved(&mut self, cx: &Context, account: &Account, step: Move, source: Source, note: Option<&str>) {
        self.history.push(entry(cx, account, Some(step), source, note));
        self.events.push(event::status_changed(occasion(cx), account, step, source));
        self.clients |= TrackedStages::may_contain(step.to);
    }

    /// A client became overdue: `client.contact_due`.
    pub fn contact_due(&mut self, cx: &Context, account: &Account, reminder: Reminder) {
        self.events.push(event::contact_due(occasion(cx), account, reminder));
    }

    /// Somebody of theirs wrote: `message.inbound`.
    pub fn message(
        &mut self,
        cx: &Context,
        account: &Account,
        conversation: &Conversation,
        message: &Message,
    ) {
        self.events.push(event::message_inbound(occasion(cx), account, conversation, message));
    }

    /// Writes it all, with a delivery for every webhook that selects an event, and hands what
    /// committed to the sender.
    pub fn write(&self, tx: &mut Tx, cx: &Context) -> Result<(), rapport_store::Error> {
        history::insert(tx, &self.history)?;
        if self.clients {
            cx.wake_cadence(tx);
        }
        if self.events.is_empty() {
            return Ok(());
        }
        rapport_store::event::insert(tx, &self.events)?;
        let webhooks = webhook::selections(tx)?;
        if webhooks.is_empty() {
            return Ok(());
        }
        let mut fan = FanOut::new(cx);
        for event in &self.events {
            let payload: Arc<str> = event.payload.as_str().into();
            for (id, selection, enabled) in &webhooks {
                if selection.includes(event.kind) {
                    fan.add(cx, event, &payload, *id, *enabled);
                }
            }
        }
        fan.write(tx)
    }
}

/// The deliveries of a transaction, and what happens to them once it commits.
pub struct FanOut {
    company: CompanyId,
    sender: Option<Arc<dyn Sender>>,
    deliveries: Vec<NewDelivery>,
    placed: Vec<(Dispatch, Place)>,
    waiting: Vec<WebhookId>,
}

impl FanOut {
    pub fn new(cx: &Context) -> Self {
        let (company, sender) = (cx.company().id, cx.sender());
        Self { company, sender, deliveries: Vec::new(), placed: Vec::new(), waiting: Vec::new() }
    }

    /// One event for one webhook; what is not sent now waits in the database.
    pub fn add(
        &mut self,
        cx: &Context,
        event: &Event,
        payload: &Arc<str>,
        webhook: WebhookId,
        enabled: bool,
    ) -> DeliveryId {
        let id: DeliveryId = cx.id();
        let sender = self.sender.as_ref().filter(|_| enabled);
        let asking = if event.kind == Kind::WebhookTest { Asking::Urgent } else { Asking::Ordinary };
        let place =
            sender.and_then(|sender| sender.reserve(self.company, webhook, Owned::Delivery(id), asking));
        let owner = place.as_ref().and(sender).map(|sender| sender.node());
        self.deliveries.push(NewDelivery {
            id,
            webhook,
            event: event.id,
            kind: event.kind,
            account: event.account,
            owner,
            created_at: cx.now,
        });
        let (company, kind, payload) = (self.company, event.kind, Arc::clone(payload));
        match place {
            Some(place) => self.placed.push((
                Dispatch { company, webhook, delivery: id, kind, number: 1, payload, manual: None },
                place,
            )),
            None if enabled && !self.waiting.contains(&webhook) => self.waiting.push(webhook),
            None => {}
        }
        id
    }

    pub fn write(self, tx: &mut Tx) -> Result<(), rapport_store::Error> {
        delivery::insert(tx, &self.deliveries)?;
        let Self { company, sender, placed, waiting, .. } = self;
        let Some(sender) = sender else { return Ok(()) };
        tx.after_commit(move || {
            sender.hand_over(placed);
            waiting.into_iter().for_each(|webhook| sender.wake(company, webhook));
        });
        Ok(())
    }
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
    }
}
