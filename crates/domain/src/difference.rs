//! The changes that an import or a person makes to many accounts, field by field: shown before, reverted by an undo.

use serde_json::{Map, Value, json};

use crate::account::{Account, Mover};
use crate::channel::{ChannelRef, PromoCode};
use crate::company::Settings;
use crate::custom_fields::FieldChange;
use crate::id::ChannelId;
use crate::member::Email;
use crate::money::{Amount, Currency, Money};
use crate::pipeline::{Move, Status, Trigger};
use crate::time::Time;

const NAME: &str = "name";
const STATUS: &str = "status";
/// Not a field of its own: it changes with the status.
const TRACKED_SINCE: &str = "tracked_since";
/// Not a field of its own either: a person who moves an account ends it.
const HOLD: &str = "campaign_hold";
const VALUE: &str = "captured_value";
const ATTRIBUTION: &str = "promo_code";
const CADENCE: &str = "cadence_days";
const LAST_CONTACT: &str = "last_contact_at";
/// Not a field of its own: it changes with the last contact.
const IMPORTED_CONTACT: &str = "imported_contact_at";
/// Restored with the field that they belong to.
const HIDDEN: [&str; 3] = [TRACKED_SINCE, HOLD, IMPORTED_CONTACT];
const SNOOZED: &str = "snoozed_until";
/// The addresses that were added, which aren't part of the account itself.
const EMAILS: &str = "emails";
const FIELD_PREFIX: &str = "custom_fields.";

/// The value of each changed field before and after; null if there was none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences(Map<String, Value>);

/// One changed field, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Shown {
    pub field: String,
    pub before: Value,
    pub after: Value,
}

/// The result of reverting fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reverted {
    pub restored: usize,
    /// Fields that someone has changed since.
    pub kept: usize,
    pub renamed: bool,
    pub moved: Option<Move>,
}

impl Differences {
    pub fn between(before: &Account, after: &Account) -> Self {
        let mut pairs = Map::new();
        let mut note = |field: &str, before: Value, after: Value| {
            if before != after {
                pairs.insert(field.to_owned(), json!([before, after]));
            }
        };
        for field in
            [NAME, STATUS, VALUE, ATTRIBUTION, LAST_CONTACT, CADENCE, SNOOZED].into_iter().chain(HIDDEN)
        {
            note(field, fact(before, field), fact(after, field));
        }
        if before.custom_fields != after.custom_fields {
            let (mut old, new) = (before.custom_fields.to_map(), after.custom_fields.to_map());
            for (key, value) in new {
                note(&format!("{FIELD_PREFIX}{key}"), old.remove(&key).unwrap_or_default(), value);
            }
            for (key, value) in old {
                note(&format!("{FIELD_PREFIX}{key}"), value, Value::Null);
            }
        }
        Self(pairs)
    }

    /// These differences, and the email addresses that the account got.
    #[must_use]
    pub fn with_emails(mut self, added: &[Email]) -> Self {
        if !added.is_empty() {
            let added: Vec<&str> = added.iter().map(Email::as_str).collect();
            self.0.insert(EMAILS.to_owned(), json!([null, added]));
        }
        self
    }

