//! The SQL that finds the keys of a page.
//!
//! There are two ways to read a page. If one of the filters is narrow, its accounts are collected from that
//! filter's index, then checked and sorted. Otherwise accounts are walked in the order of the list and
//! checked one by one until the page is full. Which way is shorter depends on the values: "a" is a prefix of
//! a word in every second account, "zanzibar" in none. A plan made without the values can't know, so this
//! module looks for a narrow filter by counting its index range up to a bound, and writes SQL that leaves the
//! planner no choice: each check is a subselect that ends in `LIMIT 1 OFFSET 0`, which PostgreSQL never turns
//! into a join.

use std::collections::BTreeSet;

use rapport_domain::audience::{ImportEffect, ImportFilter};
use rapport_domain::company::Settings;
use rapport_domain::id::{ChannelId, ImportId};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;

use super::AccountFilter;
use super::column_walk::collect_key;
use super::created_terms::CreatedTerms;
use super::cursor::{Key, Place};
use super::field_terms::{ContactTerms, FieldTerm};
use super::groups::Groups;
use super::order::Order;
use super::ranges::{Range, Source};
use super::sort::{By, Sort};
use super::sql::{Sql, count, never};
use super::terms::{OverdueTerms, SeenTerms, TextTerms};
use crate::company;
use crate::error::Error;
use crate::tx::Snapshot;

/// A filter is narrow if it has fewer rows than this in its index.
const NARROW_ROWS: i64 = 10_000;

/// A filter combined with the company's settings.
pub(super) struct Terms {
    text: Option<TextTerms>,
    /// The words that a search can find its accounts by, if there are few.
    words: Vec<String>,
    /// The allowed statuses; all of them if the filter gives none.
    pub(super) statuses: Vec<Status>,
    pub(super) channels: Vec<ChannelId>,
    imported_id: Option<String>,
    pub(super) seen: Option<SeenTerms>,
    pub(super) never_seen: bool,
    pub(super) contact: Option<ContactTerms>,
    created: Option<CreatedTerms>,
    fields: Vec<FieldTerm>,
    campaign_hold: Option<bool>,
    overdue: Option<OverdueTerms>,
    import: Option<ImportFilter>,
}

