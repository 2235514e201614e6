//! From an event to a delivery for every webhook that selects it.
//!
//! A change must not be answered late because very many webhooks select its event. So only a few deliveries, to
//! receivers that work, are written in the change's transaction. The rest is stored there in parts, and a job turns
//! one part after another into deliveries ([`Continue`]).

use std::collections::HashMap;
use std::sync::Arc;

use rapport_domain::event::{Event, Kind};
use rapport_domain::event_filter::Facts;
use rapport_domain::id::{CompanyId, DeliveryId, WebhookId};
use rapport_domain::standing::Standing;
use rapport_store::delivery::{self, NewDelivery};
use rapport_store::fan_out::{self, Part};
use rapport_store::subscription::Subscriber;
use rapport_store::{Lane, Tx, event, webhook};
use tokio::sync::Notify;

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::dispatch::{Asking, Dispatch, Owned, Place, Sender};
use crate::error::Error;

/// Up to this many deliveries of one event are all written in the transaction of its change.
pub const AT_ONCE: usize = 32;
/// If there are more, at most this many are written in that transaction: those to proven receivers, or else to new ones.
/// Whatever else is sent at the same moment delays them, above all a receiver that needs a new connection.
pub const FIRST: usize = 4;
/// The rest are written in transactions of this size. SQLite would need a page of its own for the end of a longer part.
pub const PART: usize = 28;

/// The deliveries of a transaction, handed to the sender once it commits.
pub struct FanOut {
    company: CompanyId,
    sender: Option<Arc<dyn Sender>>,
    deliveries: Vec<NewDelivery>,
    placed: Vec<(Dispatch, Place)>,
    waiting: Vec<WebhookId>,
    later: Vec<Part>,
    continues: Arc<Notify>,
}

impl FanOut {
    pub fn new(cx: &Context) -> Self {
        Self {
            company: cx.company().id,
            sender: cx.sender(),
            deliveries: Vec::new(),
            placed: Vec::new(),
            waiting: Vec::new(),
            later: Vec::new(),
            continues: cx.fan_out_continues(),
        }
    }

    /// Adds an event for every webhook that selects it and whose filter matches it.
    pub fn add_selected(&mut self, cx: &Context, event: &Event, subscribers: &[Subscriber]) {
        let mut selected: Vec<&Subscriber> =
            subscribers.iter().filter(|subscriber| subscriber.selection.includes(event.kind)).collect();
        keep_matching(&mut selected, event);
        let mut first = selected.len();
        if first > AT_ONCE {
            let standing =
                |webhook| self.sender.as_ref().map_or(Standing::New, |sender| sender.standing(webhook));
            let turn = |subscriber: &Subscriber| Turn::of(subscriber, standing(subscriber.id));
            selected.sort_by_cached_key(|subscriber| turn(subscriber));
            let best = turn(selected[0]);
            let most = if best < Turn::Failing { FIRST } else { 0 };
            first = selected.iter().take(most).filter(|subscriber| turn(subscriber) == best).count();
        }
        let (first, later) = selected.split_at(first);
        let payload: Arc<str> = event.payload.as_str().into();
        for subscriber in first {
            self.add(cx, event, &payload, subscriber.id, subscriber.enabled);
        }
        self.later.extend(later.chunks(PART).zip(0..).map(|(part, number)| Part {
            event: event.id,
            number,
            webhooks: part.iter().map(|subscriber| subscriber.id).collect(),
        }));
    }

    /// Adds an event for one webhook. A delivery that isn't sent now waits in the database.
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
            created_at: event.created_at,
        });
        let (company, kind, payload, event) = (self.company, event.kind, Arc::clone(payload), event.id);
        match place {
            Some(place) => self.placed.push((
                Dispatch { company, webhook, delivery: id, event, kind, number: 1, payload, manual: None },
                place,
            )),
            None if enabled && !self.waiting.contains(&webhook) => self.waiting.push(webhook),
            None => {}
        }
        id
    }

    /// Writes the deliveries, and hands them to the sender after the commit.
    pub fn write(self, tx: &mut Tx) -> Result<(), rapport_store::Error> {
        delivery::insert(tx, &self.deliveries)?;
        fan_out::insert(tx, &self.later)?;
        let Self { company, sender, placed, waiting, later, continues, .. } = self;
        if let Some(sender) = sender {
            tx.after_commit(move || {
                sender.hand_over(placed);
                waiting.into_iter().for_each(|webhook| sender.wake(company, webhook));
            });
        }
        if !later.is_empty() {
            tx.after_commit(move || continues.notify_one());
        }
        Ok(())
    }
}

/// Drops the webhooks whose filter doesn't match the event. The payload is read at most once, and only if one filters.
fn keep_matching(selected: &mut Vec<&Subscriber>, event: &Event) {
    if selected.iter().all(|subscriber| subscriber.filter.is_none()) {
        return;
    }
    // A new event has its payload.
    let Some(facts) = Facts::of(&event.payload) else { return };
    selected.retain(|subscriber| {
        subscriber.filter.as_ref().is_none_or(|filter| filter.mismatch(&facts).is_none())
    });
}

/// Who is served first when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Proven,
    New,
    Failing,
    Disabled,
}

impl Turn {
    fn of(subscriber: &Subscriber, standing: Standing) -> Self {
        match standing {
            _ if !subscriber.enabled => Self::Disabled,
            Standing::Proven => Self::Proven,
            Standing::New => Self::New,
            Standing::Failing => Self::Failing,
        }
    }
}

/// Turns the oldest stored part into deliveries; returns whether there was one.
pub struct Continue;

impl Command for Continue {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Outcome;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<bool, Error> {
        let Some(part) = fan_out::take(tx)? else { return Ok(false) };
        // The account may have been deleted in the meantime, and its events with it.
        let Some(event) = event::get(tx, part.event)? else { return Ok(true) };
        let erased = event.payload.is_empty();
        let payload: Arc<str> = event.payload.as_str().into();
        let states: HashMap<_, _> = webhook::states(tx, &part.webhooks)?.into_iter().collect();
        let mut fan = FanOut::new(cx);
        for id in part.webhooks {
            let Some(state) = states.get(&id) else { continue };
            let sends = state.enabled && !erased && event.created_at >= state.dropped_before;
            fan.add(cx, &event, &payload, id, sends);
        }
        fan.write(tx)?;
        Ok(true)
    }
}