    /// The email addresses that the account got.
    pub fn emails(&self) -> Vec<Email> {
        let added = self.0.get(EMAILS).and_then(|pair| pair[1].as_array()).into_iter().flatten();
        added.filter_map(|text| Email::parse(text.as_str()?).ok()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn to_stored(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    pub fn from_stored(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// Combines these with later ones: the first value before, the last value after.
    #[must_use]
    pub fn then(mut self, later: Self) -> Self {
        let emails: Vec<Email> = [self.emails(), later.emails()].concat();
        for (field, pair) in later.0 {
            let before = self.0.get(&field).map_or_else(|| pair[0].clone(), |first| first[0].clone());
            if before == pair[1] {
                self.0.remove(&field);
            } else {
                self.0.insert(field, json!([before, pair[1]]));
            }
        }
        self.with_emails(&emails)
    }

    /// The differences as shown to people.
    pub fn shown(&self) -> Vec<Shown> {
        let plain = |field: &str, value: &Value| match field {
            ATTRIBUTION => value.get("code").unwrap_or(value).clone(),
            LAST_CONTACT => json!(value.as_i64().map(Time::from_micros)),
            _ => value.clone(),
        };
        let fields = self.0.iter().filter(|(field, _)| !HIDDEN.contains(&field.as_str()));
        fields
            .map(|(field, pair)| Shown {
                field: field.clone(),
                before: plain(field, &pair[0]),
                after: plain(field, &pair[1]),
            })
            .collect()
    }

    /// Restores each field to its value before the change, unless it was changed again since. The email
    /// addresses are up to the caller.
    pub fn revert(
        &self,
        account: &mut Account,
        channels: &[ChannelRef],
        settings: &Settings,
        now: Time,
    ) -> Reverted {
        let mut reverted = Reverted::default();
        for (field, pair) in &self.0 {
            let (before, after) = (&pair[0], &pair[1]);
            let is_apart = HIDDEN.contains(&field.as_str()) || field == EMAILS;
            if is_apart || fact(account, field) == *before {
                continue;
            }
            let from = account.status;
            let is_ours = fact(account, field) == *after;
            if !is_ours || self.restore(account, field, before, (channels, settings, now)).is_none() {
                reverted.kept += 1;
                continue;
            }
            reverted.restored += 1;
            reverted.renamed |= field == NAME;
            if account.status != from {
                reverted.moved = Some(Move { from, to: account.status });
            }
        }
        self.forget_contact(account);
        if reverted.restored > 0 {
            account.updated_at = now;
        }
        reverted
    }

    /// The clock must not fall back to a contact of this import any more, whatever it shows now.
    fn forget_contact(&self, account: &mut Account) {
        if let Some(pair) = self.0.get(IMPORTED_CONTACT)
            && fact(account, IMPORTED_CONTACT) == pair[1]
        {
            account.imported_contact_at = pair[0].as_i64().map(Time::from_micros);
        }
    }

    /// Returns `None` if it can't be restored because its channel is gone.
    fn restore(
        &self,
        account: &mut Account,
        field: &str,
        before: &Value,
        (channels, settings, now): (&[ChannelRef], &Settings, Time),
    ) -> Option<()> {
        match field {
            NAME => before.as_str()?.clone_into(&mut account.name),
            STATUS => {
                let status = Status::parse(before.as_str()?).ok()?;
                account.trigger(Trigger::Set(status), Mover::Record, settings, now);
                let since = self.0.get(TRACKED_SINCE).and_then(|pair| pair[0].as_i64());
                if account.tracked_since.is_some()
                    && let Some(since) = since
                {
                    account.tracked_since = Some(Time::from_micros(since));
                }
                if let Some(held) = self.0.get(HOLD).and_then(|pair| pair[0].as_bool()) {
                    account.campaign_hold = held;
                }
            }
            VALUE => {
                account.value = match before.as_str() {
                    Some(text) => Some(money(text)?),
                    None => None,
                };
            }
            ATTRIBUTION => attribute(account, before, channels)?,
            CADENCE => account.cadence_override = before.as_i64(),
            LAST_CONTACT => account.last_contact_at = before.as_i64().map(Time::from_micros),
            SNOOZED => {
                account.snoozed_until = match before.as_str() {
                    Some(text) => Some(text.parse().ok()?),
                    None => None,
                };
            }
            field => {
                let key = field.strip_prefix(FIELD_PREFIX)?;
                let change = Map::from_iter([(key.to_owned(), before.clone())]);
                let change = FieldChange::parse(&change).ok()?;
                account.custom_fields = account.custom_fields.merged(&change).ok()?;
            }
        }
        Some(())
    }
}

/// The value of a field of an account.
fn fact(account: &Account, field: &str) -> Value {
    match field {
        NAME => json!(account.name),
        STATUS => json!(account.status),
        TRACKED_SINCE => json!(account.tracked_since.map(Time::as_micros)),
        HOLD => json!(account.campaign_hold),
        VALUE => {
            let shown = |money: Money| format!("{} {}", money.amount_text(), money.currency.code());
            json!(account.value.map(shown))
        }
        ATTRIBUTION => match &account.channel {
            Some(channel) => json!({
                "code": account.promo_code.as_ref().map(PromoCode::as_str),
                "channel": channel.id,
                "acquired_at": account.acquired_at.map(Time::as_micros),
            }),
            None => Value::Null,
        },
        CADENCE => json!(account.cadence_override),
        LAST_CONTACT => json!(account.last_contact_at.map(Time::as_micros)),
        IMPORTED_CONTACT => json!(account.imported_contact_at.map(Time::as_micros)),
        SNOOZED => json!(account.snoozed_until.map(|date| date.to_string())),
        field => {
            let key = field.strip_prefix(FIELD_PREFIX).unwrap_or(field);
            account.custom_fields.to_map().remove(key).unwrap_or_default()
        }
    }
}

fn money(text: &str) -> Option<Money> {
    let (amount, currency) = text.split_once(' ')?;
    Some(Money { amount: Amount::parse(amount).ok()?, currency: Currency::parse(currency).ok()? })
}

fn attribute(account: &mut Account, stored: &Value, channels: &[ChannelRef]) -> Option<()> {
    if stored.is_null() {
        (account.channel, account.promo_code, account.acquired_at) = (None, None, None);
        return Some(());
    }
    let id: ChannelId = stored["channel"].as_str()?.parse().ok()?;
    account.channel = Some(channels.iter().find(|channel| channel.id == id)?.clone());
    account.promo_code = stored["code"].as_str().map(|code| PromoCode::from_stored(code.to_owned()));
    account.acquired_at = stored["acquired_at"].as_i64().map(Time::from_micros);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Attribution;
    use crate::id::AccountId;
    use crate::import::cell::Cadence;
    use crate::import::date::Moment;
    use crate::import::row::Row;
    use crate::money::Capture;
    use jiff::civil::Date;

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);
    const LATER: Time = Time::from_micros(1_800_000_000_000_000);

    fn channel(number: u8) -> ChannelRef {
        ChannelRef { id: ChannelId::from_bytes([number; 16]), name: format!("Channel {number}") }
    }

    fn channels() -> [ChannelRef; 2] {
        [channel(1), channel(2)]
    }

    fn attribution(number: u8) -> Attribution {
        Attribution { code: PromoCode::parse(&format!("C{number}")).unwrap(), channel: channel(number) }
    }

    fn before() -> Account {
        let mut account = Account::new(AccountId::from_bytes([1; 16]), "Acme".into(), Status::Customer, NOW);
        account.attribute(&attribution(1), NOW, &mut crate::account::Change::default());
        let fields = json!({"plan": "pro", "seats": 12, "old": {"a": [1]}});
        let fields = FieldChange::parse(fields.as_object().unwrap()).unwrap();
        account.custom_fields = account.custom_fields.merged(&fields).unwrap();
        account
    }

    fn row() -> Row {
        Row {
            name: Some("Acme Inc".into()),
            status: Some(Status::Lost),
            capture: Capture::from_parts(Some(Amount::parse("12.3456").unwrap()), None),
            cadence: Some(Cadence::Days(7)),
            last_contact: Some(Moment::Exact(NOW)),
            snoozed_until: Some(Moment::Date(Date::constant(2027, 1, 31))),
            fields: vec![
                ("plan".into(), "max".into()),
                ("seats".into(), "13".into()),
                ("new".into(), "x".into()),
            ],
            ..Row::default()
        }
    }

    fn changed(before: &Account) -> Account {
        let mut account = before.clone();
        row().update(&mut account, Some(&attribution(2)), &Settings::default(), LATER).unwrap();
        account
    }

    /// Without the time of the last change, since an undo is a change too.
    fn timeless(account: &Account) -> Account {
        Account { updated_at: NOW, ..account.clone() }
    }

    fn revert(differences: &Differences, account: &mut Account) -> Reverted {
        let kept = Differences::from_stored(&differences.to_stored());
        assert_eq!(kept, *differences, "stored and read back unchanged");
        kept.revert(account, &channels(), &Settings::default(), LATER)
    }

    #[test]
    fn changed_fields_are_restored_exactly() {
        let old = before();
        let mut account = changed(&old);
        let differences = Differences::between(&old, &account);
        let reverted = revert(&differences, &mut account);
        assert_eq!(timeless(&account), timeless(&old));
        assert_eq!((reverted.restored, reverted.kept, reverted.renamed), (10, 0, true));
        assert_eq!(reverted.moved, Some(Move { from: Status::Lost, to: Status::Customer }));
        assert_eq!(account.updated_at, LATER);
    }

    #[test]
    fn a_person_who_moves_an_account_ends_its_hold_and_the_undo_restores_it() {
        let old = Account { campaign_hold: true, ..before() };
        let mut account = old.clone();
        account.trigger(Trigger::Set(Status::Lost), Mover::Operator, &Settings::default(), LATER);
        assert!(!account.campaign_hold);
        let differences = Differences::between(&old, &account);
        assert_eq!(differences.shown().len(), 1, "only the status is shown");
        revert(&differences, &mut account);
        assert_eq!(timeless(&account), timeless(&old));
    }

    #[test]
    fn fields_edited_since_are_kept() {
        let old = before();
        let mut account = changed(&old);
        let differences = Differences::between(&old, &account);
        account.name = "Acme GmbH".into();
        account.status = Status::Prospect;
        account.value = None;
        let reverted = revert(&differences, &mut account);
        assert_eq!((reverted.restored, reverted.kept, reverted.moved), (7, 2, None));
        assert_eq!((account.name.as_str(), account.status), ("Acme GmbH", Status::Prospect));
        assert_eq!(account.custom_fields, old.custom_fields);
        assert_eq!(account.value, None, "someone else had already reset it");
    }

    #[test]
    fn a_contact_logged_since_stays_but_the_imported_one_is_forgotten() {
        let old = Account { last_contact_at: Some(NOW.plus_days(-9)), ..before() };
        let mut account = changed(&old);
        assert_eq!((account.last_contact_at, account.imported_contact_at), (Some(NOW), Some(NOW)));
        let differences = Differences::between(&old, &account);
        account.contact(NOW.plus_days(1), LATER);
        let reverted = revert(&differences, &mut account);
        assert_eq!((reverted.restored, reverted.kept), (9, 1));
        assert_eq!((account.last_contact_at, account.imported_contact_at), (Some(NOW.plus_days(1)), None));
        // A later import named another one, which stays.
        let mut again = changed(&old);
        again.import_contact(NOW.plus_days(2), LATER);
        revert(&differences, &mut again);
        assert_eq!(again.imported_contact_at, Some(NOW.plus_days(2)));
    }

    #[test]
    fn a_channel_that_is_gone_is_not_restored() {
        let old = before();
        let mut account = changed(&old);
        let differences = Differences::between(&old, &account);
        let reverted = differences.revert(&mut account, &[], &Settings::default(), LATER);
        assert_eq!((reverted.restored, reverted.kept), (9, 1));
        assert_eq!(account.channel, Some(channel(2)));
    }

    #[test]
    fn several_changes_are_one() {
        let old = before();
        let first = changed(&old);
        let mut last = first.clone();
        let back = Row { name: Some("Acme".into()), cadence: Some(Cadence::Days(9)), ..Row::default() };
        back.update(&mut last, None, &Settings::default(), LATER).unwrap();
        let together = Differences::between(&old, &first).then(Differences::between(&first, &last));
        assert_eq!(together, Differences::between(&old, &last));
        assert!(Differences::between(&old, &old).is_empty());
    }

    #[test]
    fn differences_are_shown_to_people() {
        let old = before();
        let shown = Differences::between(&old, &changed(&old)).shown();
        let find = |field: &str| {
            let found = shown.iter().find(|shown| shown.field == field).unwrap_or_else(|| panic!("{field}"));
            (found.before.clone(), found.after.clone())
        };
        assert_eq!(find("status"), (json!("customer"), json!("lost")));
        assert_eq!(find("captured_value"), (Value::Null, json!("12.3456 USD")));
        assert_eq!(find("promo_code"), (json!("C1"), json!("C2")));
        assert_eq!(find("custom_fields.seats"), (json!(12), json!(13)));
        assert_eq!(find("custom_fields.new"), (Value::Null, json!("x")));
        assert_eq!(find("last_contact_at"), (Value::Null, json!(NOW)));
        assert_eq!(find("snoozed_until"), (Value::Null, json!("2027-01-31")));
        assert_eq!(shown.len(), 10, "tracked_since and imported_contact_at are not shown");
    }

    #[test]
    fn added_addresses_are_kept_together_and_left_to_the_caller() {
        let email = |text: &str| Email::parse(text).unwrap();
        let old = before();
        let first = Differences::default().with_emails(&[email("a@x.de")]);
        let both = first.then(Differences::between(&old, &changed(&old)).with_emails(&[email("b@x.de")]));
        assert_eq!(both.emails(), [email("a@x.de"), email("b@x.de")]);
        let later = both.then(Differences::default());
        assert_eq!(later.emails().len(), 2);
        let mut account = changed(&old);
        assert_eq!(revert(&later, &mut account).kept, 0);
        assert_eq!(timeless(&account), timeless(&old));
        let shown = later.shown();
        let emails = shown.iter().find(|shown| shown.field == "emails").unwrap();
        assert_eq!((&emails.before, &emails.after), (&Value::Null, &json!(["a@x.de", "b@x.de"])));
    }
}
