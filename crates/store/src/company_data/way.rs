//! How the rows of one account are found in a table: along an index, in an order that a page can continue.

use rapport_domain::id::AccountId;

use super::tables::Keys;
use crate::value::Value;

/// How many events a page looks at for the deliveries of an account. It has no index of its own: a delivery is written
/// with every event, and read by account only here.
const EVENTS: usize = 20;

/// The account that an export is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub id: AccountId,
    /// None if it has none, or is deleted.
    pub imported_id: Option<String>,
}

/// What a condition compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `$2` is the id.
    Id,
    /// `$2` is the id as the API shows it.
    Text,
    /// The same, and `$3` is the imported_id.
    Names,
}

impl Key {
    /// The number of its parameters.
    const fn width(self) -> usize {
        match self {
            Self::Id | Self::Text => 1,
            Self::Names => 2,
        }
    }

    /// Its parameters; `text` is the id as the API shows it.
    pub fn values<'a>(self, subject: &'a Subject, text: &'a str) -> Vec<Value<'a>> {
        match self {
            Self::Id => vec![Value::from(&subject.id)],
            Self::Text => vec![Value::from(text)],
            // Without an imported_id, nothing is compared with it.
            Self::Names => vec![Value::from(text), subject.imported_id.as_deref().into()],
        }
    }
}

/// How the rows of an account are found in a table, which is called `t`.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    Directly {
        condition: &'static str,
        key: Key,
        /// Empty for the primary key.
        index: &'static str,
        order: Keys,
    },
    /// From its events, called `e`.
    ThroughEvents { join: &'static str, condition: &'static str, order: Keys },
}

impl Way {
    /// By the column `account`.
    pub const fn column(index: &'static str, order: Keys) -> Self {
        Self::Directly { condition: "t.account = $2", key: Key::Id, index, order }
    }

    pub const fn key(self) -> Key {
        match self {
            Self::Directly { key, .. } => key,
            Self::ThroughEvents { .. } => Key::Id,
        }
    }

    pub const fn order(self) -> Keys {
        match self {
            Self::Directly { order, .. } | Self::ThroughEvents { order, .. } => order,
        }
    }

    /// The number of the first parameter after the company and the key.
    pub const fn first_place(self) -> usize {
        2 + self.key().width()
    }

    /// What the rows are selected from.
    pub fn source(self, table: &str) -> String {
        match self {
            Self::Directly { index: "", .. } => format!("{table} t"),
            Self::Directly { index, .. } => format!("{table} t /*INDEXED BY {index}*/"),
            Self::ThroughEvents { join, .. } => {
                format!("(SELECT x.id FROM {FOLLOWING} ORDER BY x.id LIMIT {EVENTS}) e {join}")
            }
        }
    }

    pub const fn condition(self) -> &'static str {
        match self {
            Self::Directly { condition, .. } | Self::ThroughEvents { condition, .. } => condition,
        }
    }

    /// Selects the last event that a page looks at, if it looks at as many as it can.
    pub fn last_event(self) -> Option<String> {
        let is_through_events = matches!(self, Self::ThroughEvents { .. });
        let last = EVENTS - 1;
        is_through_events.then(|| format!("SELECT x.id FROM {FOLLOWING} ORDER BY x.id LIMIT 1 OFFSET {last}"))
    }
}

/// The events of an account from the one that a page begins with.
const FOLLOWING: &str = "event x /*INDEXED BY event_by_account*/ \
                         WHERE x.company = $1 AND x.account = $2 AND x.id >= $3";
