//! Bulk redelivery: counted first, then started, run in small steps, and cancelled on request.
//!
//! A step reads the next deliveries outside of any transaction and requests their attempts inside one, unless
//! another node was faster. The sender makes these attempts like any other manual attempt.

use rapport_domain::audit::Action;
use rapport_domain::delivery_list::Filter;
use rapport_domain::id::{CompanyId, DeliveryId, RedeliveryId};
use rapport_domain::redelivery::{MAX_COUNT, MAX_UNMADE, Redelivery, STEP, State, WALKED};
use rapport_domain::right::Right;
use rapport_store::delivery_list::{self, Bounds};
use rapport_store::manual_attempt::{self, NewManualAttempt};
use rapport_store::{Lane, Snapshot, Tx, redelivery};
use serde_json::{Value, json};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::{App, Viewer, audit};

const NEEDS: Needs = Needs::Right(Right::Webhooks);
/// How much one read of a count scans, and how many reads a count may take.
const COUNT_BOUNDS: Bounds = Bounds { items: 20_000, rows: 20_000 };
const MAX_COUNT_READS: usize = 200;
const STEP_BOUNDS: Bounds = Bounds { items: STEP, rows: 5_000 };

/// The number of deliveries that match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub count: i64,
    /// There may be more than `count`.
    pub capped: bool,
}

/// Counts, in reads short enough to let others have their turn.
pub async fn count(app: &App, access: &Access, filter: Filter) -> Result<Counted, Error> {
    let (mut count, mut place) = (0, None);
    for _ in 0..MAX_COUNT_READS {
        let before = place;
        let read = move |snapshot: &mut Snapshot, _: &Viewer| {
            let scan = delivery_list::scan(snapshot, &filter, before, COUNT_BOUNDS)?;
            Ok((scan.found.len(), scan.next))
        };
        let (found, next) = app.read(access, NEEDS, read).await?.reply;
        count += i64::try_from(found).unwrap_or(0);
        if count > MAX_COUNT {
            return Ok(Counted { count: MAX_COUNT, capped: true });
        }
        if next.is_none() {
            return Ok(Counted { count, capped: false });
        }
        place = next;
    }
    Ok(Counted { count, capped: true })
}

/// A bulk redelivery and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub redelivery: Redelivery,
    /// Attempts still to be made.
    pub unmade: i64,
    /// Some of them wait for their auto-disabled webhook to be enabled.
    pub paused: bool,
}

pub fn progress(snapshot: &mut Snapshot, id: RedeliveryId) -> Result<Option<Progress>, rapport_store::Error> {
    redelivery::get(snapshot, id)?.map(|redelivery| follow(snapshot, redelivery)).transpose()
}

/// The progress of a bulk redelivery. One that has ended waits only for attempts already begun.
pub fn follow(snapshot: &mut Snapshot, redelivery: Redelivery) -> Result<Progress, rapport_store::Error> {
    let unmade = match redelivery.state() {
        State::Finished => 0,
        State::Running | State::Cancelled => manual_attempt::unmade(snapshot, redelivery.id)?,
    };
    let may_wait = redelivery.state() == State::Running && unmade > 0;
    let paused = may_wait && manual_attempt::is_paused(snapshot, redelivery.id)?;
    Ok(Progress { redelivery, unmade, paused })
}

/// Starts a bulk redelivery; the steps follow in the background. `total` was counted before.
pub struct StartRedelivery {
    pub filter: Filter,
    pub total: i64,
}

impl Command for StartRedelivery {
    type Reply = Redelivery;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Redelivery, Error> {
        let started = Redelivery::new(cx.id(), self.filter, self.total, cx.now);
        redelivery::insert(tx, &started)?;
        let filter: Value = serde_json::from_str(&self.filter.to_stored()).unwrap_or_default();
        let detail = json!({ "filter": filter, "total": self.total });
        audit::record(tx, cx, Action::RedeliveryStarted, Some(started.id.to_string()), &detail)?;
        Ok(started)
    }
}

