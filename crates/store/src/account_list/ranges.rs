//! The index ranges from which a narrow filter collects its accounts.

use rapport_domain::id::{ChannelId, ImportId};
use rapport_domain::pipeline::Status;

use super::created_terms::CreatedTerms;
use super::field_terms::ContactTerms;
use super::sql::Sql;
use super::terms::{OverdueTerms, Prefix, SeenTerms};

/// Rows of an index that lead to accounts.
#[derive(Clone, Copy)]
pub(super) enum Range<'a> {
    ImportedId(&'a str),
    Word(&'a Prefix),
    ExactWord(&'a String),
    /// A custom field's key, and one of its index texts.
    FieldValue(&'a String, &'a String),
    FieldPrefix(&'a String, &'a Prefix),
    FieldExists(&'a String),
    Seen(&'a SeenTerms),
    Contact(&'a ContactTerms),
    Created(&'a CreatedTerms),
    Held,
    /// The accounts that an import created, or those that it changed.
    Import(&'a ImportId, bool),
    Channels(&'a [ChannelId]),
    Statuses(&'a [Status]),
    /// The accounts in tracked stages that are overdue, or those that aren't.
    Overdue(&'a OverdueTerms),
}

/// Ranges that together contain every account the filter can match.
pub(super) struct Source<'a>(pub Vec<Range<'a>>);

impl<'a> Range<'a> {
    pub fn write(self, sql: &mut Sql<'a>) {
        match self {
            Self::ImportedId(imported_id) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1 AND a.imported_id = ");
                sql.bind(imported_id);
            }
            Self::Word(prefix) => {
                sql.push("SELECT w.account AS id FROM account_word w WHERE w.company = $1 AND w.word >= ");
                sql.bind(&prefix.from).push(" AND w.word < ").bind(&prefix.to);
            }
            Self::ExactWord(word) => {
                sql.push("SELECT x.account AS id FROM account_word x WHERE x.company = $1 AND x.word = ");
                sql.bind(word);
            }
            Self::Seen(seen) => {
                sql.push("SELECT s.account AS id FROM account_seen s WHERE s.company = $1");
                seen.in_minutes(sql);
            }
            Self::FieldValue(key, text) => {
                fields_of(sql, key).push(" AND e.value = ").bind(text);
            }
            Self::FieldPrefix(key, prefix) => {
                fields_of(sql, key).push(" AND e.value >= ").bind(&prefix.from);
                sql.push(" AND e.value < ").bind(&prefix.to);
            }
            Self::FieldExists(key) => {
                // Always true; it makes SQLite use the index of values.
                fields_of(sql, key).push(" AND e.value >= ''");
            }
            Self::Contact(contact) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1");
                contact.in_range(sql);
            }
            Self::Created(created) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1");
                created.in_range(sql, "a.id");
            }
            Self::Held => {
                sql.push("SELECT a.id AS id FROM account a /*INDEXED BY account_on_hold*/");
                sql.push(" WHERE a.company = $1 AND a.campaign_hold = 1");
            }
            Self::Import(import, created) => {
                sql.push("SELECT m.account AS id FROM import_account m WHERE m.company = $1 AND m.import = ");
                sql.bind(import).push(if created { " AND m.created = 1" } else { " AND m.created = 0" });
            }
            Self::Channels(channels) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1");
                sql.one_of(" AND a.channel", channels.iter());
            }
            Self::Statuses(statuses) => {
                sql.push("SELECT a.id AS id FROM account a WHERE a.company = $1");
                sql.one_of(" AND a.status", statuses.iter().copied());
            }
            Self::Overdue(overdue) => overdue.range(sql),
        }
    }
}

fn fields_of<'s, 'a>(sql: &'s mut Sql<'a>, key: &'a String) -> &'s mut Sql<'a> {
    sql.push("SELECT e.account AS id FROM account_field e WHERE e.company = $1 AND e.field = ").bind(key)
}
