//! Logs contact, snoozes an account, and changes its cadence.

use axum::response::Response;
use jiff::civil::Date;
use rapport_app::Answer;
use rapport_app::account::PatchAccount;
use rapport_app::contact::RecordContact;
use rapport_domain::account::{Account, Patch};
use rapport_domain::contact::NewContact;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use serde_json::{Map, Value};

use super::page::AccountPage;
use super::words::{short, take_local_time};
use super::{back, before, path_of};
use crate::pages::WORK;
use crate::pages::kit::action::Action;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;
use crate::pages::words::number::counted;
use crate::pages::words::when::date;

pub async fn log_contact(action: Action<AccountId>) -> Result<Response, Refusal> {
    let Answer { company, now, .. } = before(&action, WORK).await?;
    let mut members =
        action.form.members(&[("kind", As::Text), ("note", As::Text), ("occurred_at", As::Text)]);
    take_local_time(&mut members, "occurred_at", &company.settings.time_zone);
    let contact =
        NewContact::parse(&members, now).map(|contact| RecordContact { account: action.id, contact });
    action.run(contact, |page: &mut AccountPage, draft| page.forms.contact = draft).await?;
    let after = before(&action, WORK).await?;
    let text = format!("Contact with {} logged{}.", short(&after.reply.name), next(&after));
    action.done(&back(&action), text)
}

/// Says when the next contact is due, as the end of a sentence.
pub(super) fn next(answer: &Answer<Account>) -> String {
    let settings = &answer.company.settings;
    let due = answer.reply.due(settings, answer.now);
    match due.due_at {
        Some(at) if due.overdue => {
            format!("; the next one was due {}", date(at.day_in(&settings.time_zone).date()))
        }
        Some(at) => format!("; the next one is due {}", date(at.day_in(&settings.time_zone).date())),
        None => String::new(),
    }
}

/// Snoozes an account until a date, or ends its snooze if there is no date.
pub async fn snooze(action: Action<AccountId>) -> Result<Response, Refusal> {
    let was = before(&action, WORK).await?.reply.snoozed_until;
    // A preset button overrides the date field beside it.
    let chosen = action.form.given("preset").or_else(|| action.form.given("snoozed_until"));
    let command = if chosen.is_none() && !action.form.is_ticked("end") {
        Err(Invalid::one("/snoozed_until", "required", "is required"))
    } else {
        edit(action.id, "snoozed_until", chosen.map_or(Value::Null, Value::from))
    };
    let snoozed = action.run(command, |page: &mut AccountPage, draft| page.forms.snooze = draft).await?.reply;
    let name = short(&snoozed.name);
    let text = match snoozed.snoozed_until {
        Some(until) => format!("{name} snoozed until {}.", date(until)),
        None => format!("{name} is no longer snoozed."),
    };
    let (undo, fields) = (format!("{}/snooze", path_of(action.id)), snooze_again(was, &action.form));
    action.done(&back(&action), Flash::good(text).undo(undo, fields))
}

/// The fields of the form that restores the previous snooze.
fn snooze_again(until: Option<Date>, form: &Form) -> Vec<(String, String)> {
    let field = match until {
        Some(date) => ("snoozed_until".to_owned(), date.to_string()),
        None => ("end".to_owned(), "yes".to_owned()),
    };
    vec![field, ("next".to_owned(), form.text("next").to_owned())]
}

/// Sets the account's own cadence, or goes back to the company's.
pub async fn change_cadence(action: Action<AccountId>) -> Result<Response, Refusal> {
    let had = before(&action, WORK).await?.reply.cadence_override;
    let members = action.form.members(&[("cadence_days", As::ClearableNumber)]);
    let is_default = action.form.is_ticked("company");
    let days = if is_default { Value::Null } else { members["cadence_days"].clone() };
    let command = edit(action.id, "cadence_days", days);
    let done = action.run(command, |page: &mut AccountPage, draft| page.forms.cadence = draft).await?;
    let text = if let Some(days) = done.reply.cadence_override {
        format!("Contact is now due every {}.", counted(days, "day", "days"))
    } else {
        let days = counted(done.company.settings.cadence_days, "day", "days");
        format!("Contact is now due every {days}, the company default.")
    };
    let fields = vec![("cadence_days".to_owned(), had.map_or_else(String::new, |days| days.to_string()))];
    let path = path_of(action.id);
    action.done(&path, Flash::good(text).undo(format!("{path}/cadence"), fields))
}

/// A patch of a single member.
fn edit(id: AccountId, member: &str, value: Value) -> Result<PatchAccount, Invalid> {
    let members: Map<String, Value> = [(member.to_owned(), value)].into_iter().collect();
    let (patch, promo_code) = Patch::parse(&members)?;
    Ok(PatchAccount { id, patch, promo_code })
}
