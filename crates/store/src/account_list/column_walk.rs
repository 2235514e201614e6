//! Walks accounts in the order of a column: of an index that has them in that order, or of several in turn.
//!
//! Accounts that lack the value come last, by id. They are found by walking ids, except for the channel, whose index has
//! them too.

use rapport_domain::pipeline::Status;

use super::cursor::{Key, Place};
use super::field_terms::ContactTerms;
use super::groups::Groups;
use super::keys::Terms;
use super::order::Order;
use super::sort::By;
use super::sql::{Sql, never};

/// A column of `account` with an index of the accounts that have a value in it.
#[derive(Clone, Copy)]
struct Indexed {
    column: &'static str,
    /// Always true for a value; it lets both engines use the index.
    any: &'static str,
    none: &'static str,
}

const LAST_CONTACT: Indexed = Indexed {
    column: "a.last_contact_at",
    any: concat!(" AND a.last_contact_at >= ", never!()),
    none: " AND CASE WHEN a.last_contact_at IS NULL THEN 1 ELSE 0 END > 0",
};
const ACQUIRED: Indexed = Indexed {
    column: "a.acquired_at",
    any: concat!(" AND a.acquired_at >= ", never!()),
    none: " AND CASE WHEN a.acquired_at IS NULL THEN 1 ELSE 0 END > 0",
};
const PROMO_CODE: Indexed = Indexed {
    column: "a.promo_code",
    any: " AND a.promo_code >= ''",
    none: " AND CASE WHEN a.promo_code IS NULL THEN 1 ELSE 0 END > 0",
};

