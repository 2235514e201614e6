//! The SQL that finds the keys of a page, composed from constant parts; values are always bound.
//!
//! There are two ways to a page. Where one of the filters is narrow, its accounts are collected by
//! that filter's index, checked and sorted. Otherwise accounts are walked in the order of the list
//! and checked one by one until the page is full. Which way is short depends on the values: "a"
//! begins a word of every second account, "zanzibar" of none. A plan made without the values cannot
//! know, so the narrow filter is looked for here, by counting its index range up to a bound, and the
//! SQL leaves a planner no choice: a check is a sub-select that ends in `LIMIT 1 OFFSET 0`, which
//! PostgreSQL never turns into a join.

use std::fmt::Write;

use rapport_domain::company::Settings;
use rapport_domain::id::ChannelId;
use rapport_domain::pipeline::Status;
use rapport_domain::search;
use rapport_domain::time::{Day, Time};

use super::cursor::{Key, Place};
use super::{AccountFilter, Sort};
use crate::cadence_ranges::{Derived, Which, Window};
use crate::company;
use crate::error::Error;
use crate::tx::Snapshot;
use crate::value::Value;

/// A filter with fewer rows than this in its index is narrow.
const NARROW_ROWS: i64 = 10_000;
/// The day and time of an account never seen, before every day and time there is.
pub(super) const NEVER: i64 = -9_000_000_000_000_000_000;
macro_rules! never {
    () => {
        "CAST(-9000000000000000000 AS BIGINT)"
    };
}
/// A day kept while the company had another time zone may be this much off.
const ZONE_DAYS: i64 = 2;

/// What a filter comes to once the company's settings are known.
pub(super) struct Terms {
    text: Option<TextTerms>,
    /// Those allowed; all of them where the filter names none.
    statuses: Vec<Status>,
    channel: Option<ChannelId>,
    imported_id: Option<String>,
    seen: Option<SeenTerms>,
    overdue: Option<OverdueTerms>,
}

/// Words that must each begin a word of the account, longest first, or a whole that alone may.
struct TextTerms {
    words: Vec<Prefix>,
    whole: Option<Prefix>,
}

/// The texts that begin with `from`: those from it and before `to`.
struct Prefix {
    from: String,
    to: String,
}

struct SeenTerms {
    after: Option<Time>,
    before: Option<Time>,
    first_day: Day,
    last_day: Day,
}

struct OverdueTerms {
    wanted: bool,
    tracked: Vec<Status>,
    cadence_days: i64,
    now: Time,
    /// Of the tracked stages among those allowed.
    derived: Derived,
    /// Those allowed that are not tracked: nobody in them is overdue.
    untracked: Vec<Status>,
}

/// In which order keys come, after which place, and how many.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub sort: Sort,
    pub after: Option<&'a Place>,
    pub limit: i64,
}

