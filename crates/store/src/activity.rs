//! Client activity: the raw events, the counters, first and last seen, and the event_ids in use.

use std::collections::HashSet;

use rapport_domain::activity::{EVENT_ID_DAYS, EventMark, PULSE_DAYS, PULSE_FEATURES};
use rapport_domain::id::AccountId;
use rapport_domain::time::{Day, Time};

use crate::error::Error;
use crate::page::Page;
use crate::statement::{InsertMany, statements};
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Type, Value};
use crate::values;

statements! {
    company SEEN = "SELECT first_seen_at, last_seen_at FROM account_seen WHERE company = $1 AND account = $2";
    company DAYS = "SELECT day, CAST(sum(count) AS BIGINT) FROM activity_count \
                    WHERE company = $1 AND account = $2 AND day > $3 AND day <= $4 GROUP BY day ORDER BY day";
    company FEATURES = "SELECT feature, CAST(sum(count) AS BIGINT), max(last_used_at) FROM activity_count \
                        WHERE company = $1 AND account = $2 AND feature <> '' GROUP BY feature \
                        ORDER BY 2 DESC, 1 LIMIT $3";
    company TOTAL = "SELECT CAST(COALESCE(sum(count), 0) AS BIGINT) FROM activity_count \
                     WHERE company = $1 AND account = $2";
    // Day 0 holds the totals of days that are too old to be kept separately.
    company ACTIVE_DAYS = "SELECT day, CAST(sum(count) AS BIGINT), max(last_used_at) FROM activity_count \
                           WHERE company = $1 AND account = $2 AND day > 0 AND day < $3 GROUP BY day \
                           ORDER BY day DESC LIMIT $4";
    company ANYBODY = "SELECT account FROM account_seen WHERE company = $1 ORDER BY account LIMIT $2";
    company LIST = "SELECT seq, occurred_at, received_at, kind, feature, metadata FROM activity \
                    WHERE company = $1 AND account = $2 AND (occurred_at < $3 OR (occurred_at = $3 AND seq < $4)) \
                    ORDER BY occurred_at DESC, seq DESC LIMIT $5";
    company DELETE_EVENTS = "DELETE FROM activity WHERE company = $1 AND account = $2";
    company DELETE_COUNTS = "DELETE FROM activity_count WHERE company = $1 AND account = $2";
    company DELETE_SEEN = "DELETE FROM account_seen WHERE company = $1 AND account = $2";
}

pub(crate) static INSERT: InsertMany = InsertMany::new(
    "activity",
    &[
        ("account", Type::Bytes),
        ("occurred_at", Type::Int),
        ("received_at", Type::Int),
        ("kind", Type::Text),
        ("feature", Type::Text),
        ("metadata", Type::Text),
    ],
    "",
);

pub(crate) static COUNT: InsertMany = InsertMany::new(
    "activity_count",
    &[
        ("account", Type::Bytes),
        ("day", Type::Int),
        ("feature", Type::Text),
        ("count", Type::Int),
        ("last_used_at", Type::Int),
    ],
    "ON CONFLICT (company, account, day, feature) DO UPDATE SET count = activity_count.count + excluded.count, \
     last_used_at = CASE WHEN excluded.last_used_at > activity_count.last_used_at \
     THEN excluded.last_used_at ELSE activity_count.last_used_at END",
);

const SEEN_COLUMNS: &[(&str, Type)] = &[
    ("account", Type::Bytes),
    ("first_seen_at", Type::Int),
    ("last_seen_at", Type::Int),
    ("last_seen_day", Type::Int),
    ("last_seen_minute", Type::Int),
];

/// SQLite writes an index entry again even if it stays the same, so this leaves rows whose entries change to the next
/// two. PostgreSQL compares.
pub(crate) static SEE: InsertMany = InsertMany::new(
    "account_seen",
    SEEN_COLUMNS,
    "ON CONFLICT (company, account) DO UPDATE SET \
     last_seen_at = max(excluded.last_seen_at, account_seen.last_seen_at) \
     WHERE excluded.last_seen_minute <= account_seen.last_seen_minute \
     AND excluded.first_seen_at >= account_seen.first_seen_at",
)
.with_postgres_tail(
    "ON CONFLICT (company, account) DO UPDATE SET \
     last_seen_at = greatest(excluded.last_seen_at, account_seen.last_seen_at), \
     last_seen_minute = greatest(excluded.last_seen_minute, account_seen.last_seen_minute), \
     first_seen_at = least(excluded.first_seen_at, account_seen.first_seen_at)",
)
.telling_written();