/// Accounts that an index has in the order of their ids.
#[derive(Clone, Copy)]
enum Lane<'a> {
    All,
    Status(&'a Status),
    Channel(&'a ChannelId),
    Field(&'a String, &'a String),
    Word(&'a String),
    Import(&'a ImportId, bool),
}

impl Terms {
    pub fn of(filter: &AccountFilter, now: Time, snapshot: &mut Snapshot) -> Result<Self, Error> {
        let AccountFilter {
            q,
            statuses,
            channels,
            imported_id,
            tracked,
            overdue,
            seen_before,
            seen_after,
            ..
        } = filter;
        let seen = seen_before.is_some() || seen_after.is_some() || filter.seen == Some(true);
        let settings = if tracked.is_some() || overdue.is_some() {
            let company = company::get(snapshot)?
                .ok_or_else(|| Error::fault("the company of the list does not exist"))?;
            company.settings
        } else {
            Settings::default()
        };
        let wanted = |status: &Status| {
            let is_tracked = settings.tracked_stages.contains(*status);
            !filter.contradicts_itself()
                && (statuses.is_empty() || statuses.contains(status))
                && tracked.is_none_or(|tracked| tracked == is_tracked)
                && (*overdue != Some(true) || is_tracked)
        };
        let statuses: Vec<Status> = Status::ALL.into_iter().filter(wanted).collect();
        let text = q.as_deref().and_then(TextTerms::of);
        let words = text.as_ref().map(|text| text.few_words(snapshot)).transpose()?.flatten();
        Ok(Self {
            text,
            words: words.unwrap_or_default(),
            overdue: overdue.map(|wanted| OverdueTerms::of(wanted, &statuses, &settings, now)),
            statuses,
            channels: channels.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            imported_id: imported_id.clone(),
            seen: seen.then(|| SeenTerms::of(*seen_after, *seen_before)),
            never_seen: filter.seen == Some(false),
            contact: ContactTerms::of(filter),
            created: CreatedTerms::of(filter),
            fields: filter.fields.iter().map(FieldTerm::of).collect(),
            campaign_hold: filter.campaign_hold,
            import: filter.import,
        })
    }

    /// Whether no account can match.
    pub fn are_empty(&self) -> bool {
        self.statuses.is_empty()
    }

    /// A filter that matches so few accounts that all of them can be checked.
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
        if self.import.is_some() {
            sources.push(Source(self.imported().map(|(id, created)| Range::Import(id, created)).collect()));
        }
        sources.extend(self.fields.iter().map(|field| Source(field.ranges())));
        if self.campaign_hold == Some(true) {
            sources.push(Source(vec![Range::Held]));
        }
        let contact = self.contact.as_ref().filter(|contact| contact.is_range());
        sources.extend(contact.map(|contact| Source(vec![Range::Contact(contact)])));
        sources.extend(self.overdue.as_ref().and_then(OverdueTerms::source));
        // The walk by last seen begins where this filter does, and walks by id where the time of creation does. Walks by
        // id have indexes of channel and status in their own order, unless they use a field.
        if sort.by != By::LastSeen {
            sources.extend(self.seen.as_ref().map(|seen| Source(vec![Range::Seen(seen)])));
        }
        if sort.by != By::Created {
            sources.extend(self.created.as_ref().map(|created| Source(vec![Range::Created(created)])));
        }
        let by_id = sort.by == By::Created && self.fields.is_empty();
        if !by_id && sort.by != By::Channel && !self.channels.is_empty() {
            sources.push(Source(vec![Range::Channels(&self.channels)]));
        }
        if !by_id && sort.by != By::Status && self.restrict_status() {
            sources.push(Source(vec![Range::Statuses(&self.statuses)]));
        }
        sources
    }

    /// The parts of an import's accounts that the filter asks for: those it created, and those it changed.
    fn imported(&self) -> impl Iterator<Item = (&ImportId, bool)> {
        self.import.iter().flat_map(|import| {
            let asked = [(ImportEffect::Created, true), (ImportEffect::Changed, false)];
            let asked =
                asked.into_iter().filter(move |(effect, _)| import.effect.is_none_or(|only| only == *effect));
            asked.map(move |(_, created)| (&import.id, created))
        })
    }

    fn restrict_status(&self) -> bool {
        self.statuses.len() < Status::ALL.len()
    }

    /// The queries whose rows, in sequence, are the keys.
    pub fn queries<'a>(
        &'a self,
        narrow: Option<&Source<'a>>,
        order: Order<'a>,
        groups: &'a Groups,
    ) -> Vec<Sql<'a>> {
        match (narrow, order.sort.by) {
            (Some(source), _) => vec![self.collect(source, order, groups)],
            (None, By::Created) => vec![self.walk_by_id(order)],
            (None, By::Name) => vec![self.walk_by_name(order)],
            (None, By::LastSeen) => self.walk_by_last_seen(order),
            (None, _) => self.walk_by_column(order, groups),
        }
    }

    /// Collects the accounts of a narrow source with their sort keys, then checks and sorts them.
    fn collect<'a>(&'a self, source: &Source<'a>, order: Order<'a>, groups: &'a Groups) -> Sql<'a> {
        let mut sql = Sql::default();
        sql.push("WITH found AS MATERIALIZED (SELECT DISTINCT ranged.id AS id FROM (");
        for (n, range) in source.0.iter().enumerate() {
            sql.push(if n > 0 { " UNION ALL " } else { "" });
            range.write(&mut sql);
        }
        sql.push(") AS ranged), kept AS MATERIALIZED (SELECT f.id AS id");
        match order.sort.by {
            By::Created => {}
            By::Name => {
                sql.push(", (SELECT a.name_folded FROM account a WHERE a.company = $1 AND a.id = f.id)");
                sql.push(" AS name_folded");
            }
            By::LastSeen => {
                for column in ["last_seen_minute", "last_seen_at"] {
                    sql.push(", coalesce((SELECT s.").push(column).push(" FROM account_seen s");
                    sql.push(" WHERE s.company = $1 AND s.account = f.id), CAST(").bind(order.never());
                    sql.push(" AS BIGINT)) AS ").push(column);
                }
            }
            by => collect_key(&mut sql, by),
        }
        sql.push(" FROM found f WHERE EXISTS (SELECT 1 FROM account a WHERE a.company = $1 AND a.id = f.id");
        self.conditions(&mut sql, &self.statuses, &self.channels);
        sql.push(" LIMIT 1 OFFSET 0)) SELECT * FROM kept WHERE 1 = 1");
        match order.sort.by {
            By::Created | By::Name | By::LastSeen => order.write(&mut sql, "id"),
            _ => order.write_collected(&mut sql, groups),
        }
        sql
    }

    /// The queries whose rows, counted together, are as many as there are keys, or at least `limit`.
    pub fn countable<'a>(
        &'a self,
        narrow: Option<&Source<'a>>,
        limit: i64,
        groups: &'a Groups,
    ) -> Vec<Sql<'a>> {
        let order = Order { sort: Sort::NEWEST, after: None, limit };
        let lanes = self.lanes();
        if let Some(source) = narrow {
            return vec![self.collect(source, order, groups)];
        }
        if lanes.iter().any(|lane| lane.may_share_accounts()) {
            return vec![self.walk_by_id(order)];
        }
        let walk = |lane| {
            let mut sql = Sql::default();
            self.walk_lane(&mut sql, lane, order);
            sql
        };
        lanes.into_iter().map(walk).collect()
    }

    /// The indexes to walk that have accounts in order of their ids: an import, a custom field's value, the words of a
    /// search, several channels, or the given statuses; otherwise the primary key.
    fn lanes(&self) -> Vec<Lane<'_>> {
        if self.import.is_some() {
            return self.imported().map(|(id, created)| Lane::Import(id, created)).collect();
        }
        if let Some((key, texts)) = self.fields.iter().find_map(FieldTerm::ordered) {
            return texts.iter().map(|text| Lane::Field(key, text)).collect();
        }
        if !self.words.is_empty() {
            return self.words.iter().map(Lane::Word).collect();
        }
        if self.channels.len() > 1 {
            return self.channels.iter().map(Lane::Channel).collect();
        }
        if self.restrict_status() {
            return self.statuses.iter().map(Lane::Status).collect();
        }
        vec![Lane::All]
    }

    fn walk_by_id<'a>(&'a self, order: Order<'a>) -> Sql<'a> {
        let mut sql = Sql::default();
        let lanes = self.lanes();
        if let [lane] = lanes[..] {
            self.walk_lane(&mut sql, lane, order);
            return sql;
        }
        for (n, lane) in lanes.into_iter().enumerate() {
            let both = if lane.may_share_accounts() { " UNION " } else { " UNION ALL " };
            sql.push(if n > 0 { both } else { "" }).push("SELECT walked.id AS id FROM (");
            self.walk_lane(&mut sql, lane, order);
            sql.push(") AS walked");
        }
        sql.push(if order.sort.descending { " ORDER BY id DESC" } else { " ORDER BY id" });
        sql.limit(order.limit);
        sql
    }

    fn walk_lane<'a>(&'a self, sql: &mut Sql<'a>, lane: Lane<'a>, order: Order<'a>) {
        let (found_by_status, found_by_channel) = match lane {
            Lane::Field(key, text) => {
                return self.walk_range(sql, Range::FieldValue(key, text), "e.account", order);
            }
            Lane::Word(word) => return self.walk_range(sql, Range::ExactWord(word), "x.account", order),
            Lane::Import(id, created) => {
                return self.walk_range(sql, Range::Import(id, created), "m.account", order);
            }
            Lane::Status(status) => (Some(status), None),
            Lane::Channel(channel) => (None, Some(channel)),
            Lane::All => (None, self.channels.first()),
        };
        sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1");
        if let Some(status) = found_by_status {
            sql.push(" AND a.status = ").bind(*status);
        }
        if let Some(channel) = found_by_channel {
            sql.push(" AND a.channel = ").bind(channel);
        }
        self.begin_created(sql, "a.id");
        let statuses = if found_by_status.is_some() { &Status::ALL[..] } else { &self.statuses };
        let channels = if found_by_channel.is_some() { &[][..] } else { &self.channels };
        self.conditions(sql, statuses, channels);
        order.write(sql, "a.id");
    }

    /// Walks rows that are ordered by account, in the column `account`.
    fn walk_range<'a>(
        &'a self,
        sql: &mut Sql<'a>,
        range: Range<'a>,
        account: &'static str,
        order: Order<'a>,
    ) {
        range.write(sql);
        self.begin_created(sql, account);
        sql.push(" AND EXISTS (SELECT 1 FROM account a WHERE a.company = $1 AND a.id = ").push(account);
        self.conditions(sql, &self.statuses, &self.channels);
        sql.push(" LIMIT 1 OFFSET 0)");
        order.write(sql, account);
    }

    /// Begins a walk by id where the time of creation does.
    fn begin_created<'a>(&'a self, sql: &mut Sql<'a>, id: &'static str) {
        if let Some(created) = &self.created {
            created.in_range(sql, id);
        }
    }

    fn walk_by_name<'a>(&'a self, order: Order<'a>) -> Sql<'a> {
        let mut sql = Sql::default();
        // The bound on the name is always true; it makes the index of names the one with the most bound
        // columns.
        sql.push("SELECT a.id, a.name_folded FROM account a WHERE a.company = $1 AND a.name_folded >= ''");
        self.conditions(&mut sql, &self.statuses, &self.channels);
        order.write(&mut sql, "a.id");
        sql
    }

    /// First the accounts that were seen, minute by minute, then those never seen.
    fn walk_by_last_seen<'a>(&'a self, order: Order<'a>) -> Vec<Sql<'a>> {
        let never = order.never();
        let past_seen =
            matches!(order.after, Some(Place { key: Key::Seen { minute, .. }, .. }) if *minute == never);
        let mut queries = Vec::new();
        if !past_seen && !self.never_seen {
            let mut sql = Sql::default();
            sql.push(
                "SELECT s.account, s.last_seen_minute, s.last_seen_at FROM account_seen s WHERE s.company = $1",
            );
            if let Some(seen) = &self.seen {
                seen.in_minutes(&mut sql);
                seen.exactly(&mut sql);
            } else {
                // Always true; it makes SQLite use the index of minutes.
                sql.push(concat!(" AND s.last_seen_minute >= ", never!()));
            }
            self.check_seen(&mut sql);
            order.write(&mut sql, "s.account");
            queries.push(sql);
        }
        if self.seen.is_none() {
            queries.push(self.walk_never_seen(order, past_seen));
        }
        queries
    }

    /// Appends the check of the account of a row `s`, if there is anything to check.
    pub(super) fn check_seen<'a>(&'a self, sql: &mut Sql<'a>) {
        if self.look_at_account() {
            sql.push(" AND EXISTS (SELECT 1 FROM account a WHERE a.company = $1 AND a.id = s.account");
            self.conditions(sql, &self.statuses, &self.channels);
            sql.push(" LIMIT 1 OFFSET 0)");
        }
    }

    fn walk_never_seen<'a>(&'a self, order: Order<'a>, past_seen: bool) -> Sql<'a> {
        let mut sql = Sql::default();
        sql.push("SELECT a.id, CAST(").bind(order.never()).push(" AS BIGINT), CAST(").bind(order.never());
        sql.push(" AS BIGINT) FROM account a WHERE a.company = $1");
        sql.push(" AND NOT EXISTS (SELECT 1 FROM account_seen s");
        sql.push(" WHERE s.company = $1 AND s.account = a.id LIMIT 1 OFFSET 0)");
        self.conditions(&mut sql, &self.statuses, &self.channels);
        order.by_id(order.after.filter(|_| past_seen)).write(&mut sql, "a.id");
        sql
    }

    /// Whether the filter has conditions on anything but the time last seen.
    fn look_at_account(&self) -> bool {
        let Self {
            text,
            channels,
            imported_id,
            contact,
            created,
            fields,
            campaign_hold,
            overdue,
            import,
            ..
        } = self;
        self.restrict_status()
            || text.is_some()
            || created.is_some()
            || import.is_some()
            || !channels.is_empty()
            || imported_id.is_some()
            || contact.is_some()
            || !fields.is_empty()
            || campaign_hold.is_some()
            || overdue.is_some()
    }

    /// Everything to check on an account `a` that was found by other means. `CASE` hides columns that have an
    /// index, and `> 0` hides how rare a value may be: a planner that knew would collect all accounts of a
    /// status and sort them instead of walking.
    pub(super) fn conditions<'a>(
        &'a self,
        sql: &mut Sql<'a>,
        statuses: &'a [Status],
        channels: &'a [ChannelId],
    ) {
        if statuses.len() < Status::ALL.len() {
            sql.push(" AND CASE WHEN").one_of(" a.status", statuses.iter().copied());
            sql.push(" THEN 1 ELSE 0 END > 0");
        }
        if !channels.is_empty() {
            sql.push(" AND CASE WHEN").one_of(" a.channel", channels.iter());
            sql.push(" THEN 1 ELSE 0 END > 0");
        }
        if let Some(held) = self.campaign_hold {
            sql.push(if held { " AND a.campaign_hold = 1" } else { " AND a.campaign_hold = 0" });
        }
        if let Some(contact) = &self.contact {
            contact.write(sql);
        }
        if let Some(created) = &self.created {
            created.write(sql);
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
        if self.never_seen {
            sql.push(" AND NOT EXISTS (SELECT 1 FROM account_seen s");
            sql.push(" WHERE s.company = $1 AND s.account = a.id LIMIT 1 OFFSET 0)");
        }
        for field in &self.fields {
            field.write(sql);
        }
        if let Some(import) = &self.import {
            sql.push(" AND EXISTS (SELECT 1 FROM import_account t WHERE t.company = $1 AND t.import = ");
            sql.bind(&import.id).push(" AND t.account = a.id AND t.created ");
            sql.push(match import.effect {
                Some(ImportEffect::Created) => "= 1",
                Some(ImportEffect::Changed) => "= 0",
                None => "IN (0, 1)",
            });
            sql.push(" LIMIT 1 OFFSET 0)");
        }
        if let Some(text) = &self.text {
            text.write(sql);
        }
    }
}

impl Lane<'_> {
    /// An account may have several values of a field (an array) and several words of a search, but only one
    /// status and one channel.
    fn may_share_accounts(self) -> bool {
        matches!(self, Self::Field(..) | Self::Word(_))
    }
}
