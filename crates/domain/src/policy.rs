//! What an upsert may do to the name and the status of an account that exists, and what came of it.

use serde::Serialize;
use serde_json::Value;

use crate::account::{Change, Upsert};
use crate::invalid::{Fault, as_str};
use crate::pipeline::{Status, Trigger};
use crate::schema::words;

/// When an upsert uses `name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NamePolicy {
    /// Only to create the account.
    #[default]
    Create,
    /// On an existing account too.
    Update,
}

impl NamePolicy {
    pub const ALL: [Self; 2] = [Self::Create, Self::Update];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
        }
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        one_of(&Self::ALL, Self::as_str, value)
    }
}

words!(
    NamePolicy,
    "NamePolicy",
    "When `name` is used: only to create the account (`create`), or on an existing account too (`update`)."
);

/// Where an upsert's `status` moves an existing account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusPolicy {
    /// To the status that was sent.
    #[default]
    Set,
    /// Only forward: see [`crate::pipeline::apply`].
    Forward,
}

impl StatusPolicy {
    pub const ALL: [Self; 2] = [Self::Set, Self::Forward];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Forward => "forward",
        }
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        one_of(&Self::ALL, Self::as_str, value)
    }

    pub const fn trigger(self, status: Status) -> Trigger {
        match self {
            Self::Set => Trigger::Set(status),
            Self::Forward => Trigger::Forward(status),
        }
    }
}

words!(
    StatusPolicy,
    "StatusPolicy",
    "Where `status` moves an existing account: to the status sent (`set`), or only forward (`forward`), so that a re-sync \
     doesn't undo what activity did."
);

fn one_of<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str, value: &Value) -> Result<T, Fault> {
    let text = as_str(value)?;
    let found = all.iter().copied().find(|one| word(*one) == text);
    found.ok_or_else(|| Fault::not_one_of("unknown_policy", all.iter().copied().map(word)))
}

/// What came of a member that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The account has it now, and didn't before.
    Set,
    /// The account had it already.
    Unchanged,
    /// The policy kept what the account has.
    Kept,
}

impl Outcome {
    pub const ALL: [Self; 3] = [Self::Set, Self::Unchanged, Self::Kept];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Unchanged => "unchanged",
            Self::Kept => "kept",
        }
    }

    fn of(member: &str, created: bool, change: &Change) -> Self {
        if created || change.changed.contains(&member) {
            Self::Set
        } else if change.ignored.contains(&member) {
            Self::Kept
        } else {
            Self::Unchanged
        }
    }
}

words!(
    Outcome,
    "UpsertOutcome",
    "`set`: the account has the value that you sent. `unchanged`: it had that already. `kept`: the policy kept what it had."
);

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What came of the name and the status, each if it was sent. Empty unless the request names a policy: other requests get
/// the reply of the contract and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes {
    pub name: Option<Outcome>,
    pub status: Option<Outcome>,
}

impl Outcomes {
    pub fn of(request: &Upsert, created: bool, change: &Change) -> Self {
        if request.name_policy.is_none() && request.status_policy.is_none() {
            return Self::default();
        }
        Self {
            name: request.name.as_ref().map(|_| Outcome::of("name", created, change)),
            status: request.status.map(|_| Outcome::of("status", created, change)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn policies_are_read_by_their_words() {
        for policy in NamePolicy::ALL {
            assert_eq!(NamePolicy::from_json(&json!(policy.as_str())), Ok(policy));
        }
        for policy in StatusPolicy::ALL {
            assert_eq!(StatusPolicy::from_json(&json!(policy.as_str())), Ok(policy));
        }
        assert_eq!((NamePolicy::default(), StatusPolicy::default()), (NamePolicy::Create, StatusPolicy::Set));
        for (value, code) in
            [(json!("Forward"), "unknown_policy"), (json!(""), "unknown_policy"), (json!(1), "wrong_type")]
        {
            assert_eq!(NamePolicy::from_json(&value).unwrap_err().code, code, "{value}");
            let fault = StatusPolicy::from_json(&value).unwrap_err();
            assert_eq!(fault.code, code, "{value}");
            assert!(code == "wrong_type" || fault.detail.ends_with("set, forward"), "{}", fault.detail);
        }
    }

    #[test]
    fn an_outcome_follows_from_what_changed_and_what_was_ignored() {
        let changed = Change { changed: vec!["name"], ..Change::default() };
        let ignored = Change { ignored: vec!["name"], ..Change::default() };
        let table = [
            (true, Change::default(), Outcome::Set),
            (false, changed, Outcome::Set),
            (false, ignored, Outcome::Kept),
            (false, Change::default(), Outcome::Unchanged),
        ];
        for (created, change, outcome) in table {
            assert_eq!(Outcome::of("name", created, &change), outcome, "{created} {change:?}");
        }
    }
}