/// In another minute than before.
pub(crate) static SEE_LATER: InsertMany = InsertMany::new(
    "account_seen",
    SEEN_COLUMNS,
    "ON CONFLICT (company, account) DO UPDATE SET \
     last_seen_at = excluded.last_seen_at, last_seen_minute = excluded.last_seen_minute \
     WHERE excluded.last_seen_minute > account_seen.last_seen_minute \
     AND excluded.first_seen_at >= account_seen.first_seen_at",
)
.telling_written();

/// Earlier than ever, and perhaps later too.
pub(crate) static SEE_EARLIER: InsertMany = InsertMany::new(
    "account_seen",
    SEEN_COLUMNS,
    "ON CONFLICT (company, account) DO UPDATE SET first_seen_at = excluded.first_seen_at, \
     last_seen_at = CASE WHEN excluded.last_seen_at > account_seen.last_seen_at \
     THEN excluded.last_seen_at ELSE account_seen.last_seen_at END, \
     last_seen_minute = CASE WHEN excluded.last_seen_minute > account_seen.last_seen_minute \
     THEN excluded.last_seen_minute ELSE account_seen.last_seen_minute END",
)
.telling_written();

pub(crate) static TAKE_MARK: InsertMany = InsertMany::new(
    "event_mark",
    &[("mark", Type::Bytes), ("at", Type::Int)],
    // An id used more than 90 days ago (in microseconds) is free again.
    "ON CONFLICT (company, mark) DO UPDATE SET at = excluded.at \
     WHERE event_mark.at <= excluded.at - 7776000000000",
)
.telling_written();
const _: () = assert!(EVENT_ID_DAYS * 86_400_000_000 == 7_776_000_000_000);

/// An event to store.
#[derive(Debug, Clone, Copy)]
pub struct NewActivity<'a> {
    pub account: AccountId,
    pub occurred_at: Time,
    pub received_at: Time,
    pub kind: &'static str,
    pub feature: Option<&'a str>,
    pub metadata: Option<&'a str>,
}

pub fn insert(tx: &mut Tx, events: &[NewActivity]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(events.len() * INSERT.width());
    for event in events {
        rows.extend::<[Value; 6]>([
            (&event.account).into(),
            event.occurred_at.into(),
            event.received_at.into(),
            event.kind.into(),
            event.feature.into(),
            event.metadata.into(),
        ]);
    }
    tx.insert(&INSERT, &rows)?;
    Ok(())
}

/// An addition to one counter. Each call contains each (account, day, feature) once, in that order.
#[derive(Debug, Clone, Copy)]
pub struct Count<'a> {
    pub account: AccountId,
    pub day: Day,
    /// Empty for activity without a feature.
    pub feature: &'a str,
    pub count: i64,
    pub last_used_at: Time,
}

pub fn count(tx: &mut Tx, counts: &[Count]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(counts.len() * COUNT.width());
    for count in counts {
        rows.extend::<[Value; 5]>([
            (&count.account).into(),
            count.day.into(),
            count.feature.into(),
            count.count.into(),
            count.last_used_at.into(),
        ]);
    }
    tx.insert(&COUNT, &rows)?;
    Ok(())
}

/// An extension of first and last seen. Each call contains each account once, in order.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub account: AccountId,
    pub first: Time,
    pub last: Time,
    /// The day of `last` in the company's zone, for nodes of the previous release.
    pub day: Day,
}