/// Rows of an index that lead to accounts.
#[derive(Clone, Copy)]
enum Range<'a> {
    ImportedId(&'a str),
    Word(&'a Prefix),
    Seen(&'a SeenTerms),
    Channel(&'a ChannelId),
    Statuses(&'a [Status]),
    /// The accounts of tracked stages that are overdue, or that are not, as wanted.
    Overdue(&'a OverdueTerms),
}

/// Ranges that together hold every account the filter can find.
pub(super) struct Source<'a>(Vec<Range<'a>>);

/// SQL in the making, with the values of its parameters after the company.
#[derive(Default)]
pub(crate) struct Sql<'a> {
    text: String,
    values: Vec<Value<'a>>,
}

impl<'a> Sql<'a> {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn values(&self) -> &[Value<'a>] {
        &self.values
    }

    pub fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub fn bind(&mut self, value: impl Into<Value<'a>>) -> &mut Self {
        self.values.push(value.into());
        // `$1` is the company.
        let _ = write!(self.text, "${}", self.values.len() + 1);
        self
    }

    pub fn limit(&mut self, rows: i64) {
        let _ = write!(self.text, " LIMIT {rows}");
    }
}

/// How many rows a query of keys has.
pub(crate) fn count(keys: &Sql, snapshot: &mut Snapshot) -> Result<i64, Error> {
    let text = format!("SELECT CAST(count(*) AS BIGINT) FROM ({}) AS counted", keys.text);
    let row = snapshot.query_text(&text, &keys.values)?.into_iter().next();
    row.ok_or_else(|| Error::fault("a count without a row"))?.take()
}

impl Terms {
    pub fn of(filter: &AccountFilter, now: Time, snapshot: &mut Snapshot) -> Result<Self, Error> {
        let AccountFilter { q, statuses, channel, imported_id, tracked, overdue, seen_before, seen_after } =
            filter;
        let seen = seen_before.is_some() || seen_after.is_some();
        let settings = if tracked.is_some() || overdue.is_some() || seen {
            let company = company::get(snapshot)?.ok_or_else(|| Error::fault("a list of no company"))?;
            company.settings
        } else {
            Settings::default()
        };
        let wanted = |status: &Status| {
            let is_tracked = settings.tracked_stages.contains(*status);
            (statuses.is_empty() || statuses.contains(status))
                && tracked.is_none_or(|tracked| tracked == is_tracked)
                && (*overdue != Some(true) || is_tracked)
        };
        let statuses: Vec<Status> = Status::ALL.into_iter().filter(wanted).collect();
        Ok(Self {
            text: q.as_deref().and_then(TextTerms::of),
            overdue: overdue.map(|wanted| OverdueTerms::of(wanted, &statuses, &settings, now)),
            statuses,
            channel: *channel,
            imported_id: imported_id.clone(),
            seen: seen.then(|| SeenTerms::of(*seen_after, *seen_before, &settings)),
        })
    }

    /// No account can be found.
    pub fn are_empty(&self) -> bool {
        self.statuses.is_empty()
    }

    /// A filter that leaves so few accounts that all of them can be looked at.
    pub fn narrow_source(&self, sort: Sort, snapshot: &mut Snapshot) -> Result<Option<Source<'_>>, Error> {
        if let Some(imported_id) = &self.imported_id {
            return Ok(Some(Source(vec![Range::ImportedId(imported_id)])));
        }
        for source in self.sources(sort) {
            let mut rows = 0;
            for range in &source.0 {
                let mut sql = Sql::default();
                range.write(&mut sql);
                sql.limit(NARROW_ROWS);
                rows += count(&sql, snapshot)?;
            }
            if rows < NARROW_ROWS {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    /// The filters that might be narrow.
    pub fn sources(&self, sort: Sort) -> Vec<Source<'_>> {
        let mut sources = Vec::new();
        if let Some(TextTerms { words, whole }) = &self.text {
            let whole = whole.as_ref().map(Range::Word);
            if words.is_empty() {
                sources.push(Source(whole.into_iter().collect()));
            }
            sources.extend(
                words.iter().map(|word| Source([Range::Word(word)].into_iter().chain(whole).collect())),
            );
        }
        sources.extend(self.overdue.as_ref().and_then(OverdueTerms::source));
        // The walk by last seen begins where this filter does; those by id have indexes of channel
        // and status in their own order.
        let by_id = matches!(sort, Sort::Newest | Sort::Oldest);
        if sort != Sort::LastSeen {
            sources.extend(self.seen.as_ref().map(|seen| Source(vec![Range::Seen(seen)])));
        }
        if !by_id {
            sources.extend(self.channel.as_ref().map(|channel| Source(vec![Range::Channel(channel)])));
        }
        if !by_id && self.restrict_status() {
            sources.push(Source(vec![Range::Statuses(&self.statuses)]));
        }
        sources
    }

    fn restrict_status(&self) -> bool {
        self.statuses.len() < Status::ALL.len()
    }

    /// The queries whose rows, one after the other, are the keys.
    pub fn queries<'a>(&'a self, narrow: Option<&Source<'a>>, order: Order<'a>) -> Vec<Sql<'a>> {
        match (narrow, order.sort) {
            (Some(source), _) => vec![self.collect(source, order)],
            (None, Sort::Newest | Sort::Oldest) => vec![self.walk_by_id(order)],
            (None, Sort::Name | Sort::NameDescending) => vec![self.walk_by_name(order)],
            (None, Sort::LastSeen) => self.walk_by_last_seen(order),
        }
    }

    /// Collects the accounts of a narrow source, with what they are sorted by, then checks and sorts.
    fn collect<'a>(&'a self, source: &Source<'a>, order: Order<'a>) -> Sql<'a> {
        let mut sql = Sql::default();
        sql.push("WITH found AS MATERIALIZED (SELECT DISTINCT ranged.id AS id FROM (");
        for (n, range) in source.0.iter().enumerate() {
            sql.push(if n > 0 { " UNION ALL " } else { "" });
            range.write(&mut sql);
        }
        sql.push(") AS ranged), kept AS MATERIALIZED (SELECT f.id AS id");
        sql.push(match order.sort {
            Sort::Newest | Sort::Oldest => "",
            Sort::Name | Sort::NameDescending => {
                ", (SELECT a.name_folded FROM account a WHERE a.company = $1 AND a.id = f.id) AS name_folded"
            }
            Sort::LastSeen => concat!(
                ", coalesce((SELECT s.last_seen_day FROM account_seen s ",
                "WHERE s.company = $1 AND s.account = f.id), ",
                never!(),
                ") AS last_seen_day, coalesce((SELECT s.last_seen_at FROM account_seen s ",
                "WHERE s.company = $1 AND s.account = f.id), ",
                never!(),
                ") AS last_seen_at"
            ),
        });
        sql.push(" FROM found f WHERE EXISTS (SELECT 1 FROM account a WHERE a.company = $1 AND a.id = f.id");
        self.conditions(&mut sql, &self.statuses);
        sql.push(" LIMIT 1 OFFSET 0)) SELECT * FROM kept WHERE 1 = 1");
        order.write(&mut sql, "id");
        sql
    }

    /// By status, each in its own index, where statuses are given; by the primary key otherwise.
    fn walk_by_id<'a>(&'a self, order: Order<'a>) -> Sql<'a> {
        let mut sql = Sql::default();
        if !self.restrict_status() {
            self.walk_ids(&mut sql, &self.statuses, order);
            return sql;
        }
        for (n, status) in self.statuses.iter().enumerate() {
            sql.push(if n > 0 { " UNION ALL " } else { "" }).push("SELECT walked.id AS id FROM (");
            self.walk_ids(&mut sql, std::slice::from_ref(status), order);
            sql.push(") AS walked");
        }
        sql.push(if order.sort == Sort::Newest { " ORDER BY id DESC" } else { " ORDER BY id" });
        sql.limit(order.limit);
        sql
    }

    fn walk_ids<'a>(&'a self, sql: &mut Sql<'a>, statuses: &'a [Status], order: Order<'a>) {
        sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1");
        self.conditions(sql, statuses);
        order.write(sql, "a.id");
    }

    fn walk_by_name<'a>(&'a self, order: Order<'a>) -> Sql<'a> {
        let mut sql = Sql::default();
        sql.push("SELECT a.id, a.name_folded FROM account a WHERE a.company = $1");
        self.conditions(&mut sql, &self.statuses);
        order.write(&mut sql, "a.id");
        sql
    }

    /// Those seen, day by day, then those never seen.
    fn walk_by_last_seen<'a>(&'a self, order: Order<'a>) -> Vec<Sql<'a>> {
        let past_seen = matches!(order.after, Some(Place { key: Key::Seen { day: NEVER, .. }, .. }));
        let mut queries = Vec::new();
        if !past_seen {
            let mut sql = Sql::default();
            sql.push(
                "SELECT s.account, s.last_seen_day, s.last_seen_at FROM account_seen s WHERE s.company = $1",
            );
            if let Some(seen) = &self.seen {
                seen.in_days(&mut sql);
                seen.exactly(&mut sql);
            } else {
                // Says nothing, and has SQLite take the index of days.
                sql.push(concat!(" AND s.last_seen_day >= ", never!()));
            }
            if self.look_at_account() {
                sql.push(" AND EXISTS (SELECT 1 FROM account a WHERE a.company = $1 AND a.id = s.account");
                self.conditions(&mut sql, &self.statuses);
                sql.push(" LIMIT 1 OFFSET 0)");
            }
            order.write(&mut sql, "s.account");
            queries.push(sql);
        }
        if self.seen.is_none() {
            queries.push(self.walk_never_seen(order, past_seen));
        }
        queries
    }

    fn walk_never_seen<'a>(&'a self, order: Order<'a>, past_seen: bool) -> Sql<'a> {
        let mut sql = Sql::default();
        sql.push(concat!("SELECT a.id, ", never!(), ", ", never!(), " FROM account a WHERE a.company = $1"));
        sql.push(" AND NOT EXISTS (SELECT 1 FROM account_seen s");
        sql.push(" WHERE s.company = $1 AND s.account = a.id LIMIT 1 OFFSET 0)");
        self.conditions(&mut sql, &self.statuses);
        let after = order.after.filter(|_| past_seen);
        Order { sort: Sort::Newest, after, limit: order.limit }.write(&mut sql, "a.id");
        sql
    }

    /// Whether anything but the time last seen is asked of an account.
    fn look_at_account(&self) -> bool {
        let Self { text, channel, imported_id, overdue, statuses: _, seen: _ } = self;
        self.restrict_status()
            || text.is_some()
            || channel.is_some()
            || imported_id.is_some()
            || overdue.is_some()
    }

    /// Everything that must hold of an account `a`.
    fn conditions<'a>(&'a self, sql: &mut Sql<'a>, statuses: &'a [Status]) {
        if statuses.len() < Status::ALL.len() {
            sql.push(" AND a.status");
            one_of(sql, statuses);
        }
        if let Some(channel) = &self.channel {
            sql.push(" AND a.channel = ").bind(channel);
        }
        if let Some(imported_id) = &self.imported_id {
            sql.push(" AND a.imported_id = ").bind(imported_id);
        }
        if let Some(overdue) = &self.overdue {
            overdue.write(sql);
        }
        if let Some(seen) = &self.seen {
            sql.push(" AND EXISTS (SELECT 1 FROM account_seen s WHERE s.company = $1 AND s.account = a.id");
            seen.exactly(sql);
            sql.push(" LIMIT 1 OFFSET 0)");
        }
        if let Some(text) = &self.text {
            text.write(sql);
        }
    }
}

