//! Events that exist only because a webhook asked for them.
//!
//! The company's own row says which of the opt-in kinds some webhook of it selects. It is read with every request, so an
//! upsert that changes an account knows without another statement that nobody wants to hear of it.

use crate::event::Kind;
use crate::webhook::Selection;

/// The opt-in kinds that some webhook of a company selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OptIn {
    account_updated: bool,
    account_deleted: bool,
    contact_logged: bool,
}

impl OptIn {
    /// What these webhooks want together.
    pub fn of<'a>(selections: impl IntoIterator<Item = &'a Selection>) -> Self {
        let mut wanted = Self::default();
        for selection in selections {
            wanted.account_updated |= selection.includes(Kind::AccountUpdated);
            wanted.account_deleted |= selection.includes(Kind::AccountDeleted);
            wanted.contact_logged |= selection.includes(Kind::ContactLogged);
        }
        wanted
    }

    /// Whether an event of this kind is written: always for the kinds that nobody has to ask for.
    pub const fn includes(self, kind: Kind) -> bool {
        match kind {
            Kind::AccountUpdated => self.account_updated,
            Kind::AccountDeleted => self.account_deleted,
            Kind::ContactLogged => self.contact_logged,
            Kind::AccountCreated
            | Kind::AccountStatusChanged
            | Kind::MessageInbound
            | Kind::WebhookTest
            | Kind::ClientContactDue => true,
        }
    }

    /// The stored form: the wire values, joined by commas.
    pub fn to_stored(self) -> String {
        let wanted = Kind::OPT_IN.into_iter().filter(|kind| self.includes(*kind));
        wanted.map(Kind::as_str).collect::<Vec<_>>().join(",")
    }

    pub fn from_stored(text: &str) -> Self {
        if text.is_empty() { Self::default() } else { Self::of([&Selection::from_stored(text)]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_company_wants_what_its_webhooks_want_together() {
        let selection = |kinds: &[&str]| Selection::from_json(&json!(kinds)).unwrap();
        let table: [(&[&[&str]], &str); 4] = [
            (&[], ""),
            (&[&["account.created", "message.inbound"]], ""),
            (&[&["account.updated"], &["account.created"]], "account.updated"),
            (
                &[&["contact.logged"], &["account.deleted", "account.updated"]],
                "account.updated,account.deleted,contact.logged",
            ),
        ];
        for (webhooks, stored) in table {
            let selections: Vec<Selection> = webhooks.iter().map(|kinds| selection(kinds)).collect();
            let wanted = OptIn::of(&selections);
            assert_eq!(wanted.to_stored(), stored);
            assert_eq!(OptIn::from_stored(stored), wanted);
            for kind in Kind::ALL {
                let expected =
                    !Kind::OPT_IN.contains(&kind) || stored.split(',').any(|word| word == kind.as_str());
                assert_eq!(wanted.includes(kind), expected, "{} for {stored}", kind.as_str());
            }
        }
    }
}
