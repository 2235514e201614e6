//! Ingest: applies a batch of client activity. It counts events, stores them and moves accounts.

use std::collections::{BTreeMap, HashMap, HashSet};

use rapport_domain::account::{Account, Change, Mover};
use rapport_domain::activity::{
    About, Activity, Batch, EventMark, MAX_REJECTS_KEPT, MAX_REJECTS_OF_BATCH, PULSE_DAYS, Rejection,
    may_move,
};
use rapport_domain::event::Kind;
use rapport_domain::id::AccountId;
use rapport_domain::money::Capture;
use rapport_domain::pipeline::Source;
use rapport_domain::time::{Day, Time};
use rapport_store::account::Edit;
use rapport_store::activity::{Count, NewActivity, Seen};
use rapport_store::ingest_reject::{self, Reject};
use rapport_store::{Tx, account, activity, activity_day, history};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::{Outbox, wants};

/// The extra cost of a move compared to a counted event: the account's row, history, an event and its
/// deliveries.
const MOVE_WEIGHT: usize = 7;

pub struct Ingest {
    pub batch: Batch,
    /// The arrival time.
    pub received_at: Time,
    /// The size of the request, for its weight in the queue.
    pub bytes: usize,
}

/// The outcome of a batch; `received` is the sum of the other counts, unless the batch is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ingested {
    pub received: usize,
    pub accepted: usize,
    /// Indexes of the events whose `event_id` was accepted before.
    pub duplicates: Vec<usize>,
    /// Indexes of the events that match no account.
    pub unmatched: Vec<usize>,
    pub rejected: Vec<Rejection>,
    /// The batch is strict and has events that are unmatched or rejected: nothing of it was stored.
    pub refused: bool,
}

impl Command for Ingest {
    type Reply = Ingested;
    const NEEDS: Needs = Needs::IngestKey;
    const TOGETHER: usize = 64;
    const AT_ONCE: usize = 2;

    fn weight(&self) -> usize {
        let moves = self.batch.valid.iter().filter(|event| event.kind.trigger().is_some()).count();
        self.batch.received + moves * MOVE_WEIGHT + self.bytes / 1024
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Ingested, Error> {
        let mut answers = Self::run_many(&[(self, cx)], tx)?;
        answers.pop().unwrap_or(Err(Error::Internal("no answer".to_owned())))
    }

    fn run_many(
        batch: &[(&Self, &Context)],
        tx: &mut Tx,
    ) -> Result<Vec<Result<Ingested, Error>>, rapport_store::Error> {
        let directory = Directory::load(tx, batch)?;
        let mut matched = Vec::new();
        let mut answers: Vec<Ingested> = batch
            .iter()
            .map(|(ingest, _)| directory.sort_out(&ingest.batch, ingest.received_at, &mut matched))
            .collect();
        // The answer each matched event belongs to, in order of arrival.
        let mut owner = answers.iter().enumerate().flat_map(|(n, answer)| vec![n; answer.accepted]);
        let fresh = fresh_marks(tx, &matched, batch[0].1.now)?;
        let mut seen_marks = HashSet::new();
        let mut accepted = Vec::with_capacity(matched.len());
        let mut duplicates = vec![Vec::new(); answers.len()];
        for event in matched {
            let owner = owner.next().unwrap_or(0);
            let again =
                event.activity.mark.is_some_and(|mark| !fresh.contains(&mark) || !seen_marks.insert(mark));
            if again {
                duplicates[owner].push(event.activity.index);
            } else {
                accepted.push((event, batch[owner].1));
            }
        }
        drop(owner);
        for (answer, duplicates) in answers.iter_mut().zip(duplicates) {
            answer.accepted -= duplicates.len();
            answer.duplicates = duplicates;
        }
        apply(tx, &accepted)?;
        keep_rejects(tx, batch, &answers)?;
        Ok(answers.into_iter().map(Ok).collect())
    }
}

/// An event with the account it concerns.
struct Matched<'a> {
    account: AccountId,
    activity: &'a Activity,
    received_at: Time,
}

/// The accounts a batch names.
struct Directory<'a> {
    by_imported_id: HashMap<&'a str, AccountId>,
    by_id: HashSet<AccountId>,
}

