//! Edits an account's details, custom fields and email addresses.

use axum::extract::{Path, State};
use axum::response::Response;
use rapport_app::account::PatchAccount;
use rapport_app::account_address::{AddAddress, RemoveAddress};
use rapport_domain::account::Patch;
use rapport_domain::conversation::parse_address;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use rapport_domain::member::Email;
use serde_json::{Map, Value, json};

use super::page::{AccountPage, Edit};
use super::words::short;
use super::{account_id, before, field_text, path_of, run, was};
use crate::pages::Pages;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

const DETAILS: [(&str, As); 5] = [
    ("name", As::Text),
    ("imported_id", As::Clearable),
    ("captured_value", As::Clearable),
    ("captured_value_currency", As::Text),
    ("promo_code", As::Clearable),
];

pub async fn details(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let mut members = form.members(&DETAILS);
    // A name can be changed but not removed.
    members.entry("name").or_insert_with(|| Value::from(""));
    // Unchanged fields are left out, because someone else may have changed them meanwhile.
    members.retain(|name, _| form.text(name).trim() != form.text(&was(name)));
    match run(&pages, &visitor, &form, patch(id, &members)).await {
        Ok(_) => Ok(pages.done(&path_of(id), Flash::good("Details saved."))),
        Err(error) => {
            let put = |page: &mut AccountPage, draft| {
                page.edit = Edit::Details;
                page.forms.details = draft;
            };
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
}

fn patch(id: AccountId, members: &Map<String, Value>) -> Result<PatchAccount, Invalid> {
    let (patch, promo_code) = Patch::parse(members)?;
    Ok(PatchAccount { id, patch, promo_code })
}

/// Adds or changes a custom field.
pub async fn put_field(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let known = before(&pages, &visitor, id).await?.reply.custom_fields.to_map();
    let (key, is_new) = (form.text("key").trim(), form.is_ticked("new"));
    let command = field(&form, |key| is_new && known.contains_key(key));
    match run(&pages, &visitor, &form, command.and_then(|members| patch(id, &members))).await {
        Ok(_) => {
            let done = if is_new { "added" } else { "saved" };
            Ok(pages.done(&path_of(id), Flash::good(format!("Field {} {done}.", short(key)))))
        }
        Err(error) => {
            let edit = Edit::Field(if is_new { String::new() } else { key.to_owned() });
            let put = |page: &mut AccountPage, draft| {
                page.edit = edit;
                page.forms.field = draft;
            };
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
}

/// The members of a patch that sets one custom field.
fn field(form: &Form, is_taken: impl Fn(&str) -> bool) -> Result<Map<String, Value>, Invalid> {
    let key = form.text("key").trim();
    let fault = |field: &str, code, detail: &str| Err(Invalid::one(format!("/{field}"), code, detail));
    if key.is_empty() {
        return fault("key", "required", "is required");
    }
    if is_taken(key) {
        return fault("key", "taken", "already exists; edit it instead");
    }
    let value = match field_text::read(form.text("value")) {
        Ok(value) => value,
        Err(found) => return fault("value", found.code, &found.detail),
    };
    Ok(one_field(key, value))
}

fn one_field(key: &str, value: Value) -> Map<String, Value> {
    let fields: Map<String, Value> = [(key.to_owned(), value)].into_iter().collect();
    [("custom_fields".to_owned(), Value::Object(fields))].into_iter().collect()
}

pub async fn remove_field(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let key = form.text("key");
    let removed = run(&pages, &visitor, &form, patch(id, &one_field(key, json!(null)))).await;
    removed.map_err(|error| visitor.refused(error))?;
    Ok(pages.done(&path_of(id), Flash::good(format!("Field {} removed.", short(key)))))
}

pub async fn add_address(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let command = address(&form).map(|address| AddAddress { account: id, address });
    match run(&pages, &visitor, &form, command).await {
        Ok((address, _)) => {
            let text = format!("Mail to and from {} is now logged here.", short(address.as_str()));
            let fields = vec![("address".to_owned(), address.as_str().to_owned())];
            let undo = format!("{}/addresses/remove", path_of(id));
            Ok(pages.done(&path_of(id), Flash::good(text).undo(undo, fields)))
        }
        Err(error) => {
            let put = |page: &mut AccountPage, draft| page.forms.address = draft;
            AccountPage::again(&pages, &visitor, id, (&form, error), put).await
        }
    }
}

pub async fn remove_address(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let command = address(&form).map(|address| RemoveAddress { account: id, address });
    let removed = run(&pages, &visitor, &form, command).await;
    removed.map_err(|error| visitor.refused(error))?;
    let shown = form.text("address").to_owned();
    let flash =
        Flash::good(format!("{} removed. Mail to and from it is no longer logged here.", short(&shown)));
    let undo = format!("{}/addresses", path_of(id));
    Ok(pages.done(&path_of(id), flash.undo(undo, vec![("address".to_owned(), shown)])))
}

fn address(form: &Form) -> Result<Email, Invalid> {
    parse_address(&form.members(&[("address", As::Text)]))
}
