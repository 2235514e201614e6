//! A filter's conditions on names, the time last seen and the cadence, as SQL.

use rapport_domain::company::Settings;
use rapport_domain::pipeline::Status;
use rapport_domain::search;
use rapport_domain::time::Time;

use super::ranges::{Range, Source};
use super::sql::{NEVER, Sql};
use crate::cadence_ranges::{Derived, Which, Window};
use crate::error::Error;
use crate::statement::statements;
use crate::tx::Snapshot;
use crate::values;

/// A prefix search that matches more words than this isn't walked word by word.
const FEW_WORDS: usize = 4;

statements! {
    // One more than `FEW_WORDS`, each found from the one before: the rows of a frequent word are skipped.
    company DISTINCT_WORDS = "WITH RECURSIVE few (word, number) AS (\
                              SELECT (SELECT min(w.word) FROM account_word w \
                              WHERE w.company = $1 AND w.word >= $2 AND w.word < $3), 1 \
                              UNION ALL SELECT (SELECT min(w.word) FROM account_word w \
                              WHERE w.company = $1 AND w.word > few.word AND w.word < $3), few.number + 1 \
                              FROM few WHERE few.word IS NOT NULL AND few.number < 5) \
                              SELECT word FROM few WHERE word IS NOT NULL";
}

/// Words that must each be a prefix of a word of the account, longest first, or the whole query as one
/// prefix.
pub(super) struct TextTerms {
    pub words: Vec<Prefix>,
    pub whole: Option<Prefix>,
}

/// The texts that begin with `from`: those from `from` up to `to`.
pub(super) struct Prefix {
    pub from: String,
    pub to: String,
}

pub(super) struct SeenTerms {
    after: Option<Time>,
    before: Option<Time>,
    first_minute: i64,
    last_minute: i64,
}

pub(super) struct OverdueTerms {
    wanted: bool,
    tracked: Vec<Status>,
    cadence_days: i64,
    now: Time,
    /// For the tracked stages among the allowed ones.
    derived: Derived,
    /// The allowed stages that aren't tracked: nobody in them is overdue.
    untracked: Vec<Status>,
}

impl TextTerms {
    /// `None` if the query has no words.
    pub fn of(query: &str) -> Option<Self> {
        let mut words = search::query_words(query);
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let whole = search::whole(query);
        let whole = (!whole.is_empty() && words != [whole.as_str()]).then(|| Prefix::of(whole));
        if words.is_empty() && whole.is_none() {
            return None;
        }
        Some(Self { words: words.into_iter().map(Prefix::of).collect(), whole })
    }

    /// Words of which every matching account has one, if there are few.
    pub fn few_words(&self, snapshot: &mut Snapshot) -> Result<Option<Vec<String>>, Error> {
        let Some(whole) =
            self.whole.as_ref().map_or(Ok(Some(Vec::new())), |whole| whole.few_words(snapshot))?
        else {
            return Ok(None);
        };
        for word in &self.words {
            if let Some(mut words) = word.few_words(snapshot)? {
                words.extend(whole);
                words.sort_unstable();
                words.dedup();
                return Ok(Some(words));
            }
        }
        Ok(Some(whole).filter(|_| self.words.is_empty()))
    }

    pub fn write<'a>(&'a self, sql: &mut Sql<'a>) {
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
    pub fn of(from: String) -> Self {
        let to = search::after_prefix(&from);
        Self { from, to }
    }

    /// The words with this prefix; `None` if there are too many.
    fn few_words(&self, snapshot: &mut Snapshot) -> Result<Option<Vec<String>>, Error> {
        let rows = snapshot.query(&DISTINCT_WORDS, values![self.from.as_str(), self.to.as_str()])?;
        let words = rows.into_iter().map(|mut row| row.take()).collect::<Result<Vec<String>, _>>()?;
        Ok(Some(words).filter(|words| words.len() <= FEW_WORDS))
    }

    fn begins_a_word<'a>(&'a self, sql: &mut Sql<'a>) {
        // The few words of one account are read by its id: `|| ''` keeps planners away from the index of
        // words, whose range may be long.
        sql.push("EXISTS (SELECT 1 FROM account_word w WHERE w.company = $1 AND w.account = a.id");
        sql.push(" AND w.word || '' >= ").bind(&self.from);
        sql.push(" AND w.word || '' < ").bind(&self.to);
        sql.push(" LIMIT 1 OFFSET 0)");
    }
}

impl SeenTerms {
    pub fn of(after: Option<Time>, before: Option<Time>) -> Self {
        let (first_minute, last_minute) =
            (after.map_or(NEVER, Time::minute), before.map_or(-NEVER, Time::minute));
        Self { after, before, first_minute, last_minute }
    }

    /// Limits the minutes, which are in the index.
    pub fn in_minutes(&self, sql: &mut Sql<'_>) {
        sql.push(" AND s.last_seen_minute >= ").bind(self.first_minute);
        sql.push(" AND s.last_seen_minute <= ").bind(self.last_minute);
    }

    pub fn exactly(&self, sql: &mut Sql<'_>) {
        if let Some(after) = self.after {
            sql.push(" AND s.last_seen_at > ").bind(after);
        }
        if let Some(before) = self.before {
            sql.push(" AND s.last_seen_at < ").bind(before);
        }
    }
}

impl OverdueTerms {
    pub fn of(wanted: bool, allowed: &[Status], settings: &Settings, now: Time) -> Self {
        let tracked = settings.tracked_stages.statuses();
        let (watched, untracked) = allowed.iter().partition(|status| tracked.contains(status));
        let derived = Derived { statuses: watched, ..Derived::of(settings, now) };
        Self { wanted, tracked, cadence_days: settings.cadence_days, now, derived, untracked }
    }

    /// Uses the indexes of the cadence, unless there is nobody in them to look for.
    pub fn source(&self) -> Option<Source<'_>> {
        let mut ranges = vec![Range::Overdue(self)];
        if !self.wanted && !self.untracked.is_empty() {
            ranges.push(Range::Statuses(&self.untracked));
        }
        (!self.derived.statuses.is_empty()).then_some(Source(ranges))
    }

    pub fn range<'a>(&'a self, sql: &mut Sql<'a>) {
        if self.wanted {
            self.derived.ids(sql, Which::REMINDABLE, Window::until(self.now), None);
        } else {
            self.derived.ids(sql, Which::REMINDABLE, Window::after(self.now), None);
            sql.push(" UNION ALL ");
            self.derived.ids(sql, &[Which::Asleep], Window::ALL, None);
        }
    }

    /// The rule of `cadence::due`, in a subselect: otherwise PostgreSQL assumes that it rarely holds and
    /// sorts the whole table instead of walking an index.
    pub fn write<'a>(&'a self, sql: &mut Sql<'a>) {
        sql.push(if self.wanted { " AND EXISTS" } else { " AND NOT EXISTS" });
        sql.one_of(" (SELECT 1 WHERE a.status", self.tracked.iter().copied());
        sql.push(" AND coalesce(a.last_contact_at, a.tracked_since)");
        sql.push(" + coalesce(a.cadence_days, CAST(").bind(self.cadence_days);
        sql.push(" AS BIGINT)) * 86400000000 <= ").bind(self.now);
        sql.push(" AND (a.snoozed_until IS NULL OR a.snoozed_until <= ").bind(&self.derived.today);
        sql.push(") LIMIT 1 OFFSET 0)");
    }
}
