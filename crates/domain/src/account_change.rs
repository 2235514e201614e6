//! What `account.updated` reports: the members in which an account differs from what it was.
//!
//! A move isn't reported here, because `account.status_changed` reports it. Neither is what follows from activity and
//! contact (first and last seen, last contact), nor `updated_at`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::account::Account;
use crate::channel::PromoCode;

/// A member before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChangedMember)]
pub struct Changed {
    /// Null if there was none. Of `custom_fields`, only the keys that changed.
    #[schema(value_type = serde_json::Value)]
    pub old: Value,
    /// Null if there is none now. Of `custom_fields`, only the keys that changed.
    #[schema(value_type = serde_json::Value)]
    pub new: Value,
}

/// The changed members by name. Empty if nothing changed that is reported.
pub type Changes = BTreeMap<&'static str, Changed>;

pub fn between(before: &Account, after: &Account) -> Changes {
    let mut changes = Changes::new();
    let mut note = |name: &'static str, old: Value, new: Value| {
        if old != new {
            changes.insert(name, Changed { old, new });
        }
    };
    let date = |account: &Account| account.snoozed_until.map(|date| date.to_string());
    let channel = |account: &Account| serde_json::to_value(&account.channel).unwrap_or_default();
    let time = |account: &Account| serde_json::to_value(account.acquired_at).unwrap_or_default();
    let code = |account: &Account| account.promo_code.as_ref().map(PromoCode::as_str).map(str::to_owned);
    note("name", before.name.as_str().into(), after.name.as_str().into());
    note("imported_id", before.imported_id.clone().into(), after.imported_id.clone().into());
    note("captured_value", amount(before).into(), amount(after).into());
    note("captured_value_currency", currency(before).into(), currency(after).into());
    note("promo_code", code(before).into(), code(after).into());
    note("channel", channel(before), channel(after));
    note("acquired_at", time(before), time(after));
    note("cadence_days", before.cadence_override.into(), after.cadence_override.into());
    note("snoozed_until", date(before).into(), date(after).into());
    if before.custom_fields != after.custom_fields {
        let (old, new) = (before.custom_fields.to_map(), after.custom_fields.to_map());
        note("custom_fields", only_changed(&old, &new), only_changed(&new, &old));
    }
    changes
}

fn amount(account: &Account) -> Option<String> {
    account.value.map(|money| money.amount_text())
}

fn currency(account: &Account) -> Option<&'static str> {
    account.value.map(|money| money.currency.code())
}

/// The fields whose value isn't the same in `other`.
fn only_changed(fields: &Map<String, Value>, other: &Map<String, Value>) -> Value {
    let changed = fields.iter().filter(|(key, value)| other.get(*key) != Some(*value));
    Value::Object(changed.map(|(key, value)| (key.clone(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::ChannelRef;
    use crate::custom_fields::CustomFields;
    use crate::id::{AccountId, ChannelId};
    use crate::money::{Amount, Currency, Money};
    use crate::pipeline::Status;
    use crate::time::Time;
    use serde_json::json;

    fn account() -> Account {
        let (id, now) = (AccountId::from_bytes([1; 16]), Time::from_micros(0));
        let mut account = Account::new(id, "Nordlys".to_owned(), Status::InTrial, now);
        account.custom_fields = CustomFields::from_stored(r#"{"a":1,"b":"x","c":[true]}"#.to_owned());
        account
    }

    fn changes(edit: impl FnOnce(&mut Account)) -> Value {
        let mut after = account();
        edit(&mut after);
        serde_json::to_value(between(&account(), &after)).unwrap()
    }

    #[test]
    fn each_changed_member_has_its_old_and_new_value() {
        let money = Money { amount: Amount::from_json(&json!("12.50")).unwrap(), currency: Currency::USD };
        let channel = ChannelRef { id: ChannelId::from_bytes([3; 16]), name: "Fair".to_owned() };
        let shown = json!({"id": channel.id, "name": "Fair"});
        let table = [
            (changes(|_| {}), json!({})),
            (
                changes(|account| account.name = "Nordlys AS".to_owned()),
                json!({"name": {"old": "Nordlys", "new": "Nordlys AS"}}),
            ),
            (
                changes(|account| account.imported_id = Some("crm-1".to_owned())),
                json!({"imported_id": {"old": null, "new": "crm-1"}}),
            ),
            (
                changes(|account| account.value = Some(money)),
                json!({
                    "captured_value": {"old": null, "new": money.amount_text()},
                    "captured_value_currency": {"old": null, "new": "USD"},
                }),
            ),
            (
                changes(|account| {
                    account.channel = Some(channel.clone());
                    account.acquired_at = Some(Time::from_micros(0));
                }),
                json!({
                    "channel": {"old": null, "new": shown},
                    "acquired_at": {"old": null, "new": "1970-01-01T00:00:00Z"},
                }),
            ),
            (
                changes(|account| {
                    account.cadence_override = Some(7);
                    account.snoozed_until = Some("2026-05-12".parse().unwrap());
                }),
                json!({
                    "cadence_days": {"old": null, "new": 7}, "snoozed_until": {"old": null, "new": "2026-05-12"},
                }),
            ),
            (
                changes(|account| {
                    let fields = r#"{"a":1,"b":"y","d":2}"#;
                    account.custom_fields = CustomFields::from_stored(fields.to_owned());
                }),
                json!({"custom_fields": {"old": {"b": "x", "c": [true]}, "new": {"b": "y", "d": 2}}}),
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn moves_activity_and_contact_are_reported_elsewhere() {
        let at = Time::from_micros(1);
        let found = changes(|account| {
            account.status = Status::Customer;
            account.see(at);
            account.contact(at, at);
        });
        assert_eq!(found, json!({}));
    }
}