impl<'a> Directory<'a> {
    fn load(tx: &mut Tx, batch: &[(&'a Ingest, &Context)]) -> Result<Self, rapport_store::Error> {
        let events = || batch.iter().flat_map(|(ingest, _)| &ingest.batch.valid);
        let mut imported_ids: Vec<&str> = events().filter_map(|event| event.imported_id.as_deref()).collect();
        imported_ids.sort_unstable();
        imported_ids.dedup();
        let mut ids: Vec<AccountId> = events().filter_map(|event| event.account_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut by_imported_id = HashMap::with_capacity(imported_ids.len());
        for (imported_id, id) in account::ids_by_imported_id(tx, &imported_ids)? {
            if let Ok(place) = imported_ids.binary_search(&imported_id.as_str()) {
                by_imported_id.insert(imported_ids[place], id);
            }
        }
        Ok(Self { by_imported_id, by_id: account::existing(tx, &ids)?.into_iter().collect() })
    }

    /// Splits a batch into matched, unmatched and rejected events; `accepted` counts the matched ones for
    /// now. Nothing of a strict batch is matched unless all of it is.
    fn sort_out(&self, batch: &'a Batch, received_at: Time, matched: &mut Vec<Matched<'a>>) -> Ingested {
        let before = matched.len();
        let mut answer =
            Ingested { received: batch.received, rejected: batch.rejected.clone(), ..Ingested::default() };
        for activity in &batch.valid {
            match self.find(activity) {
                Found::Account(account) => {
                    answer.accepted += 1;
                    matched.push(Matched { account, activity, received_at });
                }
                Found::None => answer.unmatched.push(activity.index),
                Found::Two => answer.rejected.push(Rejection {
                    index: activity.index,
                    code: "account_mismatch",
                    field: "account_id",
                    detail: "imported_id and account_id name different accounts".to_owned(),
                    about: About::valid(activity),
                }),
            }
        }
        answer.rejected.sort_unstable_by_key(|rejection| rejection.index);
        if batch.strict && answer.accepted < answer.received {
            answer.refused = true;
            answer.accepted = 0;
            matched.truncate(before);
        }
        answer
    }

    fn find(&self, activity: &Activity) -> Found {
        let by_imported_id = activity.imported_id.as_deref().map(|id| self.by_imported_id.get(id).copied());
        let by_id = activity.account_id.map(|id| self.by_id.get(&id).copied());
        match (by_imported_id, by_id) {
            (Some(Some(one)), Some(Some(other))) if one != other => Found::Two,
            // If both members are given, both must be known: half a match is no match.
            (Some(None), _) | (_, Some(None)) | (None, None) => Found::None,
            (Some(Some(account)), _) | (None, Some(Some(account))) => Found::Account(account),
        }
    }
}

enum Found {
    Account(AccountId),
    None,
    /// The two names belong to different accounts.
    Two,
}

/// Stores some of the rejected events for people to see. A batch that is refused as a whole leaves nothing behind: a
/// strict one, or one without any valid event.
fn keep_rejects(
    tx: &mut Tx,
    batch: &[(&Ingest, &Context)],
    answers: &[Ingested],
) -> Result<(), rapport_store::Error> {
    let mut kept = Vec::new();
    for ((ingest, cx), answer) in batch.iter().zip(answers) {
        if answer.refused || answer.rejected.len() == answer.received {
            continue;
        }
        kept.extend(answer.rejected.iter().take(MAX_REJECTS_OF_BATCH).map(|rejection| Reject {
            id: cx.id(),
            at: ingest.received_at,
            place: i64::try_from(rejection.index).unwrap_or(0),
            account: rejection.about.account.clone(),
            kind: rejection.about.kind.clone(),
            code: rejection.code.to_owned(),
            field: rejection.field.to_owned(),
            detail: rejection.detail.clone(),
        }));
    }
    if kept.is_empty() {
        return Ok(());
    }
    let newest = &kept[kept.len().saturating_sub(MAX_REJECTS_KEPT)..];
    ingest_reject::insert(tx, newest, i64::try_from(MAX_REJECTS_KEPT).unwrap_or(1))
}

/// Claims the event ids of the matched events; returns those that are new.
fn fresh_marks(
    tx: &mut Tx,
    matched: &[Matched],
    now: Time,
) -> Result<HashSet<EventMark>, rapport_store::Error> {
    let mut marks: Vec<EventMark> = matched.iter().filter_map(|event| event.activity.mark).collect();
    marks.sort_unstable();
    marks.dedup();
    activity::take_marks(tx, &marks, now)
}

/// Applies accepted events in order, and writes their effects.
fn apply(tx: &mut Tx, accepted: &[(Matched, &Context)]) -> Result<(), rapport_store::Error> {
    let mut tally = Tally::default();
    let mut days: BTreeMap<Day, i64> = BTreeMap::new();
    for (event, cx) in accepted {
        let day = event.activity.occurred_at.day_in(&cx.settings().time_zone);
        tally.add(event, day);
        *days.entry(day).or_default() += 1;
    }
    let mut movable = lock_movable(tx, accepted)?;
    let mut outbox = Outbox::default();
    for (event, cx) in accepted {
        if let Some(account) = movable.get_mut(&event.account) {
            account.apply(event.activity, cx, &mut outbox);
        }
    }
    tally.write(tx)?;
    let mut edits: Vec<Edit> = movable
        .values()
        .filter(|movable| movable.changed)
        .map(|Movable { before, account, .. }| Edit { before, after: account })
        .collect();
    edits.sort_unstable_by_key(|edit| edit.after.id);
    account::update(tx, &edits)?;
    let Some((first, cx)) = accepted.first() else { return Ok(()) };
    outbox.write(tx, cx)?;
    // Days that are no longer shown aren't counted. This comes last because it is the only place where the
    // company's writers contend; ids end in random bytes, which spreads them.
    let today = cx.now.day_in(&cx.settings().time_zone);
    days.retain(|day, _| *day > today.minus_days(PULSE_DAYS));
    activity_day::add(tx, &days, first.account.as_bytes()[15])
}

/// An account a batch may move.
struct Movable {
    before: Account,
    account: Account,
    changed: bool,
    /// When it last moved. Known only if the company asks whether an event is older than that.
    latest_move: Option<Time>,
}

impl Movable {
    fn apply(&mut self, activity: &Activity, cx: &Context, outbox: &mut Outbox) {
        let account = &mut self.account;
        let before = wants(cx, Kind::AccountUpdated).then(|| account.clone());
        account.see(activity.occurred_at);
        let mut change = Change::default();
        account.capture(activity.capture, cx.settings().default_currency, &mut change);
        if !change.changed.is_empty() {
            account.updated_at = cx.now;
            self.changed = true;
        }
        let moves = may_move(activity.occurred_at, self.latest_move, cx.settings().late_events_move);
        let trigger = activity.kind.trigger().filter(|_| moves);
        let step =
            trigger.and_then(|trigger| account.trigger(trigger, Mover::Activity, cx.settings(), cx.now));
        if let Some(step) = step {
            // A sender's clock may be ahead of ours, and what people do next is not late because of that.
            let happened_at = activity.occurred_at.min(cx.now);
            outbox.moved_by_activity(cx, account, step, happened_at);
            self.latest_move = self.latest_move.max(Some(happened_at));
            self.changed = true;
        }
        if let Some(before) = before {
            outbox.updated(cx, &before, account, Source::Automation);
        }
    }
}

/// Locks the accounts that some event may move or give a value; the rows of the others stay untouched.
fn lock_movable(
    tx: &mut Tx,
    accepted: &[(Matched, &Context)],
) -> Result<HashMap<AccountId, Movable>, rapport_store::Error> {
    let moves = |activity: &Activity| activity.kind.trigger().is_some() || activity.capture != Capture::Keep;
    let mut ids: Vec<AccountId> =
        accepted.iter().filter(|(event, _)| moves(event.activity)).map(|(event, _)| event.account).collect();
    ids.sort_unstable();
    ids.dedup();
    let movable = |account: Account| {
        (account.id, Movable { before: account.clone(), account, changed: false, latest_move: None })
    };
    let mut locked: HashMap<AccountId, Movable> = account::lock(tx, &ids)?.into_iter().map(movable).collect();
    if accepted.first().is_some_and(|(_, cx)| !cx.settings().late_events_move) {
        for (id, latest_move) in history::latest_moves(tx, &ids)? {
            if let Some(found) = locked.get_mut(&id) {
                found.latest_move = latest_move;
            }
        }
    }
    Ok(locked)
}

/// Everything a batch counts, combined per row before it is written.
#[derive(Default)]
struct Tally<'a> {
    events: Vec<NewActivity<'a>>,
    counts: Vec<Count<'a>>,
    seen: Vec<Seen>,
}

impl<'a> Tally<'a> {
    fn add(&mut self, event: &Matched<'a>, day: Day) {
        let Matched { account, activity, received_at } = *event;
        let at = activity.occurred_at;
        self.events.push(NewActivity {
            account,
            occurred_at: at,
            received_at,
            kind: activity.kind.as_str(),
            feature: activity.feature.as_deref(),
            metadata: activity.metadata.as_deref(),
        });
        let feature = activity.feature.as_deref().unwrap_or("");
        self.counts.push(Count { account, day, feature, count: 1, last_used_at: at });
        self.seen.push(Seen { account, first: at, last: at, day });
    }

    fn write(mut self, tx: &mut Tx) -> Result<(), rapport_store::Error> {
        activity::insert(tx, &self.events)?;
        self.seen.sort_unstable_by_key(|seen| seen.account);
        self.seen.dedup_by(|next, kept| {
            let same = next.account == kept.account;
            if same {
                kept.first = kept.first.min(next.first);
                kept.last = kept.last.max(next.last);
                kept.day = kept.day.max(next.day);
            }
            same
        });
        activity::see(tx, &self.seen)?;
        self.counts
            .sort_unstable_by(|a, b| (a.account, a.day, a.feature).cmp(&(b.account, b.day, b.feature)));
        self.counts.dedup_by(|next, kept| {
            let same = (next.account, next.day, next.feature) == (kept.account, kept.day, kept.feature);
            if same {
                kept.count += next.count;
                kept.last_used_at = kept.last_used_at.max(next.last_used_at);
            }
            same
        });
        activity::count(tx, &self.counts)
    }
}
