//! Retention: deletes expired data in steps small enough that nothing else waits for them.

use rapport_domain::activity::{EVENT_ID_DAYS, EventMark, PULSE_DAYS, REJECT_DAYS};
use rapport_domain::bulk;
use rapport_domain::company::Settings;
use rapport_domain::correction;
use rapport_domain::delivery::HISTORY_DAYS;
use rapport_domain::id::{AccountId, CompanyId};
use rapport_domain::import::{IDLE_DAYS, MAPPING_DAYS, UNDO_DAYS};
use rapport_domain::mail::KEPT_DAYS;
use rapport_domain::repeat::forgotten_at;
use rapport_domain::time::{Day, Time};
use rapport_store::change::Place;
use rapport_store::import_data::{self, Cutoffs};
use rapport_store::{
    Lane, Tx, account_changes, activity_day, address_change, audit, bulk_change, correction as corrections,
    digest, ingest_reject, invitation, mail, mail_budget, retention, session, submission, tombstone,
};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::submission::FORM_DAYS;

/// Rows removed per transaction.
const STEP: i64 = 200;
/// Keys that one read scans for expired data.
const STRETCH: i64 = 1_000;
/// Reads per scan in one round; the next round continues from there.
const STRETCHES: usize = 200;
/// A company may change its time zone: a day is folded once no zone shows it any more.
const ZONE_DAYS: i64 = 2;
/// A deleted webhook stays at least this long: a change in progress may still have to write its delivery.
const WEBHOOK_DAYS: i64 = 1;

/// The position of one company's rounds. Losing it costs a scan from the beginning.
#[derive(Debug, Clone, Default)]
pub struct Round {
    phase: Phase,
    mark: Option<EventMark>,
    change: Option<Place>,
    account: Option<AccountId>,
    stretches: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    History,
    Imports,
    Marks,
    Changes,
    Activity,
}

impl Round {
    /// After a stretch, moves on to the next one or to the next phase.
    fn walked(&mut self, is_last: bool, next: Phase) {
        self.stretches += 1;
        if is_last || self.stretches >= STRETCHES {
            self.phase = next;
            self.stretches = 0;
        }
    }
}

/// Runs one step of a company's round; returns whether the round has more.
pub async fn step(app: &App, company: CompanyId, round: &mut Round) -> Result<bool, Error> {
    let access = Access::System(company);
    match round.phase {
        Phase::History => {
            if !app.write(&access, PruneHistory).await? {
                round.phase = Phase::Imports;
            }
            Ok(true)
        }
        Phase::Imports => {
            if !app.write(&access, PruneImports).await? {
                round.phase = Phase::Marks;
            }
            Ok(true)
        }
        Phase::Marks => {
            let cutoff = marks_cutoff(app.now());
            let after = round.mark;
            let read = app.read(&access, Needs::Server, move |snapshot, _| {
                retention::old_marks(snapshot, after, cutoff, STRETCH)
            });
            let stretch = read.await?.reply;
            for marks in stretch.old.chunks(usize::try_from(STEP).unwrap_or(1)) {
                app.write(&access, FreeMarks(marks.to_vec())).await?;
            }
            round.mark = stretch.next;
            round.walked(stretch.next.is_none(), Phase::Changes);
            Ok(true)
        }
        Phase::Changes => {
            let after = round.change.unwrap_or(Place::START);
            let read = app.read(&access, Needs::Server, move |snapshot, _| {
                account_changes::past(snapshot, after, STRETCH)
            });
            let stretch = read.await?.reply;
            for entries in stretch.entries.chunks(usize::try_from(STEP).unwrap_or(1)) {
                app.write(&access, ForgetChanges(entries.to_vec())).await?;
            }
            round.change = stretch.next;
            // Changes may come faster than a round of few stretches could keep up with.
            if !stretch.entries.is_empty() && stretch.next.is_some() {
                return Ok(true);
            }
            round.walked(stretch.next.is_none(), Phase::Activity);
            Ok(true)
        }
        Phase::Activity => {
            let settings = app.read(&access, Needs::Server, |_, _| Ok(())).await?.company.settings;
            let (after, last) = (round.account, last_folded_day(&settings, app.now()));
            let read = app.read(&access, Needs::Server, move |snapshot, _| {
                retention::foldable_accounts(snapshot, after, last, STRETCH)
            });
            let stretch = read.await?.reply;
            let mut left = stretch.old.as_slice();
            while !left.is_empty() {
                let done = app.write(&access, FoldActivity(left.to_vec())).await?;
                left = &left[done.min(left.len())..];
            }
            round.account = stretch.next;
            round.walked(stretch.next.is_none(), Phase::History);
            Ok(round.phase == Phase::Activity)
        }
    }
}

