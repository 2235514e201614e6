//! What a change leaves besides its row: history entries and events, gathered first, written together.

use rapport_domain::account::Account;
use rapport_domain::event::{self, Event, Occasion};
use rapport_domain::history::HistoryEntry;
use rapport_domain::pipeline::{Move, Source};
use rapport_store::{Tx, history};

use crate::command::Context;

/// The history and events of one transaction, in the order they happened.
#[derive(Default)]
pub struct Outbox {
    history: Vec<HistoryEntry>,
    events: Vec<Event>,
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
    }

    pub fn write(&self, tx: &mut Tx) -> Result<(), rapport_store::Error> {
        history::insert(tx, &self.history)?;
        rapport_store::event::insert(tx, &self.events)
    }
}

fn occasion<'a>(cx: &'a Context) -> Occasion<'a> {
    Occasion { id: cx.id(), now: cx.now, project: &cx.company().slug }
}

fn entry(cx: &Context, account: &Account, step: Option<Move>, source: Source, note: Option<&str>) -> HistoryEntry {
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