impl Terms {
    /// The queries whose rows, in sequence, are the keys.
    pub(super) fn walk_by_column<'a>(&'a self, order: Order<'a>, groups: &'a Groups) -> Vec<Sql<'a>> {
        match order.sort.by {
            By::Status => self.walk_statuses(order),
            By::Value => self.walk_values(order, groups),
            By::Channel => self.walk_channels(order, groups),
            By::LastContact => self.walk_indexed(order, LAST_CONTACT),
            By::Acquired => self.walk_indexed(order, ACQUIRED),
            By::PromoCode => self.walk_indexed(order, PROMO_CODE),
            By::FirstSeen => self.walk_first_seen(order),
            By::Updated => vec![self.walk_changes(order)],
            By::Created | By::Name | By::LastSeen => Vec::new(),
        }
    }

    /// Stage by stage, in the order of the pipeline.
    fn walk_statuses<'a>(&'a self, order: Order<'a>) -> Vec<Sql<'a>> {
        let reached = match order.after {
            Some(Place { key: Key::Number(stage), .. }) => Some(*stage),
            _ => None,
        };
        let is_ahead = |stage: i64| {
            reached
                .is_none_or(|reached| if order.sort.descending { stage <= reached } else { stage >= reached })
        };
        let mut stages: Vec<(i64, Status)> = (0..).zip(Status::ALL).collect();
        stages.retain(|(stage, status)| self.statuses.contains(status) && is_ahead(*stage));
        if order.sort.descending {
            stages.reverse();
        }
        let walk = |(stage, status): (i64, Status)| {
            let mut sql = Sql::default();
            sql.push("SELECT a.id, CAST(")
                .bind(stage)
                .push(" AS BIGINT) FROM account a WHERE a.company = $1");
            sql.push(" AND a.status = ").bind(status);
            self.conditions(&mut sql, &Status::ALL, &self.channels);
            order.by_id(order.after.filter(|_| reached == Some(stage))).write(&mut sql, "a.id");
            sql
        };
        stages.into_iter().map(walk).collect()
    }

    /// Currency by currency.
    fn walk_values<'a>(&'a self, order: Order<'a>, groups: &'a Groups) -> Vec<Sql<'a>> {
        let reached = match order.after {
            Some(Place { key: Key::Value { currency, .. }, .. }) => Some(groups.of_currency(currency)),
            _ => None,
        };
        let mut queries = Vec::new();
        if !is_past_values(order) {
            let ahead =
                |currency: &&String| reached.is_none_or(|reached| groups.of_currency(currency) >= reached);
            for currency in groups.currencies.iter().filter(ahead) {
                let is_reached = reached == Some(groups.of_currency(currency));
                let mut sql = Sql::default();
                sql.push("SELECT a.id, a.value_currency, a.value_amount FROM account a WHERE a.company = $1");
                sql.push(" AND a.value_currency = ").bind(currency);
                sql.push(concat!(" AND a.value_amount >= ", never!()));
                self.conditions(&mut sql, &self.statuses, &self.channels);
                let order = Order { after: order.after.filter(|_| is_reached), ..order };
                order.write_column(&mut sql, "a.value_amount", "a.id");
                queries.push(sql);
            }
        }
        let mut sql = Sql::default();
        sql.push("SELECT a.id, a.value_currency, a.value_amount FROM account a WHERE a.company = $1");
        sql.push(" AND CASE WHEN a.value_currency IS NULL THEN 1 ELSE 0 END > 0");
        self.walk_without(&mut sql, order);
        queries.push(sql);
        queries
    }

    /// Channel by channel.
    fn walk_channels<'a>(&'a self, order: Order<'a>, groups: &'a Groups) -> Vec<Sql<'a>> {
        let reached = match order.after {
            Some(Place { key: Key::Text(name), .. }) => Some(name.as_str()),
            _ => None,
        };
        let is_ahead = |name: &str| {
            reached
                .is_none_or(|reached| if order.sort.descending { name <= reached } else { name >= reached })
        };
        let is_asked = |id| self.channels.is_empty() || self.channels.contains(id);
        let mut channels: Vec<_> =
            groups.channels.iter().filter(|(name, id)| is_ahead(name) && is_asked(id)).collect();
        if order.sort.descending {
            channels.reverse();
        }
        let mut queries = Vec::new();
        for (name, id) in channels.into_iter().filter(|_| !is_past_values(order)) {
            let mut sql = Sql::default();
            sql.push("SELECT a.id, CAST(").bind(name).push(" AS TEXT) FROM account a WHERE a.company = $1");
            sql.push(" AND a.channel = ").bind(id);
            self.conditions(&mut sql, &self.statuses, &[]);
            order.by_id(order.after.filter(|_| reached == Some(name.as_str()))).write(&mut sql, "a.id");
            queries.push(sql);
        }
        if self.channels.is_empty() {
            let mut sql = Sql::default();
            sql.push(
                "SELECT a.id, CAST(NULL AS TEXT) FROM account a WHERE a.company = $1 AND a.channel IS NULL",
            );
            self.conditions(&mut sql, &self.statuses, &[]);
            let after = order.after.filter(|_| is_past_values(order));
            order.by_id(after).write_nulls(&mut sql, "a.channel", "a.id");
            queries.push(sql);
        }
        queries
    }

    fn walk_indexed<'a>(&'a self, order: Order<'a>, indexed: Indexed) -> Vec<Sql<'a>> {
        let contact = self.contact.as_ref().filter(|_| order.sort.by == By::LastContact);
        let mut queries = Vec::new();
        if !is_past_values(order) && !matches!(contact, Some(ContactTerms::Never)) {
            let mut sql = Sql::default();
            sql.push("SELECT a.id, ").push(indexed.column).push(" FROM account a WHERE a.company = $1");
            sql.push(indexed.any);
            if let Some(contact) = contact {
                contact.in_range(&mut sql);
            }
            self.conditions(&mut sql, &self.statuses, &self.channels);
            order.write_column(&mut sql, indexed.column, "a.id");
            queries.push(sql);
        }
        if !matches!(contact, Some(ContactTerms::Within { .. })) {
            let mut sql = Sql::default();
            sql.push("SELECT a.id, ").push(indexed.column).push(" FROM account a WHERE a.company = $1");
            sql.push(indexed.none);
            self.walk_without(&mut sql, order);
            queries.push(sql);
        }
        queries
    }

    fn walk_first_seen<'a>(&'a self, order: Order<'a>) -> Vec<Sql<'a>> {
        let mut queries = Vec::new();
        if !is_past_values(order) && !self.never_seen {
            let mut sql = Sql::default();
            sql.push("SELECT s.account, s.first_seen_at FROM account_seen s WHERE s.company = $1");
            // Always true; it makes SQLite use the index of first times.
            sql.push(concat!(" AND s.first_seen_at >= ", never!()));
            if let Some(seen) = &self.seen {
                seen.exactly(&mut sql);
            }
            self.check_seen(&mut sql);
            order.write_column(&mut sql, "s.first_seen_at", "s.account");
            queries.push(sql);
        }
        if self.seen.is_none() {
            let mut sql = Sql::default();
            sql.push("SELECT a.id, CAST(NULL AS BIGINT) FROM account a WHERE a.company = $1");
            sql.push(" AND NOT EXISTS (SELECT 1 FROM account_seen s");
            sql.push(" WHERE s.company = $1 AND s.account = a.id LIMIT 1 OFFSET 0)");
            self.walk_without(&mut sql, order);
            queries.push(sql);
        }
        queries
    }

    fn walk_changes<'a>(&'a self, order: Order<'a>) -> Sql<'a> {
        let mut sql = Sql::default();
        sql.push("SELECT l.account, l.change FROM account_change l WHERE l.company = $1");
        // Always true; it makes SQLite walk the order of the changes.
        sql.push(concat!(" AND l.change >= ", never!()));
        // An account that has changed again has a later entry.
        sql.push(" AND EXISTS (SELECT 1 FROM account a WHERE a.company = $1 AND a.id = l.account");
        sql.push(" AND a.change = l.change");
        self.conditions(&mut sql, &self.statuses, &self.channels);
        sql.push(" LIMIT 1 OFFSET 0)");
        order.write_column(&mut sql, "l.change", "l.account");
        sql
    }

    /// Walks the ids of accounts that lack the value.
    fn walk_without<'a>(&'a self, sql: &mut Sql<'a>, order: Order<'a>) {
        self.conditions(sql, &self.statuses, &self.channels);
        order.by_id(order.after.filter(|_| is_past_values(order))).write(sql, "a.id");
    }
}

