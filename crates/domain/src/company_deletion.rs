//! The deletion of a company: what has to be typed, and how long it waits.

use serde_json::{Map, Value};

use crate::company::Slug;
use crate::invalid::{Fault, Invalid, Members, as_str};
use crate::time::Time;

/// How long a company waits to be deleted. Everything works meanwhile, and any owner can cancel.
pub const WAITING_DAYS: i64 = 14;

/// A deletion that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    pub requested_at: Time,
    /// The name of the owner who asked; `None` for the server's administrator.
    pub requested_by: Option<String>,
    /// When the deletion begins.
    pub at: Time,
    /// When it began. From then on nobody can cancel it.
    pub began_at: Option<Time>,
}

impl Deletion {
    pub fn new(requested_by: Option<String>, now: Time) -> Self {
        Self { requested_at: now, requested_by, at: now.plus_days(WAITING_DAYS), began_at: None }
    }

    pub const fn has_begun(&self) -> bool {
        self.began_at.is_some()
    }

    /// Whether the waiting is over.
    pub fn is_due(&self, now: Time) -> bool {
        self.has_begun() || now >= self.at
    }
}

/// Checks that the company's short name was typed, which nobody does by mistake.
pub fn confirm(body: &Map<String, Value>, project: &Slug) -> Result<(), Invalid> {
    let mut members = Members::of(body);
    let typed = members.required("project", |value| {
        if as_str(value)? == project.as_str() {
            return Ok(());
        }
        Err(Fault::new("not_confirmed", format!("must be {}, the company's short name", project.as_str())))
    });
    members.refuse_unknown();
    members.build(|| typed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_short_name_has_to_be_typed_exactly() {
        let acme = Slug::parse("acme").unwrap();
        let confirmed =
            |body: Value| confirm(body.as_object().unwrap(), &acme).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({"project": "acme"}), Ok(())),
            (json!({"project": "Acme"}), Err("not_confirmed")),
            (json!({"project": "acme-2"}), Err("not_confirmed")),
            (json!({"project": ""}), Err("not_confirmed")),
            (json!({"project": 1}), Err("wrong_type")),
            (json!({}), Err("required")),
        ];
        for (body, expected) in table {
            assert_eq!(confirmed(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn a_company_waits_for_two_weeks() {
        let now = Time::parse("2026-01-05T09:00:00Z").unwrap();
        let deletion = Deletion::new(Some("Ana".to_owned()), now);
        assert_eq!(deletion.at.to_string(), "2026-01-19T09:00:00Z");
        assert!(!deletion.is_due(now.plus_days(13)) && deletion.is_due(now.plus_days(14)));
        let begun = Deletion { began_at: Some(now), ..deletion };
        assert!(begun.is_due(now), "one that began goes on");
    }
}
