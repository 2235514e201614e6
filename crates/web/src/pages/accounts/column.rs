//! The columns of the list. The name is always shown.

use rapport_app::read::accounts::{By, Sort};
use rapport_domain::custom_fields::MAX_KEY;

use crate::shared::export;

const FIELD: &str = "field.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    Status,
    Value,
    Channel,
    PromoCode,
    LastSeen,
    FirstSeen,
    LastContact,
    Acquired,
    Created,
    Updated,
    /// A custom field, by its key.
    Field(String),
}

impl Column {
    pub const FIXED: [Self; 10] = [
        Self::Status,
        Self::Value,
        Self::Channel,
        Self::PromoCode,
        Self::LastSeen,
        Self::FirstSeen,
        Self::LastContact,
        Self::Acquired,
        Self::Created,
        Self::Updated,
    ];
    /// The columns shown by default.
    pub const DEFAULT: [Self; 6] =
        [Self::Status, Self::Value, Self::Channel, Self::LastSeen, Self::LastContact, Self::Created];

    pub fn parse(text: &str) -> Option<Self> {
        if let Some(key) = text.strip_prefix(FIELD) {
            return MAX_KEY.check(key).is_ok().then(|| Self::Field(key.to_owned()));
        }
        Self::FIXED.into_iter().find(|column| column.word() == text)
    }

    /// Its word in the address.
    pub fn word(&self) -> String {
        let word = match self {
            Self::Status => "status",
            Self::Value => "value",
            Self::Channel => "channel",
            Self::PromoCode => "promo_code",
            Self::LastSeen => "last_seen",
            Self::FirstSeen => "first_seen",
            Self::LastContact => "last_contact",
            Self::Acquired => "acquired",
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Field(key) => return format!("{FIELD}{key}"),
        };
        word.to_owned()
    }

    pub fn label(&self) -> &str {
        match self {
            Self::Status => "Status",
            Self::Value => "Value",
            Self::Channel => "Channel",
            Self::PromoCode => "Promo code",
            Self::LastSeen => "Last seen",
            Self::FirstSeen => "First seen",
            Self::LastContact => "Last contact",
            Self::Acquired => "Acquired",
            Self::Created => "Created",
            Self::Updated => "Updated",
            Self::Field(key) => key,
        }
    }

    /// The orders that the first and the second click on the heading ask for.
    pub fn sorts(&self) -> Option<[Sort; 2]> {
        let rising = |by: By| Some([by.ascending(), by.descending()]);
        // The latest and the largest come first.
        let falling = |by: By| Some([by.descending(), by.ascending()]);
        match self {
            Self::Status => rising(By::Status),
            Self::Value => falling(By::Value),
            Self::Channel => rising(By::Channel),
            Self::PromoCode => rising(By::PromoCode),
            Self::LastSeen => falling(By::LastSeen),
            Self::FirstSeen => falling(By::FirstSeen),
            Self::LastContact => falling(By::LastContact),
            Self::Acquired => falling(By::Acquired),
            Self::Created => falling(By::Created),
            Self::Updated => falling(By::Updated),
            // Its index has numbers as texts, and an array several times.
            Self::Field(_) => None,
        }
    }

    /// The columns of its export.
    pub fn exported(&self) -> Vec<export::Column> {
        let members: &[&'static str] = match self {
            Self::Status => &["status"],
            Self::Value => &["captured_value", "captured_value_currency"],
            Self::Channel => &["channel"],
            Self::PromoCode => &["promo_code"],
            Self::LastSeen => &["last_seen_at"],
            Self::FirstSeen => &["first_seen_at"],
            Self::LastContact => &["last_contact_at"],
            Self::Acquired => &["acquired_at"],
            Self::Created => &["created_at"],
            Self::Updated => &["updated_at"],
            Self::Field(key) => return vec![export::Column::Field(key.clone())],
        };
        members.iter().copied().map(export::Column::Member).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_but_custom_fields_sorts_both_ways() {
        for column in Column::FIXED {
            let [first, second] = column.sorts().expect("sorts");
            assert_eq!(first.by, second.by, "{column:?}");
            assert_ne!(first.descending, second.descending, "{column:?}");
        }
        assert_eq!(Column::Field("plan".to_owned()).sorts(), None);
    }

    #[test]
    fn columns_have_their_words() {
        for column in Column::FIXED.into_iter().chain([Column::Field("a,b".to_owned())]) {
            assert_eq!(Column::parse(&column.word()), Some(column));
        }
        for unknown in ["", "field.", "name", "Status"] {
            assert_eq!(Column::parse(unknown), None, "{unknown}");
        }
    }
}
