//! Logs contact, snoozes an account, and changes its cadence.

use axum::extract::{Path, State};
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
use super::{account_id, back, before, path_of, run};
use crate::pages::Pages;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::words::number::counted;
use crate::pages::words::when::date;

pub async fn log_contact(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let Answer { company, now, .. } = before(&pages, &visitor, id).await?;
    let mut members = form.members(&[("kind", As::Text), ("note", As::Text), ("occurred_at", As::Text)]);
    take_local_time(&mut members, "occurred_at", &company.settings.time_zone);
    let contact = NewContact::parse(&members, now).map(|contact| RecordContact { account: id, contact });
    match run(&pages, &visitor, &form, contact).await {
        Ok(_) => {
            let after = before(&pages, &visitor, id).await?;
            let text = format!("Contact with {} logged{}.", short(&after.reply.name), next(&after));
            Ok(pages.done(&back(&form, id), Flash::good(text)))
        }
        Err(error) => {
            let put = |page: &mut AccountPage, draft| page.forms.contact = draft;
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
}

/// Says when the next contact is due, as the end of a sentence.
fn next(answer: &Answer<Account>) -> String {
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
pub async fn snooze(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let account = before(&pages, &visitor, id).await?.reply;
    // A preset button overrides the date field beside it.
    let chosen = form.given("preset").or_else(|| form.given("snoozed_until"));
    let command = if chosen.is_none() && !form.is_ticked("end") {
        Err(Invalid::one("/snoozed_until", "required", "is required"))
    } else {
        edit(id, "snoozed_until", chosen.map_or(Value::Null, Value::from))
    };
    match run(&pages, &visitor, &form, command).await {
        Ok(Answer { reply, .. }) => {
            let name = short(&reply.name);
            let text = match reply.snoozed_until {
                Some(until) => format!("{name} snoozed until {}.", date(until)),
                None => format!("{name} is no longer snoozed."),
            };
            let fields = snooze_again(account.snoozed_until, &form);
            let undo = format!("{}/snooze", path_of(id));
            Ok(pages.done(&back(&form, id), Flash::good(text).undo(undo, fields)))
        }
        Err(error) => {
            let put = |page: &mut AccountPage, draft| page.forms.snooze = draft;
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
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
pub async fn change_cadence(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let had = before(&pages, &visitor, id).await?.reply.cadence_override;
    let members = form.members(&[("cadence_days", As::ClearableNumber)]);
    let days = if form.is_ticked("company") { Value::Null } else { members["cadence_days"].clone() };
    match run(&pages, &visitor, &form, edit(id, "cadence_days", days)).await {
        Ok(Answer { reply, company, .. }) => {
            let text = if let Some(days) = reply.cadence_override {
                format!("Contact is now due every {}.", counted(days, "day", "days"))
            } else {
                let days = counted(company.settings.cadence_days, "day", "days");
                format!("Contact is now due every {days}, the company default.")
            };
            let fields =
                vec![("cadence_days".to_owned(), had.map_or_else(String::new, |days| days.to_string()))];
            let undo = format!("{}/cadence", path_of(id));
            Ok(pages.done(&path_of(id), Flash::good(text).undo(undo, fields)))
        }
        Err(error) => {
            let put = |page: &mut AccountPage, draft| page.forms.cadence = draft;
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
}

/// A patch of a single member.
fn edit(id: AccountId, member: &str, value: Value) -> Result<PatchAccount, Invalid> {
    let members: Map<String, Value> = [(member.to_owned(), value)].into_iter().collect();
    let (patch, promo_code) = Patch::parse(&members)?;
    Ok(PatchAccount { id, patch, promo_code })
}
