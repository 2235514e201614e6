//! The order of the keys: where a page starts, how rows are sorted, and how many are read.

use super::cursor::{Key, Place};
use super::groups::Groups;
use super::sort::{By, Sort};
use super::sql::{NEVER, Sql};

/// The order of the keys, the position to start after, and their number.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub sort: Sort,
    pub after: Option<&'a Place>,
    pub limit: i64,
}

impl<'a> Order<'a> {
    /// The day and time of an account that was never seen: last in both directions.
    pub fn never(self) -> i64 {
        if self.sort.descending { NEVER } else { -NEVER }
    }

    /// The same by id, after an id if given.
    pub fn by_id(self, after: Option<&'a Place>) -> Self {
        Self { sort: Sort { by: By::Created, ..self.sort }, after, ..self }
    }

    /// Appends the cursor's condition, the order and the limit, for rows that have all of the columns. `id` is the id's
    /// column.
    pub fn write(self, sql: &mut Sql<'a>, id: &'static str) {
        if let Some(Place { id: last, key }) = self.after {
            let beyond = self.beyond();
            match (self.sort.by, key) {
                (By::Name, Key::Name(name)) => {
                    sql.push(" AND (name_folded, ").push(id).push(beyond).bind(name);
                    sql.push(", ").bind(last).push(")");
                }
                (By::LastSeen, Key::Seen { minute, at }) => {
                    let bound = if self.sort.descending { " <= " } else { " >= " };
                    sql.push(" AND last_seen_minute").push(bound).bind(*minute);
                    sql.push(" AND (last_seen_minute, last_seen_at, ").push(id).push(beyond).bind(*minute);
                    sql.push(", ").bind(*at).push(", ").bind(last).push(")");
                }
                _ => {
                    sql.push(" AND (").push(id).push(beyond).bind(last).push(")");
                }
            }
        }
        sql.push(" ORDER BY ");
        match self.sort.by {
            By::Name => self.direct(sql, &["name_folded", id]),
            By::LastSeen => self.direct(sql, &["last_seen_minute", "last_seen_at", id]),
            _ => self.direct(sql, &[id]),
        }
        sql.limit(self.limit);
    }

    /// The same for rows of one column with an index, `column`, all of which have a value.
    pub fn write_column(self, sql: &mut Sql<'a>, column: &'static str, id: &'static str) {
        if let Some(Place { id: last, key }) = self.after
            && !matches!(key, Key::Missing)
        {
            sql.push(" AND (").push(column).push(", ").push(id).push(self.beyond());
            key.bind(sql);
            sql.push(", ").bind(last).push(")");
        }
        sql.push(" ORDER BY ");
        self.direct(sql, &[column, id]);
        sql.limit(self.limit);
    }

    /// The same for rows that all have null in `column`, in the order of an index that begins with it.
    pub fn write_nulls(self, sql: &mut Sql<'a>, column: &'static str, id: &'static str) {
        if let Some(Place { id: last, .. }) = self.after {
            sql.push(" AND (").push(id).push(self.beyond()).bind(last).push(")");
        }
        sql.push(" ORDER BY ");
        self.direct(sql, &[column, id]);
        sql.limit(self.limit);
    }

    /// The same for collected rows, some of which lack a value. They have the columns `id` and `sort_key`, and
    /// `sort_group` if they are ordered by value.
    pub fn write_collected(self, sql: &mut Sql<'a>, groups: &'a Groups) {
        let is_grouped = self.sort.by == By::Value;
        if let Some(Place { id: last, key }) = self.after {
            let beyond = self.beyond();
            match key {
                Key::Missing => {
                    sql.push(" AND sort_key IS NULL AND (id").push(beyond).bind(last).push(")");
                }
                key => {
                    sql.push(" AND (sort_key IS NULL OR ");
                    if let Key::Value { currency, .. } = key {
                        let group = groups.of_currency(currency);
                        group_of(sql, groups).push(" > ").bind(group).push(" OR ");
                        group_of(sql, groups).push(" = ").bind(group).push(" AND ");
                    }
                    sql.push("(sort_key, id").push(beyond);
                    key.bind(sql);
                    sql.push(", ").bind(last).push("))");
                }
            }
        }
        sql.push(" ORDER BY CASE WHEN sort_key IS NULL THEN 1 ELSE 0 END, ");
        if is_grouped {
            group_of(sql, groups).push(", ");
        }
        self.direct(sql, &["sort_key", "id"]);
        sql.limit(self.limit);
    }

    /// Closes the columns of a cursor's condition and opens their values.
    fn beyond(self) -> &'static str {
        if self.sort.descending { ") < (" } else { ") > (" }
    }

    fn direct(self, sql: &mut Sql<'a>, columns: &[&str]) {
        for (n, column) in columns.iter().enumerate() {
            sql.push(if n > 0 { ", " } else { "" }).push(column);
            sql.push(if self.sort.descending { " DESC" } else { "" });
        }
    }
}

/// Appends the place of a row's currency among the others: the company's comes first.
fn group_of<'s, 'a>(sql: &'s mut Sql<'a>, groups: &'a Groups) -> &'s mut Sql<'a> {
    sql.push("CASE WHEN sort_group = ").bind(&groups.own_currency).push(" THEN '' ELSE sort_group END")
}
