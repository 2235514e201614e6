//! A person changing many accounts at once: what the change does to each of them.

use crate::account::{Account, Patch};
use crate::channel::{Attribution, PromoCode};
use crate::company::Settings;
use crate::difference::Differences;
use crate::id::AccountId;
use crate::invalid::Invalid;
use crate::pipeline::Move;
use crate::time::Time;

/// The number of accounts on a page: they change in one transaction.
pub const MAX_ACCOUNTS: usize = 50;
/// How long a change can be undone.
pub const UNDO_DAYS: i64 = 1;

/// One edit of many accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkChange {
    /// Each at most once.
    pub accounts: Vec<AccountId>,
    pub patch: Patch,
    /// The code whose channel the accounts get, which the caller looks up.
    pub promo_code: Option<PromoCode>,
    /// Shown in the history of accounts that move.
    pub note: Option<String>,
}

/// What a change does to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Changes(Box<Changed>),
    /// It is as the change wants it already.
    Same,
    Refused(Invalid),
}

/// An account after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub after: Account,
    pub moved: Option<Move>,
    pub differences: Differences,
}

impl BulkChange {
    pub fn effect(
        &self,
        before: &Account,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Effect {
        let mut after = before.clone();
        match after.patch(&self.patch, attribution, settings, now) {
            Err(invalid) => Effect::Refused(invalid),
            Ok(change) if change.changed.is_empty() => Effect::Same,
            Ok(change) => {
                let differences = Differences::between(before, &after);
                Effect::Changes(Box::new(Changed { after, moved: change.moved, differences }))
            }
        }
    }

    /// Whether it only moves accounts. Their history then has each of the moves.
    pub fn only_moves(&self) -> bool {
        let Patch { status, .. } = &self.patch;
        status.is_some()
            && Patch { status: None, ..self.patch.clone() } == Patch::default()
            && self.promo_code.is_none()
    }
}

/// Reads the accounts to change, as they were sent.
pub fn accounts<'a>(ids: impl IntoIterator<Item = &'a str>) -> Result<Vec<AccountId>, Invalid> {
    let malformed = |_| Invalid::one("/account", "malformed", "must be account ids");
    let mut known: Vec<AccountId> = Vec::new();
    for id in ids.into_iter().filter(|id| !id.is_empty()) {
        let id = id.parse().map_err(malformed)?;
        if !known.contains(&id) {
            known.push(id);
        }
    }
    match known.len() {
        0 => Err(Invalid::one("/account", "required", "select at least one account")),
        1..=MAX_ACCOUNTS => Ok(known),
        _ => {
            let detail = format!("must be at most {MAX_ACCOUNTS} accounts at a time");
            Err(Invalid::one("/account", "too_many", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::ChannelRef;
    use crate::id::ChannelId;
    use crate::pipeline::Status;
    use serde_json::{Value, json};

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);

    fn id(number: u8) -> String {
        AccountId::from_bytes([number; 16]).to_string()
    }

    #[test]
    fn accounts_are_read_once_each_and_bounded() {
        let read = |ids: &[String]| accounts(ids.iter().map(String::as_str));
        assert_eq!(read(&[id(1), id(1), String::new(), id(2)]).unwrap().len(), 2);
        let refused = |ids: &[String]| read(ids).unwrap_err().0[0].code;
        assert_eq!(refused(&[]), "required");
        assert_eq!(refused(&["nope".to_owned()]), "malformed");
        let many: Vec<String> = (0..=50).map(id).collect();
        assert_eq!(refused(&many), "too_many");
        assert_eq!(read(&many[..50]).unwrap().len(), 50);
    }

    fn change(members: &Value) -> BulkChange {
        let (patch, promo_code) = Patch::parse(members.as_object().unwrap()).unwrap();
        BulkChange { accounts: vec![AccountId::from_bytes([1; 16])], patch, promo_code, note: None }
    }

    fn fair() -> Attribution {
        let channel = ChannelRef { id: ChannelId::from_bytes([1; 16]), name: "Fair".to_owned() };
        Attribution { code: PromoCode::parse("FAIR").unwrap(), channel }
    }

    #[test]
    fn each_change_changes_an_account_once() {
        let before = Account::new(AccountId::from_bytes([1; 16]), "Acme".to_owned(), Status::Customer, NOW);
        let table = [
            (json!({"status": "lost"}), "status", true),
            (json!({"promo_code": "FAIR"}), "promo_code", false),
            (json!({"custom_fields": {"plan": "pro"}}), "custom_fields.plan", false),
            (json!({"cadence_days": 7}), "cadence_days", false),
            (json!({"snoozed_until": "2027-01-31"}), "snoozed_until", false),
        ];
        for (members, field, only_moves) in table {
            let change = change(&members);
            assert_eq!(change.only_moves(), only_moves, "{members}");
            let attribution = change.promo_code.as_ref().map(|_| fair());
            let effect = |account: &Account| {
                change.effect(account, attribution.as_ref(), &Settings::default(), NOW.plus_days(1))
            };
            let Effect::Changes(changed) = effect(&before) else { panic!("{members} changes nothing") };
            assert_eq!(changed.moved.is_some(), only_moves, "{members}");
            let shown = changed.differences.shown();
            assert_eq!(shown.iter().map(|shown| shown.field.as_str()).collect::<Vec<_>>(), [field]);
            assert_eq!(effect(&changed.after), Effect::Same, "{members}");
            let mut undone = changed.after.clone();
            let channels = [fair().channel];
            changed.differences.revert(&mut undone, &channels, &Settings::default(), NOW.plus_days(2));
            assert_eq!(Account { updated_at: before.updated_at, ..undone }, before, "{members}");
        }
    }

    #[test]
    fn a_change_that_an_account_has_no_room_for_is_refused() {
        let mut before =
            Account::new(AccountId::from_bytes([1; 16]), "Acme".to_owned(), Status::Customer, NOW);
        let text = "x".repeat(30_000);
        for key in ["a", "b", "c"] {
            let wanted = change(&json!({"custom_fields": {key: text}}));
            match wanted.effect(&before, None, &Settings::default(), NOW) {
                Effect::Changes(changed) => before = changed.after,
                Effect::Refused(_) => return,
                Effect::Same => panic!("{key} is new"),
            }
        }
        panic!("an account has no bound");
    }
}
