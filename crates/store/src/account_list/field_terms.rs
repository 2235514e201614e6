//! A filter's conditions on custom fields and on last contact, as SQL.

use rapport_domain::audience::{FieldFilter, FieldTest, Filter};
use rapport_domain::field_index;
use rapport_domain::time::Time;

use super::ranges::Range;
use super::sql::{Sql, never};
use super::terms::Prefix;

/// A condition on one custom field, as texts of its index.
pub(super) struct FieldTerm {
    key: String,
    test: Test,
}

enum Test {
    Is(Vec<String>),
    Exists,
    BeginsWith(Prefix),
}

impl FieldTerm {
    pub fn of(FieldFilter { key, test }: &FieldFilter) -> Self {
        let test = match test {
            FieldTest::Is(values) => {
                let mut texts: Vec<String> =
                    values.iter().flat_map(|value| field_index::texts_asked(value)).collect();
                texts.sort_unstable();
                texts.dedup();
                Test::Is(texts)
            }
            FieldTest::Exists => Test::Exists,
            FieldTest::BeginsWith(text) => Test::BeginsWith(Prefix::of(field_index::beginning(text))),
        };
        Self { key: key.clone(), test }
    }

    /// The index ranges that contain every account the term can match.
    pub fn ranges(&self) -> Vec<Range<'_>> {
        match &self.test {
            Test::Is(texts) => texts.iter().map(|text| Range::FieldValue(&self.key, text)).collect(),
            Test::Exists => vec![Range::FieldExists(&self.key)],
            Test::BeginsWith(prefix) => vec![Range::FieldPrefix(&self.key, prefix)],
        }
    }

    /// The key and texts for which the index has accounts ordered by id.
    pub fn ordered(&self) -> Option<(&String, &[String])> {
        match &self.test {
            Test::Is(texts) => Some((&self.key, texts)),
            Test::Exists | Test::BeginsWith(_) => None,
        }
    }

    /// Appends the check for an account `a`.
    pub fn write<'a>(&'a self, sql: &mut Sql<'a>) {
        sql.push(" AND EXISTS (SELECT 1 FROM account_field e WHERE e.company = $1 AND e.account = a.id");
        sql.push(" AND e.field = ").bind(&self.key);
        match &self.test {
            Test::Is(texts) => sql.one_of(" AND e.value", texts.iter()),
            Test::Exists => {}
            // The few values of one account are read by its id: `|| ''` keeps planners away from the index of
            // values, whose range may be long.
            Test::BeginsWith(prefix) => {
                sql.push(" AND e.value || '' >= ").bind(&prefix.from);
                sql.push(" AND e.value || '' < ").bind(&prefix.to);
            }
        }
        sql.push(" LIMIT 1 OFFSET 0)");
    }
}

/// A condition on the time of last contact.
pub(super) enum ContactTerms {
    Never,
    /// Contacted at some time, between these if given.
    Within {
        after: Option<Time>,
        before: Option<Time>,
    },
}

impl ContactTerms {
    pub fn of(filter: &Filter) -> Option<Self> {
        let (after, before) = (filter.contacted_after, filter.contacted_before);
        match filter.contacted {
            Some(false) => Some(Self::Never),
            None if after.is_none() && before.is_none() => None,
            _ => Some(Self::Within { after, before }),
        }
    }

    /// Whether its accounts are adjacent in an index.
    pub fn is_range(&self) -> bool {
        matches!(self, Self::Within { .. })
    }

    /// Appends the bounds of the index range for an account `a`.
    pub fn in_range(&self, sql: &mut Sql<'_>) {
        // Implies that there was contact, which lets both engines use the index of contacted accounts.
        sql.push(concat!(" AND a.last_contact_at >= ", never!()));
        self.bounds(sql, " AND a.last_contact_at");
    }

    /// Appends the check for an account `a`. `nullif` keeps planners away from the index, whose range may be long: they
    /// can't tell that what it gives is null wherever the column is.
    pub fn write(&self, sql: &mut Sql<'_>) {
        match self {
            Self::Never => {
                sql.push(" AND a.last_contact_at IS NULL");
            }
            Self::Within { after: None, before: None } => {
                sql.push(concat!(" AND nullif(a.last_contact_at, ", never!(), ") IS NOT NULL"));
            }
            Self::Within { .. } => {
                self.bounds(sql, concat!(" AND nullif(a.last_contact_at, ", never!(), ")"));
            }
        }
    }

    fn bounds(&self, sql: &mut Sql<'_>, column: &str) {
        let Self::Within { after, before } = self else { return };
        if let Some(after) = after {
            sql.push(column).push(" > ").bind(*after);
        }
        if let Some(before) = before {
            sql.push(column).push(" < ").bind(*before);
        }
    }
}
