//! The pipeline: its stages, the triggers that move an account between them, and the source of a move.
//!
//! `apply` implements the interface document's table "States and transitions"; the test below repeats that
//! table row by row.

use std::fmt;

use serde_json::Value;

use crate::invalid::{Fault, as_str};
use crate::schema::words;

/// A stage of the pipeline, in order up to `Customer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Prospect,
    Contacted,
    InNegotiation,
    InTrial,
    Customer,
    Lost,
    DoNotContact,
}

impl Status {
    pub const ALL: [Self; 7] = [
        Self::Prospect,
        Self::Contacted,
        Self::InNegotiation,
        Self::InTrial,
        Self::Customer,
        Self::Lost,
        Self::DoNotContact,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prospect => "prospect",
            Self::Contacted => "contacted",
            Self::InNegotiation => "in_negotiation",
            Self::InTrial => "in_trial",
            Self::Customer => "customer",
            Self::Lost => "lost",
            Self::DoNotContact => "do_not_contact",
        }
    }

    /// The label shown to people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Prospect => "Prospect",
            Self::Contacted => "Contacted",
            Self::InNegotiation => "In negotiation",
            Self::InTrial => "In trial",
            Self::Customer => "Customer",
            Self::Lost => "Lost",
            Self::DoNotContact => "Do not contact",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_status", Self::ALL.map(Self::as_str)))
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }
}

words!(Status, "Status", "The pipeline stage of an account.");

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Where a change of status, or a new account, came from. A human edit is always `Operator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    Operator,
    Upsert,
    Import,
    Lookup,
    Inbound,
    /// Client activity, through ingest.
    Automation,
}

impl Source {
    pub const ALL: [Self; 6] =
        [Self::Operator, Self::Upsert, Self::Import, Self::Lookup, Self::Inbound, Self::Automation];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Upsert => "upsert",
            Self::Import => "import",
            Self::Lookup => "lookup",
            Self::Inbound => "inbound",
            Self::Automation => "automation",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

words!(Source, "Source", "The source of a change.");

impl serde::Serialize for Source {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The triggers that can move an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    TrialStarted,
    BecameCustomer,
    Churned,
    /// A status given by an operator, an upsert or an import.
    Set(Status),
    /// A status that a re-sync repeats. It never undoes what activity or a person did meanwhile.
    Forward(Status),
}

/// An actual move: `from` and `to` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub from: Status,
    pub to: Status,
}

/// Where a trigger moves an account; `None` if it stays.
pub fn apply(from: Status, trigger: Trigger) -> Option<Move> {
    let to = match trigger {
        Trigger::TrialStarted => match from {
            // A customer is never demoted, and Do not contact is never touched.
            Status::Customer | Status::DoNotContact => from,
            Status::Prospect | Status::Contacted | Status::InNegotiation | Status::InTrial | Status::Lost => {
                Status::InTrial
            }
        },
        Trigger::BecameCustomer => Status::Customer,
        Trigger::Churned => Status::Lost,
        Trigger::Set(status) => status,
        Trigger::Forward(status) => forward(from, status),
    };
    (from != to).then_some(Move { from, to })
}

/// Where a re-sync that says `to` may take an account: forward in the pipeline, or to an end of it.
///
/// Activity moves accounts to In trial, Customer and Lost. None of these moves is undone: a re-sync that still says
/// Lost doesn't end a trial that began since, and one that still says Customer doesn't win back an account that
/// churned. So Lost is reached only from the stages before In trial, and left only for Do not contact. Nobody is
/// contacted against their wish because of an order of stages, so Do not contact is reached from anywhere but Customer.
fn forward(from: Status, to: Status) -> Status {
    let moves = match from {
        // The stages are in order up to Customer, and the ends of the pipeline follow.
        Status::Prospect | Status::Contacted | Status::InNegotiation => to > from,
        Status::InTrial => matches!(to, Status::Customer | Status::DoNotContact),
        Status::Lost => to == Status::DoNotContact,
        Status::Customer | Status::DoNotContact => false,
    };
    if moves { to } else { from }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_transitions_are_the_documents_table() {
        use Status::{Contacted, Customer, DoNotContact, InNegotiation, InTrial, Lost, Prospect};
        let trial = [
            (Prospect, Some(InTrial)),
            (Contacted, Some(InTrial)),
            (InNegotiation, Some(InTrial)),
            (InTrial, None),
            (Customer, None),
            (Lost, Some(InTrial)),
            (DoNotContact, None),
        ];
        for (from, to) in trial {
            assert_eq!(
                apply(from, Trigger::TrialStarted).map(|step| step.to),
                to,
                "trial_started from {from}"
            );
        }
        for from in Status::ALL {
            let customer = (from != Customer).then_some(Move { from, to: Customer });
            assert_eq!(apply(from, Trigger::BecameCustomer), customer, "became_customer from {from}");
            let lost = (from != Lost).then_some(Move { from, to: Lost });
            assert_eq!(apply(from, Trigger::Churned), lost, "churned from {from}");
            for to in Status::ALL {
                let set = (from != to).then_some(Move { from, to });
                assert_eq!(apply(from, Trigger::Set(to)), set, "set {to} from {from}");
            }
        }
    }

    #[test]
    fn forward_never_moves_back_nor_undoes_what_activity_did() {
        use Status::{Contacted, Customer, DoNotContact, InNegotiation, InTrial, Lost, Prospect};
        // Every stage with those that a re-sync can take it to. All other pairs stay.
        let table: [(Status, &[Status]); 7] = [
            (Prospect, &[Contacted, InNegotiation, InTrial, Customer, Lost, DoNotContact]),
            (Contacted, &[InNegotiation, InTrial, Customer, Lost, DoNotContact]),
            (InNegotiation, &[InTrial, Customer, Lost, DoNotContact]),
            (InTrial, &[Customer, DoNotContact]),
            (Customer, &[]),
            (Lost, &[DoNotContact]),
            (DoNotContact, &[]),
        ];
        assert_eq!(table.map(|(from, _)| from), Status::ALL);
        for (from, reached) in table {
            for to in Status::ALL {
                let expected = reached.contains(&to).then_some(Move { from, to });
                assert_eq!(apply(from, Trigger::Forward(to)), expected, "forward from {from} to {to}");
            }
        }
        // Where activity left an account, a re-sync that repeats an earlier stage leaves it too.
        for trigger in [Trigger::TrialStarted, Trigger::BecameCustomer, Trigger::Churned] {
            for before in Status::ALL {
                let Some(Move { to: after, .. }) = apply(before, trigger) else { continue };
                // Do not contact is a wish, and comes back unless the account has become a customer.
                if before != DoNotContact || after == Customer {
                    assert_eq!(
                        apply(after, Trigger::Forward(before)),
                        None,
                        "{before}, {trigger:?}, {before} again"
                    );
                }
            }
        }
    }

    #[test]
    fn wire_values_are_the_decided_ones() {
        let words = Status::ALL.map(Status::as_str);
        let decided =
            ["prospect", "contacted", "in_negotiation", "in_trial", "customer", "lost", "do_not_contact"];
        assert_eq!(words, decided);
        for word in decided {
            assert_eq!(Status::parse(word).unwrap().as_str(), word);
        }
        let refused = Status::parse("Customer").unwrap_err();
        assert!(refused.detail.contains("in_negotiation"), "{}", refused.detail);
    }
}