fn marks_cutoff(now: Time) -> Time {
    now.plus_days(-EVENT_ID_DAYS)
}

fn last_folded_day(settings: &Settings, now: Time) -> Day {
    now.day_in(&settings.time_zone).minus_days(PULSE_DAYS + ZONE_DAYS)
}

/// Deletes some expired history: deliveries, events, deleted accounts, mail, the audit log, kept responses, what
/// corrections removed, what bulk changes replaced. Returns whether there is more.
pub struct PruneHistory;

impl Command for PruneHistory {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<bool, Error> {
        let cutoff = cx.now.plus_days(-HISTORY_DAYS);
        let is_full = |removed: usize| i64::try_from(removed).unwrap_or(0) == STEP;
        // Events go after their deliveries, and so do webhooks.
        if is_full(retention::prune_deliveries(tx, cutoff, STEP)?)
            || is_full(retention::prune_events(tx, cutoff, STEP)?)
            || is_full(tombstone::prune(tx, cutoff, STEP)?)
            || is_full(mail::prune(tx, cx.now.plus_days(-KEPT_DAYS), STEP)?)
            || is_full(audit::prune(tx, cx.now.plus_days(-cx.settings().audit_days), STEP)?)
            || is_full(submission::forget(tx, forgotten_at(cx.now), STEP)?)
            || is_full(bulk_change::forget(tx, cx.now.plus_days(-bulk::UNDO_DAYS), STEP)?)
            || is_full(corrections::forget(tx, cx.now.plus_days(-correction::UNDO_DAYS), STEP)?)
        {
            return Ok(true);
        }
        digest::prune(tx, cx.now.plus_days(-KEPT_DAYS))?;
        invitation::prune(tx, cx.now.plus_days(-KEPT_DAYS))?;
        mail_budget::prune(tx, cx.now)?;
        address_change::prune(tx, cx.now)?;
        ingest_reject::prune(tx, cx.now.plus_days(-REJECT_DAYS))?;
        retention::prune_redeliveries(tx, cutoff)?;
        let limits = cx.settings().sessions;
        session::prune(tx, limits.unseen_since(cx.now), limits.begun_before(cx.now))?;
        submission::prune(tx, cx.now.plus_days(-FORM_DAYS))?;
        activity_day::prune(tx, last_folded_day(cx.settings(), cx.now))?;
        retention::prune_webhooks(tx, cx.now.plus_days(-WEBHOOK_DAYS))?;
        Ok(false)
    }
}

/// Deletes some leftovers of imports: imported files, old errors and undo data, idle uploads. Returns whether
/// there is more.
pub struct PruneImports;

impl Command for PruneImports {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<bool, Error> {
        let cutoffs = Cutoffs {
            idle: cx.now.plus_days(-IDLE_DAYS),
            ended: cx.now.plus_days(-UNDO_DAYS),
            mapping: cx.now.plus_days(-MAPPING_DAYS),
            now: cx.now,
        };
        Ok(import_data::prune(tx, cutoffs, STEP)?)
    }
}

/// Frees event_ids that have expired.
struct FreeMarks(Vec<EventMark>);

impl Command for FreeMarks {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        Ok(retention::free_marks(tx, &self.0, marks_cutoff(cx.now))?)
    }
}

/// Deletes changes of accounts that have changed again since.
struct ForgetChanges(Vec<(i64, AccountId)>);

impl Command for ForgetChanges {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(account_changes::forget(tx, &self.0)?)
    }
}

/// Folds counts of days that are no longer shown; returns how many of the accounts are done.
struct FoldActivity(Vec<AccountId>);

impl Command for FoldActivity {
    type Reply = usize;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<usize, Error> {
        let last = last_folded_day(cx.settings(), cx.now);
        let mut room = STEP;
        for (done, account) in self.0.iter().enumerate() {
            let folded = i64::try_from(retention::fold_counts(tx, *account, last, room)?).unwrap_or(STEP);
            room -= folded;
            if room <= 0 {
                return Ok(done);
            }
        }
        Ok(self.0.len())
    }
}