pub fn see(tx: &mut Tx, seen: &[Seen]) -> Result<(), Error> {
    let mut left: Vec<&Seen> = seen.iter().collect();
    for statement in [&SEE, &SEE_LATER, &SEE_EARLIER] {
        let mut rows = Vec::with_capacity(left.len() * statement.width());
        for seen in &left {
            rows.extend::<[Value; 5]>([
                (&seen.account).into(),
                seen.first.into(),
                seen.last.into(),
                seen.day.into(),
                seen.last.minute().into(),
            ]);
        }
        let written = tx.insert(statement, &rows)?.into_iter().map(|mut row| row.take());
        let written: HashSet<AccountId> = written.collect::<Result<_, _>>()?;
        left.retain(|seen| !written.contains(&seen.account));
        if left.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Remembers event ids; returns those that weren't in use.
pub fn take_marks(tx: &mut Tx, marks: &[EventMark], now: Time) -> Result<HashSet<EventMark>, Error> {
    let mut rows = Vec::with_capacity(marks.len() * TAKE_MARK.width());
    for mark in marks {
        rows.extend::<[Value; 2]>([mark.into(), now.into()]);
    }
    let fresh = tx.insert(&TAKE_MARK, &rows)?;
    fresh.into_iter().map(|mut row| Ok(EventMark::from_bytes(row.take()?))).collect()
}

/// First and last seen.
pub fn seen(snapshot: &mut Snapshot, account: AccountId) -> Result<Option<(Time, Time)>, Error> {
    let row = snapshot.query_opt(&SEEN, values![&account])?;
    row.map(|mut row| Ok((row.take()?, row.take()?))).transpose()
}

/// How often a feature was used, and when last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureUse {
    pub feature: String,
    pub count: i64,
    pub last_used_at: Time,
}

/// Events per day over the days shown up to `today`, without days that have none.
pub fn days(snapshot: &mut Snapshot, account: AccountId, today: Day) -> Result<Vec<(Day, i64)>, Error> {
    let rows = snapshot.query(&DAYS, values![&account, today.minus_days(PULSE_DAYS), today])?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// The most used features over the account's lifetime.
pub fn features(snapshot: &mut Snapshot, account: AccountId) -> Result<Vec<FeatureUse>, Error> {
    let rows = snapshot.query(&FEATURES, values![&account, PULSE_FEATURES])?;
    rows.into_iter()
        .map(|mut row| Ok(FeatureUse { feature: row.take()?, count: row.take()?, last_used_at: row.take()? }))
        .collect()
}

/// The number of events over the account's lifetime.
pub fn total(snapshot: &mut Snapshot, account: AccountId) -> Result<i64, Error> {
    let row = snapshot.query_opt(&TOTAL, values![&account])?;
    row.map_or(Ok(0), |mut row| row.take())
}

/// Whether any account of the company but these few was ever seen.
pub fn has_any(snapshot: &mut Snapshot, besides: &[AccountId]) -> Result<bool, Error> {
    let enough = i64::try_from(besides.len()).unwrap_or(i64::MAX).saturating_add(1);
    let rows = snapshot.query(&ANYBODY, values![enough])?;
    let seen: Vec<AccountId> = rows.into_iter().map(|mut row| row.take()).collect::<Result<_, _>>()?;
    Ok(seen.iter().any(|account| !besides.contains(account)))
}

/// A day on which an account was active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveDay {
    pub day: Day,
    pub events: i64,
    pub last_at: Time,
}

/// The days before a given day on which an account was active, latest first.
pub fn active_days(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Day,
    limit: i64,
) -> Result<Page<ActiveDay>, Error> {
    let rows = snapshot.query(&ACTIVE_DAYS, values![&account, before, limit + 1])?;
    let read = |mut row: Row| Ok(ActiveDay { day: row.take()?, events: row.take()?, last_at: row.take()? });
    let days = rows.into_iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    Ok(Page::from_one_more(days, limit))
}

/// An event as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptActivity {
    pub seq: i64,
    pub occurred_at: Time,
    pub received_at: Time,
    pub kind: String,
    pub feature: Option<String>,
    /// JSON text.
    pub metadata: Option<String>,
}

/// An account's activity, latest first, before (`occurred_at`, `seq`) if given.
pub fn list(
    snapshot: &mut Snapshot,
    account: AccountId,
    before: Option<(Time, i64)>,
    limit: i64,
) -> Result<Page<KeptActivity>, Error> {
    let (at, seq) = before.unwrap_or((Time::from_micros(i64::MAX), i64::MAX));
    let rows = snapshot.query(&LIST, values![&account, at, seq, limit + 1])?;
    let items = rows.into_iter().map(read_kept).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_one_more(items, limit))
}

fn read_kept(mut row: Row) -> Result<KeptActivity, Error> {
    let row = &mut row;
    Ok(KeptActivity {
        seq: row.take()?,
        occurred_at: row.take()?,
        received_at: row.take()?,
        kind: row.take()?,
        feature: row.take()?,
        metadata: row.take()?,
    })
}

pub(crate) fn delete_of_account(tx: &mut Tx, account: AccountId) -> Result<[(&'static str, u64); 3], Error> {
    Ok([
        ("activity", tx.execute(&DELETE_EVENTS, values![&account])?),
        ("activity_count", tx.execute(&DELETE_COUNTS, values![&account])?),
        ("account_seen", tx.execute(&DELETE_SEEN, values![&account])?),
    ])
}