fn one_of(sql: &mut Sql<'_>, statuses: &[Status]) {
    if let [status] = statuses {
        sql.push(" = ").bind(*status);
        return;
    }
    for (n, status) in statuses.iter().enumerate() {
        sql.push(if n > 0 { ", " } else { " IN (" }).bind(*status);
    }
    sql.push(")");
}

impl TextTerms {
    /// `None` for a query that says nothing.
    fn of(query: &str) -> Option<Self> {
        let mut words = search::query_words(query);
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let whole = search::whole(query);
        let whole = (!whole.is_empty() && words != [whole.as_str()]).then(|| Prefix::of(whole));
        if words.is_empty() && whole.is_none() {
            return None;
        }
        Some(Self { words: words.into_iter().map(Prefix::of).collect(), whole })
    }

    fn write<'a>(&'a self, sql: &mut Sql<'a>) {
        sql.push(" AND (");
        for (n, word) in self.words.iter().enumerate() {
            sql.push(if n > 0 { " AND " } else { "" });
            word.begins_a_word(sql);
        }
        if let Some(whole) = &self.whole {
            sql.push(if self.words.is_empty() { "" } else { " OR " });
            whole.begins_a_word(sql);
        }
        sql.push(")");
    }
}

impl Prefix {
    fn of(from: String) -> Self {
        let to = search::after_prefix(&from);
        Self { from, to }
    }

