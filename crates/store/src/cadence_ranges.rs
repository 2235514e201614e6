//! The ranges of the cadence's indexes: who is due in a given period, ordered by due date.
//!
//! The rows of one stage on the company's cadence are in the order of their due dates, whatever the cadence
//! is; so are those with a cadence override. A list is a merge of such ranges.

use rapport_domain::company::Settings;
use rapport_domain::id::AccountId;
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use crate::account_list::Sql;

const DAY_MICROS: i64 = 86_400_000_000;

/// The settings from which due dates are derived.
pub(crate) struct Derived {
    /// The stages to read.
    pub statuses: Vec<Status>,
    pub interval_micros: i64,
    /// The date in the company's zone; a snooze up to this date is over.
    pub today: String,
}

/// The rows of one stage that are either all on the company's cadence or all have an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    pub own: bool,
    pub which: Which,
}

/// Which rows to read, and thereby the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Without a snooze, by due date.
    Awake,
    /// The same, but only those not announced.
    AwakeUnannounced,
    /// With a snooze, over or not, by due date.
    Snoozed,
    /// With a snooze that is over but not cleared yet: about a day's worth, which are sorted.
    Rested,
    RestedUnannounced,
    /// With a snooze that isn't over, by its date.
    Asleep,
}

impl Which {
    /// All rows that a reminder may be due for.
    pub const REMINDABLE: &[Self] = &[Self::Awake, Self::Rested];
    pub const UNANNOUNCED: &[Self] = &[Self::AwakeUnannounced, Self::RestedUnannounced];
    pub const ALL: &[Self] = &[Self::Awake, Self::Snoozed];

    const fn index(self) -> &'static str {
        match self {
            Self::Awake => "cadence_by_time",
            Self::AwakeUnannounced => "cadence_unannounced",
            Self::Snoozed => "cadence_snoozed_by_time",
            Self::Rested | Self::RestedUnannounced | Self::Asleep => "cadence_snoozed",
        }
    }

    /// Whether they are read in order of the snooze's date.
    const fn by_date(self) -> bool {
        matches!(self, Self::Rested | Self::RestedUnannounced | Self::Asleep)
    }

    /// The row's time. If rows are read by the date of the snooze, it must not tempt a planner to walk all
    /// snoozed rows by due date instead.
    const fn at(self) -> &'static str {
        if self.by_date() { "k.at + 0" } else { "k.at" }
    }
}

/// A range of due dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub after: Option<Time>,
    pub until: Option<Time>,
}

impl Window {
    pub const ALL: Self = Self { after: None, until: None };

    pub const fn until(until: Time) -> Self {
        Self { after: None, until: Some(until) }
    }

    pub const fn after(after: Time) -> Self {
        Self { after: Some(after), until: None }
    }
}

/// A position in a list ordered by due date, then id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub due_at: Time,
    pub account: &'a AccountId,
}

impl Derived {
    pub fn of(settings: &Settings, now: Time) -> Self {
        Self {
            statuses: settings.tracked_stages.statuses(),
            interval_micros: settings.cadence_days * DAY_MICROS,
            today: now.day_in(&settings.time_zone).to_string(),
        }
    }

