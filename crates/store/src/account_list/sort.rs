//! The orders of the account list.

use rapport_domain::invalid::Fault;

/// What a list is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    Created,
    Name,
    /// The stages of the pipeline, in its order.
    Status,
    /// The amount. Different currencies aren't compared: the company's comes first, then the others by their code.
    Value,
    /// The channel's name.
    Channel,
    PromoCode,
    LastSeen,
    FirstSeen,
    LastContact,
    Acquired,
    /// The order in which the last changes were committed.
    Updated,
}

/// The order of a list. Ties are ordered by id, so every order is total. Accounts that lack what they are ordered by come
/// last, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sort {
    pub by: By,
    pub descending: bool,
}

impl By {
    pub const ALL: [Self; 11] = [
        Self::Created,
        Self::Name,
        Self::Status,
        Self::Value,
        Self::Channel,
        Self::PromoCode,
        Self::LastSeen,
        Self::FirstSeen,
        Self::LastContact,
        Self::Acquired,
        Self::Updated,
    ];

    pub const fn ascending(self) -> Sort {
        Sort { by: self, descending: false }
    }

    pub const fn descending(self) -> Sort {
        Sort { by: self, descending: true }
    }

    /// The API's names for both directions; a minus means descending.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Created => ["created_at", "-created_at"],
            Self::Name => ["name", "-name"],
            Self::Status => ["status", "-status"],
            Self::Value => ["captured_value", "-captured_value"],
            Self::Channel => ["channel", "-channel"],
            Self::PromoCode => ["promo_code", "-promo_code"],
            Self::LastSeen => ["last_seen_at", "-last_seen_at"],
            Self::FirstSeen => ["first_seen_at", "-first_seen_at"],
            Self::LastContact => ["last_contact_at", "-last_contact_at"],
            Self::Acquired => ["acquired_at", "-acquired_at"],
            Self::Updated => ["updated_at", "-updated_at"],
        }
    }
}

impl Sort {
    pub const NEWEST: Self = By::Created.descending();
    pub const OLDEST: Self = By::Created.ascending();

    pub fn all() -> impl Iterator<Item = Self> {
        By::ALL.into_iter().flat_map(|by| [by.ascending(), by.descending()])
    }

    pub const fn as_str(self) -> &'static str {
        let [ascending, descending] = self.by.words();
        if self.descending { descending } else { ascending }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let known = |sort: &Self| sort.as_str() == text;
        Self::all()
            .find(known)
            .ok_or_else(|| Fault::not_one_of("unknown_sort", Self::all().map(Self::as_str)))
    }
}

/// Newest first.
impl Default for Sort {
    fn default() -> Self {
        Self::NEWEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_have_their_words() {
        for sort in Sort::all() {
            assert_eq!(Sort::parse(sort.as_str()), Ok(sort));
            assert_eq!(sort.as_str().starts_with('-'), sort.descending, "{sort:?}");
        }
        let refused = Sort::parse("size").unwrap_err();
        assert_eq!(refused.code, "unknown_sort");
        assert!(refused.detail.contains("-last_seen_at"), "{}", refused.detail);
    }
}