    fn begins_a_word<'a>(&'a self, sql: &mut Sql<'a>) {
        // The few words of one account are read by its id: `|| ''` keeps the index of words, whose
        // range may be long, out of it.
        sql.push("EXISTS (SELECT 1 FROM account_word w WHERE w.company = $1 AND w.account = a.id");
        sql.push(" AND w.word || '' >= ").bind(&self.from);
        sql.push(" AND w.word || '' < ").bind(&self.to);
        sql.push(" LIMIT 1 OFFSET 0)");
    }
}

impl SeenTerms {
    fn of(after: Option<Time>, before: Option<Time>, settings: &Settings) -> Self {
        let day = |time: Time| time.day_in(&settings.time_zone);
        let first_day = after.map_or(Day::from_number(NEVER), |after| day(after).minus_days(ZONE_DAYS));
        let last_day = before.map_or(Day::from_number(-NEVER), |before| day(before).minus_days(-ZONE_DAYS));
        Self { after, before, first_day, last_day }
    }

    /// The days in question: what the index knows.
    fn in_days(&self, sql: &mut Sql<'_>) {
        sql.push(" AND s.last_seen_day >= ").bind(self.first_day);
        sql.push(" AND s.last_seen_day <= ").bind(self.last_day);
    }

    fn exactly(&self, sql: &mut Sql<'_>) {
        if let Some(after) = self.after {
            sql.push(" AND s.last_seen_at > ").bind(after);
        }
        if let Some(before) = self.before {
            sql.push(" AND s.last_seen_at < ").bind(before);
        }
    }
}

impl OverdueTerms {
    fn of(wanted: bool, allowed: &[Status], settings: &Settings, now: Time) -> Self {
        let tracked = settings.tracked_stages.statuses();
        let (watched, untracked) = allowed.iter().partition(|status| tracked.contains(status));
        let derived = Derived { statuses: watched, ..Derived::of(settings, now) };
        Self { wanted, tracked, cadence_days: settings.cadence_days, now, derived, untracked }
    }

