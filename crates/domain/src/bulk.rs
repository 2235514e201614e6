//! A person moving many accounts at once, and moving them back.

use crate::account::StatusChange;
use crate::id::AccountId;
use crate::invalid::Invalid;
use crate::pipeline::Status;

/// The number of accounts on a page: they move in one transaction.
pub const MAX_ACCOUNTS: usize = 50;

/// The accounts to move, each at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkMove {
    pub moves: Vec<Wanted>,
    pub note: Option<String>,
}

/// One account and its target stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub account: AccountId,
    pub to: Status,
    /// Move it only if it is still in this stage, so that an undo doesn't overwrite later changes.
    pub only_from: Option<Status>,
}

impl BulkMove {
    /// Moves all of these to one stage; ids are as they were sent.
    pub fn to_one<'a>(ids: impl IntoIterator<Item = &'a str>, change: StatusChange) -> Result<Self, Invalid> {
        let wanted = |account| Wanted { account, to: change.status, only_from: None };
        let moves = read_ids(ids)?.into_iter().map(wanted).collect();
        Self { moves, note: change.note }.checked()
    }

    /// Moves each account back to its earlier stage, if it is still in `now`.
    pub fn back<'a>(
        groups: impl IntoIterator<Item = (Status, &'a str)>,
        now: Status,
    ) -> Result<Self, Invalid> {
        let mut moves: Vec<Wanted> = Vec::new();
        for (to, ids) in groups {
            let wanted = |account| Wanted { account, to, only_from: Some(now) };
            moves.extend(read_ids(ids.split(' '))?.into_iter().map(wanted));
        }
        Self { moves, note: None }.checked()
    }

    fn checked(mut self) -> Result<Self, Invalid> {
        let mut known: Vec<AccountId> = Vec::with_capacity(self.moves.len());
        self.moves.retain(|wanted| {
            let is_new = !known.contains(&wanted.account);
            known.push(wanted.account);
            is_new
        });
        match self.moves.len() {
            0 => Err(Invalid::one("/account", "required", "select at least one account")),
            1..=MAX_ACCOUNTS => Ok(self),
            _ => {
                let detail = format!("must be at most {MAX_ACCOUNTS} accounts at a time");
                Err(Invalid::one("/account", "too_many", detail))
            }
        }
    }
}

fn read_ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> Result<Vec<AccountId>, Invalid> {
    let malformed = |_| Invalid::one("/account", "malformed", "must be account ids");
    ids.into_iter().filter(|id| !id.is_empty()).map(|id| id.parse().map_err(malformed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> String {
        AccountId::from_bytes([number; 16]).to_string()
    }

    fn refused(ids: &[String]) -> &'static str {
        let change = StatusChange { status: Status::Lost, note: None };
        BulkMove::to_one(ids.iter().map(String::as_str), change).unwrap_err().0[0].code
    }

    #[test]
    fn accounts_are_named_once_and_not_too_many() {
        let change = StatusChange { status: Status::Lost, note: Some("why".to_owned()) };
        let (one, two) = (id(1), id(2));
        let bulk = BulkMove::to_one([one.as_str(), &two, "", &one], change).unwrap();
        assert_eq!((bulk.moves.len(), bulk.note.as_deref()), (2, Some("why")));
        assert_eq!(refused(&[]), "required");
        assert_eq!(refused(&["nope".to_owned()]), "malformed");
        let many: Vec<String> = (0..=50).map(id).collect();
        assert_eq!(refused(&many), "too_many");
        let change = StatusChange { status: Status::Lost, note: None };
        assert!(BulkMove::to_one(many[..50].iter().map(String::as_str), change).is_ok());
    }

    #[test]
    fn each_account_goes_back_to_its_own_stage() {
        let groups = [(Status::Prospect, format!("{} {}", id(1), id(2))), (Status::Customer, id(3))];
        let groups = groups.iter().map(|(status, ids)| (*status, ids.as_str()));
        let bulk = BulkMove::back(groups, Status::Lost).unwrap();
        let to: Vec<Status> = bulk.moves.iter().map(|wanted| wanted.to).collect();
        assert_eq!(to, [Status::Prospect, Status::Prospect, Status::Customer]);
        assert!(bulk.moves.iter().all(|wanted| wanted.only_from == Some(Status::Lost)));
    }
}
