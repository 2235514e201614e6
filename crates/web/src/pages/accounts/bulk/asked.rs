//! The change that the bar of the list asks for.

use rapport_domain::account::{Account, Patch, StatusChange};
use rapport_domain::bulk::{self, BulkChange};
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use serde_json::{Map, Value};

use crate::pages::account::field_text;
use crate::pages::kit::form::{As, Form};
use crate::pages::words::number::counted;
use crate::pages::words::when::date;

/// Which sheet of the bar was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Move,
    Channel,
    Field,
    Cadence,
    Snooze,
}

/// A change and the fields that ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub kind: Kind,
    pub change: BulkChange,
    pub fields: Vec<(&'static str, String)>,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Move, Self::Channel, Self::Field, Self::Cadence, Self::Snooze];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Channel => "channel",
            Self::Field => "field",
            Self::Cadence => "cadence",
            Self::Snooze => "snooze",
        }
    }

    fn parse(text: &str) -> Result<Self, Invalid> {
        let unknown = || Invalid::one("/change", "unknown_choice", "must be one of the buttons");
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(unknown)
    }

    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Move => &["status", "note"],
            Self::Channel => &["promo_code"],
            Self::Field => &["key", "value"],
            Self::Cadence => &["cadence_days"],
            Self::Snooze => &["snoozed_until"],
        }
    }
}

/// The option that takes accounts off their channel. A promo code has no such character.
pub const NO_CHANNEL: &str = "*";

impl Asked {
    pub fn read(form: &Form) -> Result<Self, Invalid> {
        let kind = Kind::parse(form.text("change"))?;
        let accounts = picked(form)?;
        let (members, note) = members(kind, form)?;
        let (patch, promo_code) = Patch::parse(&members)?;
        let fields = kind.fields().iter().map(|name| (*name, form.text(name).to_owned())).collect();
        Ok(Self { kind, change: BulkChange { accounts, patch, promo_code, note }, fields })
    }

    /// The change as a heading.
    pub fn heading(&self) -> String {
        let BulkChange { patch, promo_code, .. } = &self.change;
        match self.kind {
            Kind::Move => format!("Move to {}", patch.status.map_or("", |status| status.label())),
            Kind::Channel => promo_code.as_ref().map_or_else(
                || "Remove from their channel".to_owned(),
                |code| format!("Assign to the channel of {}", code.as_str()),
            ),
            Kind::Field if self.text("value").trim().is_empty() => {
                format!("Remove {}", self.text("key").trim())
            }
            Kind::Field => format!("Set {} to {}", self.text("key").trim(), self.text("value").trim()),
            Kind::Cadence => match patch.cadence_days.flatten() {
                Some(days) => format!("Set the cadence to {}", counted(days, "day", "days")),
                None => "Use the company’s cadence".to_owned(),
            },
            Kind::Snooze => match patch.snoozed_until.flatten() {
                Some(until) => format!("Snooze until {}", date(until)),
                None => "End the snooze".to_owned(),
            },
        }
    }

    /// What was done, after the number of accounts.
    pub fn done(&self) -> String {
        match (self.kind, self.change.patch.status) {
            (Kind::Move, Some(status)) => format!("moved to {}", status.label()),
            _ => "changed".to_owned(),
        }
    }