/// Whether the page starts among the accounts that lack the value.
fn is_past_values(order: Order) -> bool {
    matches!(order.after, Some(Place { key: Key::Missing, .. }))
}

/// Appends the sort key of a collected account `f`, as further columns.
pub(super) fn collect_key(sql: &mut Sql<'_>, by: By) {
    let mut of_account = |name: &str, key: &str| {
        sql.push(", (SELECT ")
            .push(key)
            .push(" FROM account a WHERE a.company = $1 AND a.id = f.id) AS ")
            .push(name);
    };
    match by {
        By::Created | By::Name | By::LastSeen => {}
        By::Status => {
            let stages = Status::ALL.into_iter().enumerate();
            let stages: Vec<String> =
                stages.map(|(stage, status)| format!(" WHEN '{status}' THEN {stage}")).collect();
            let stages = stages.concat();
            of_account("sort_key", &format!("CAST(CASE a.status{stages} END AS BIGINT)"));
        }
        By::Value => {
            of_account("sort_group", "a.value_currency");
            of_account("sort_key", "a.value_amount");
        }
        By::Channel => {
            let name = "(SELECT c.name_folded FROM channel c WHERE c.company = $1 AND c.id = a.channel)";
            of_account("sort_key", name);
        }
        By::PromoCode => of_account("sort_key", PROMO_CODE.column),
        By::LastContact => of_account("sort_key", LAST_CONTACT.column),
        By::Acquired => of_account("sort_key", ACQUIRED.column),
        By::Updated => of_account("sort_key", "a.change"),
        By::FirstSeen => {
            sql.push(", (SELECT s.first_seen_at FROM account_seen s");
            sql.push(" WHERE s.company = $1 AND s.account = f.id) AS sort_key");
        }
    }
}