    /// By the indexes of the cadence, unless there is nobody in them to ask for.
    fn source(&self) -> Option<Source<'_>> {
        let mut ranges = vec![Range::Overdue(self)];
        if !self.wanted && !self.untracked.is_empty() {
            ranges.push(Range::Statuses(&self.untracked));
        }
        (!self.derived.statuses.is_empty()).then_some(Source(ranges))
    }

    fn range<'a>(&'a self, sql: &mut Sql<'a>) {
        if self.wanted {
            self.derived.ids(sql, Which::REMINDABLE, Window::until(self.now), None);
        } else {
            self.derived.ids(sql, Which::REMINDABLE, Window::after(self.now), None);
            sql.push(" UNION ALL ");
            self.derived.ids(sql, &[Which::Asleep], Window::ALL, None);
        }
    }

    /// The rule of `cadence::due`; in a sub-select, because PostgreSQL takes it for rare otherwise and sorts the
    /// whole table instead of walking an index.
    fn write<'a>(&'a self, sql: &mut Sql<'a>) {
        sql.push(if self.wanted { " AND EXISTS" } else { " AND NOT EXISTS" });
        sql.push(" (SELECT 1 WHERE a.status");
        one_of(sql, &self.tracked);
        sql.push(" AND coalesce(a.last_contact_at, a.tracked_since)");
        sql.push(" + coalesce(a.cadence_days, CAST(").bind(self.cadence_days);
        sql.push(" AS BIGINT)) * 86400000000 <= ").bind(self.now);
        sql.push(" AND (a.snoozed_until IS NULL OR a.snoozed_until <= ").bind(&self.derived.today);
        sql.push(") LIMIT 1 OFFSET 0)");
    }
}

impl<'a> Range<'a> {
    fn write(self, sql: &mut Sql<'a>) {
        match self {
            Self::ImportedId(imported_id) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1 AND a.imported_id = ");
                sql.bind(imported_id);
            }
            Self::Word(prefix) => {
                sql.push("SELECT w.account AS id FROM account_word w WHERE w.company = $1 AND w.word >= ");
                sql.bind(&prefix.from).push(" AND w.word < ").bind(&prefix.to);
            }
            Self::Seen(seen) => {
                sql.push("SELECT s.account AS id FROM account_seen s WHERE s.company = $1");
                seen.in_days(sql);
            }
            Self::Channel(channel) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1 AND a.channel = ")
                    .bind(channel);
            }
            Self::Statuses(statuses) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1 AND a.status");
                one_of(sql, statuses);
            }
            Self::Overdue(overdue) => overdue.range(sql),
        }
    }
}

impl<'a> Order<'a> {
    /// Appends what comes after the cursor, the order and the limit. `id` is the id's column.
    fn write(self, sql: &mut Sql<'a>, id: &'static str) {
        if let Some(Place { id: last, key }) = self.after {
            match (self.sort, key) {
                (Sort::Name, Key::Name(name)) => {
                    sql.push(" AND (name_folded, ").push(id).push(") > (").bind(name);
                    sql.push(", ").bind(last).push(")");
                }
                (Sort::NameDescending, Key::Name(name)) => {
                    sql.push(" AND (name_folded, ").push(id).push(") < (").bind(name);
                    sql.push(", ").bind(last).push(")");
                }
                (Sort::LastSeen, Key::Seen { day, at }) => {
                    sql.push(" AND last_seen_day <= ").bind(*day);
                    sql.push(" AND (last_seen_day, last_seen_at, ").push(id).push(") < (").bind(*day);
                    sql.push(", ").bind(*at).push(", ").bind(last).push(")");
                }
                (Sort::Oldest, _) => {
                    sql.push(" AND ").push(id).push(" > ").bind(last);
                }
                _ => {
                    sql.push(" AND ").push(id).push(" < ").bind(last);
                }
            }
        }
        sql.push(match self.sort {
            Sort::Newest | Sort::Oldest => " ORDER BY ",
            Sort::Name => " ORDER BY name_folded, ",
            Sort::NameDescending => " ORDER BY name_folded DESC, ",
            Sort::LastSeen => " ORDER BY last_seen_day DESC, last_seen_at DESC, ",
        });
        sql.push(id);
        sql.push(if matches!(self.sort, Sort::Oldest | Sort::Name) { "" } else { " DESC" });
        sql.limit(self.limit);
    }
}