    /// The part of an account that the change is about, in words.
    pub fn part(&self, account: &Account) -> String {
        match self.kind {
            Kind::Move => account.status.label().to_owned(),
            Kind::Channel => match (&account.channel, &account.promo_code) {
                (Some(channel), Some(code)) => format!("{} ({})", channel.name, code.as_str()),
                (Some(channel), None) => channel.name.clone(),
                (None, _) => "none".to_owned(),
            },
            Kind::Field => match account.custom_fields.to_map().get(self.text("key").trim()) {
                Some(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                None => "none".to_owned(),
            },
            Kind::Cadence => match account.cadence_override {
                Some(days) => counted(days, "day", "days"),
                None => "company default".to_owned(),
            },
            Kind::Snooze => account.snoozed_until.map_or_else(|| "not snoozed".to_owned(), date),
        }
    }

    fn text(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// The ticked accounts, or all accounts of the page.
pub fn picked(form: &Form) -> Result<Vec<AccountId>, Invalid> {
    if form.is_ticked("all") {
        bulk::accounts(form.text("shown").split(' '))
    } else {
        bulk::accounts(form.all("account"))
    }
}

/// The members of the edit, and the note of a move.
fn members(kind: Kind, form: &Form) -> Result<(Map<String, Value>, Option<String>), Invalid> {
    let one = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    let members = match kind {
        Kind::Move => {
            let change = StatusChange::parse(&form.members(&[("status", As::Text), ("note", As::Text)]))?;
            return Ok((one("status", change.status.as_str().into()), change.note));
        }
        Kind::Channel => match form.given("promo_code") {
            None => return Err(Invalid::one("/promo_code", "required", "is required")),
            Some(NO_CHANNEL) => one("promo_code", Value::Null),
            Some(code) => one("promo_code", code.into()),
        },
        Kind::Field => {
            let key = form.given("key").ok_or_else(|| Invalid::one("/key", "required", "is required"))?;
            let value = match form.given("value") {
                Some(text) => {
                    let malformed = |fault: rapport_domain::invalid::Fault| {
                        Invalid::one("/value", fault.code, fault.detail)
                    };
                    field_text::read(text).map_err(malformed)?
                }
                None => Value::Null,
            };
            one("custom_fields", Value::Object(one(key, value)))
        }
        Kind::Cadence => form.members(&[("cadence_days", As::ClearableNumber)]),
        Kind::Snooze => form.members(&[("snoozed_until", As::Clearable)]),
    };
    Ok((members, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Asked, Invalid> {
        let account = AccountId::from_bytes([1; 16]);
        Asked::read(&Form::of_query(Some(&format!("account={account}&{query}"))))
    }

    #[test]
    fn each_sheet_asks_for_its_change() {
        let table = [
            ("change=move&status=lost&note=Closed", "Move to Lost"),
            ("change=channel&promo_code=FAIR", "Assign to the channel of FAIR"),
            ("change=channel&promo_code=*", "Remove from their channel"),
            ("change=field&key=plan&value=pro", "Set plan to pro"),
            ("change=field&key=plan&value=", "Remove plan"),
            ("change=cadence&cadence_days=7", "Set the cadence to 7 days"),
            ("change=cadence&cadence_days=", "Use the company’s cadence"),
            ("change=snooze&snoozed_until=2027-01-31", "Snooze until 31 Jan 2027"),
            ("change=snooze&snoozed_until=", "End the snooze"),
        ];
        for (query, heading) in table {
            let asked = read(query).unwrap_or_else(|invalid| panic!("{query}: {invalid:?}"));
            assert_eq!(asked.heading(), heading);
            // The preview sends the same again.
            let again = asked.fields.iter().map(|(name, value)| format!("&{name}={value}"));
            let again = again.collect::<Vec<_>>().concat();
            let again = read(&format!("change={}{again}", asked.kind.as_str())).expect("the same");
            assert_eq!(again, asked);
        }
    }

    #[test]
    fn a_sheet_without_what_it_needs_is_refused() {
        let table = [
            ("change=move", "/status"),
            ("change=channel", "/promo_code"),
            ("change=field&value=pro", "/key"),
            ("change=field&key=plan&value=%7B", "/value"),
            ("change=cadence&cadence_days=0", "/cadence_days"),
            ("change=snooze&snoozed_until=soon", "/snoozed_until"),
            ("change=colour", "/change"),
            ("", "/change"),
        ];
        for (query, pointer) in table {
            let refused = read(query).expect_err(query);
            assert_eq!(refused.0[0].pointer, pointer, "{query}");
        }
        let nobody = Asked::read(&Form::of_query(Some("change=snooze&snoozed_until=")));
        assert_eq!(nobody.expect_err("nobody").0[0].pointer, "/account");
    }
}