    /// Accounts with their due dates, earliest first.
    pub fn ordered<'a>(
        &'a self,
        which: &[Which],
        window: Window,
        after: Option<Place<'a>>,
        limit: i64,
    ) -> Sql<'a> {
        let mut sql = Sql::default();
        for (n, (status, rows)) in self.ranges(which).enumerate() {
            sql.push(if n > 0 { " UNION ALL " } else { "" });
            sql.push("SELECT part.id AS id, part.due AS due FROM (SELECT k.account AS id, k.at + CAST(");
            sql.bind(self.interval(rows)).push(" AS BIGINT) AS due");
            self.range(&mut sql, status, rows, window);
            if let Some(Place { due_at, account }) = after {
                sql.push(" AND (").push(rows.which.at()).push(", k.account) > (").bind(self.at(due_at, rows));
                sql.push(", ").bind(account).push(")");
            }
            sql.push(" ORDER BY ").push(rows.which.at()).push(", k.account");
            sql.limit(limit);
            sql.push(") AS part");
        }
        sql.push(" ORDER BY due, id");
        sql.limit(limit);
        sql
    }

    /// The accounts' ids in any order, at most `limit` from each range if given.
    pub fn ids<'a>(&'a self, sql: &mut Sql<'a>, which: &[Which], window: Window, limit: Option<i64>) {
        let ranges: Vec<_> = self.ranges(which).map(|(status, rows)| (status, rows, window)).collect();
        self.ids_in(sql, &ranges, limit);
    }

    /// The same for ranges with their own windows.
    pub fn ids_in<'a>(&'a self, sql: &mut Sql<'a>, ranges: &[(Status, Rows, Window)], limit: Option<i64>) {
        for (n, (status, rows, window)) in ranges.iter().copied().enumerate() {
            sql.push(if n > 0 { " UNION ALL " } else { "" });
            sql.push("SELECT part.id AS id FROM (SELECT k.account AS id");
            self.range(sql, status, rows, window);
            if let Some(limit) = limit {
                // In the order of the index, so that a planner uses the index and stops early.
                sql.push(if rows.which.by_date() { " ORDER BY k.snoozed_until" } else { " ORDER BY k.at" });
                sql.limit(limit);
            }
            sql.push(") AS part");
        }
    }

    /// Accounts whose snooze isn't over, by its date.
    pub fn asleep<'a>(&'a self, after: Option<(&'a str, &'a AccountId)>, limit: i64) -> Sql<'a> {
        let mut sql = Sql::default();
        for (n, status) in self.statuses.iter().enumerate() {
            sql.push(if n > 0 { " UNION ALL " } else { "" });
            sql.push("SELECT part.id AS id, part.until AS until FROM (");
            sql.push("SELECT k.account AS id, k.snoozed_until AS until");
            self.of_stage(&mut sql, *status, Which::Asleep);
            if let Some((date, account)) = after {
                sql.push(" AND (k.snoozed_until, k.account) > (").bind(date);
                sql.push(", ").bind(account).push(")");
            }
            sql.push(" ORDER BY k.snoozed_until, k.account");
            sql.limit(limit);
            sql.push(") AS part");
        }
        sql.push(" ORDER BY until, id");
        sql.limit(limit);
        sql
    }

    fn ranges(&self, which: &[Which]) -> impl Iterator<Item = (Status, Rows)> {
        let rows = |which: &Which| [false, true].map(|own| Rows { own, which: *which });
        let rows: Vec<Rows> = which.iter().flat_map(rows).collect();
        self.statuses.iter().flat_map(move |status| rows.clone().into_iter().map(move |rows| (*status, rows)))
    }

    /// The interval to add to a row's time to get its due date.
    fn interval(&self, rows: Rows) -> i64 {
        if rows.own { 0 } else { self.interval_micros }
    }

    /// The time of a row that is due at `due_at`.
    fn at(&self, due_at: Time, rows: Rows) -> i64 {
        due_at.as_micros().saturating_sub(self.interval(rows))
    }

    fn range<'a>(&'a self, sql: &mut Sql<'a>, status: Status, rows: Rows, window: Window) {
        self.of_stage(sql, status, rows.which);
        let at = rows.which.at();
        sql.push(if rows.which.by_date() { " AND k.own + 0 = " } else { " AND k.own = " });
        sql.push(if rows.own { "1" } else { "0" });
        if let Some(after) = window.after {
            sql.push(" AND ").push(at).push(" > ").bind(self.at(after, rows));
        }
        if let Some(until) = window.until {
            sql.push(" AND ").push(at).push(" <= ").bind(self.at(until, rows));
        }
    }

    fn of_stage<'a>(&'a self, sql: &mut Sql<'a>, status: Status, which: Which) {
        sql.push(" FROM cadence k /*INDEXED BY ").push(which.index()).push("*/");
        sql.push(" WHERE k.company = $1 AND k.status = ").bind(status);
        sql.push(match which {
            Which::Awake => " AND k.snoozed_until IS NULL",
            Which::AwakeUnannounced => " AND k.snoozed_until IS NULL AND k.announced = 0",
            Which::Snoozed => " AND k.snoozed_until IS NOT NULL",
            Which::Rested => " AND k.snoozed_until IS NOT NULL AND k.snoozed_until <= ",
            Which::RestedUnannounced => {
                " AND k.snoozed_until IS NOT NULL AND k.announced = 0 AND k.snoozed_until <= "
            }
            Which::Asleep => " AND k.snoozed_until IS NOT NULL AND k.snoozed_until > ",
        });
        if which.by_date() {
            sql.bind(&self.today);
        }
    }
}
