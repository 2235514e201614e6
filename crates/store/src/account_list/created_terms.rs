//! A filter's condition on when an account was created, as SQL.
//!
//! Ids are ordered by the time they were made, so this is a range of the primary key, and of every index that has
//! accounts in the order of their ids.

use rapport_domain::audience::Filter;
use rapport_domain::id::{AccountId, lowest_at};

use super::sql::Sql;

pub(super) struct CreatedTerms {
    since: Option<AccountId>,
    before: Option<AccountId>,
}

impl CreatedTerms {
    pub fn of(filter: &Filter) -> Option<Self> {
        let (since, before) = (filter.created_since.map(lowest_at), filter.created_before.map(lowest_at));
        (since.is_some() || before.is_some()).then_some(Self { since, before })
    }

    /// Appends the bounds of the range for the column of the id.
    pub fn in_range<'a>(&'a self, sql: &mut Sql<'a>, id: &str) {
        if let Some(since) = &self.since {
            sql.push(" AND ").push(id).push(" >= ").bind(since);
        }
        if let Some(before) = &self.before {
            sql.push(" AND ").push(id).push(" < ").bind(before);
        }
    }

    /// Appends the check for an account `a` that was found by other means. `CASE` keeps planners away from the primary
    /// key, whose range may be long.
    pub fn write<'a>(&'a self, sql: &mut Sql<'a>) {
        sql.push(" AND CASE WHEN 1 = 1");
        self.in_range(sql, "a.id");
        sql.push(" THEN 1 ELSE 0 END > 0");
    }
}