/// Requests no more attempts and takes back those not begun: immediately if they wait in the database, and
/// otherwise when the sender that holds one is about to send it. Finished attempts stay as they are.
pub struct CancelRedelivery(pub RedeliveryId);

impl Command for CancelRedelivery {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let mut found = redelivery::lock(tx, self.0)?.ok_or(Error::NotFound("redelivery"))?;
        if found.state() != State::Running {
            return Ok(());
        }
        let before = manual_attempt::unmade(tx, self.0)?;
        manual_attempt::cancel(tx, self.0)?;
        let after = manual_attempt::unmade(tx, self.0)?;
        found.cancel(before - after, cx.now);
        redelivery::update(tx, &found)?;
        audit::record(tx, cx, Action::RedeliveryCancelled, Some(self.0.to_string()), &json!({}))?;
        Ok(())
    }
}

/// What remains to be done after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// The next step can follow immediately.
    More,
    /// Attempts must be made first.
    Waiting,
    Ended,
}

/// Runs one step of a bulk redelivery.
pub async fn step(app: &App, company: CompanyId, id: RedeliveryId) -> Result<Stepped, Error> {
    let access = Access::System(company);
    let read = move |snapshot: &mut Snapshot, _: &Viewer| {
        let found = progress(snapshot, id)?;
        let Some(Progress { redelivery, unmade, .. }) = found else { return Ok(None) };
        if redelivery.state() != State::Running {
            return Ok(None);
        }
        let from = redelivery.walked_to;
        if from == WALKED || unmade >= MAX_UNMADE {
            return Ok(Some((unmade, StepRedelivery { id, from, found: Vec::new(), to: from })));
        }
        let scan = delivery_list::scan(snapshot, &redelivery.filter, Some(from), STEP_BOUNDS)?;
        let found = scan.found.into_iter().map(|listed| listed.delivery.id).collect();
        Ok(Some((unmade, StepRedelivery { id, from, found, to: scan.next.unwrap_or(WALKED) })))
    };
    let Some((unmade, step)) = app.read(&access, Needs::Server, read).await?.reply else {
        return Ok(Stepped::Ended);
    };
    if step.to == step.from && unmade > 0 {
        return Ok(Stepped::Waiting);
    }
    app.write(&access, step).await
}

/// Requests an attempt of each of these deliveries, and records the progress.
pub struct StepRedelivery {
    id: RedeliveryId,
    /// The position when these were read. If it has changed since, another node was faster.
    from: DeliveryId,
    found: Vec<DeliveryId>,
    to: DeliveryId,
}

impl Command for StepRedelivery {
    type Reply = Stepped;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Stepped, Error> {
        let Some(mut found) = redelivery::lock(tx, self.id)? else { return Ok(Stepped::Ended) };
        if found.state() != State::Running {
            return Ok(Stepped::Ended);
        }
        if found.walked_to != self.from {
            return Ok(Stepped::More);
        }
        let able = redelivery::redeliverable(tx, &self.found)?;
        let attempts: Vec<NewManualAttempt> = able
            .into_iter()
            .map(|(delivery, webhook)| NewManualAttempt {
                id: cx.id(),
                delivery,
                webhook,
                redelivery: Some(self.id),
                owner: None,
                requested_at: cx.now,
            })
            .collect();
        manual_attempt::insert(tx, &attempts)?;
        let queued = i64::try_from(attempts.len()).unwrap_or(0);
        let skipped = i64::try_from(self.found.len()).unwrap_or(0) - queued;
        found.walk(self.to, queued, skipped);
        found.finish(manual_attempt::unmade(tx, self.id)?, cx.now);
        redelivery::update(tx, &found)?;
        if queued > 0
            && let Some(sender) = cx.sender()
        {
            let company = cx.company().id;
            tx.after_commit(move || sender.wake_manual(company));
        }
        Ok(match found.state() {
            State::Running if found.walked_to == WALKED => Stepped::Waiting,
            State::Running => Stepped::More,
            State::Finished | State::Cancelled => Stepped::Ended,
        })
    }
}
