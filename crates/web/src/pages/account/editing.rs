//! Edits an account's details, custom fields and email addresses.

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
use super::{before, field_text, path_of, was};
use crate::pages::WORK;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;

const DETAILS: [(&str, As); 5] = [
    ("name", As::Text),
    ("imported_id", As::Clearable),
    ("captured_value", As::Clearable),
    ("captured_value_currency", As::Text),
    ("promo_code", As::Clearable),
];

pub async fn details(action: Action<AccountId>) -> Result<Response, Refusal> {
    let form = &action.form;
    let mut members = form.members(&DETAILS);
    // A name can be changed but not removed.
    members.entry("name").or_insert_with(|| Value::from(""));
    // Unchanged fields are left out, because someone else may have changed them meanwhile.
    members.retain(|name, _| form.text(name).trim() != form.text(&was(name)));
    let put = |page: &mut AccountPage, draft| {
        page.edit = Edit::Details;
        page.forms.details = draft;
    };
    action.run(patch(action.id, &members), put).await?;
    action.done(&path_of(action.id), "Details saved.")
}

fn patch(id: AccountId, members: &Map<String, Value>) -> Result<PatchAccount, Invalid> {
    let (patch, promo_code) = Patch::parse(members)?;
    Ok(PatchAccount { id, patch, promo_code })
}

/// Adds or changes a custom field.
pub async fn put_field(action: Action<AccountId>) -> Result<Response, Refusal> {
    let known = before(&action, WORK).await?.reply.custom_fields.to_map();
    let (key, is_new) = (action.form.text("key").trim(), action.form.is_ticked("new"));
    let members = field(&action.form, |key| is_new && known.contains_key(key));
    let put = |page: &mut AccountPage, draft| {
        page.edit = Edit::Field(if is_new { String::new() } else { key.to_owned() });
        page.forms.field = draft;
    };
    action.run(members.and_then(|members| patch(action.id, &members)), put).await?;
    let done = if is_new { "added" } else { "saved" };
    action.done(&path_of(action.id), format!("Field {} {done}.", short(key)))
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

pub async fn remove_field(action: Action<AccountId>) -> Result<Response, Refusal> {
    let key = action.form.text("key");
    let command = patch(action.id, &one_field(key, json!(null)));
    action.run(command, banner::<AccountPage>).await?;
    action.done(&path_of(action.id), format!("Field {} removed.", short(key)))
}

pub async fn add_address(action: Action<AccountId>) -> Result<Response, Refusal> {
    let command = address(&action.form).map(|address| AddAddress { account: action.id, address });
    let (address, _) =
        action.run(command, |page: &mut AccountPage, draft| page.forms.address = draft).await?;
    let flash = Flash::good(format!("Mail to and from {} is now logged here.", short(address.as_str())));
    let fields = vec![("address".to_owned(), address.as_str().to_owned())];
    let path = path_of(action.id);
    action.done(&path, flash.undo(format!("{path}/addresses/remove"), fields))
}

pub async fn remove_address(action: Action<AccountId>) -> Result<Response, Refusal> {
    let command = address(&action.form).map(|address| RemoveAddress { account: action.id, address });
    action.run(command, banner::<AccountPage>).await?;
    let shown = action.form.text("address").to_owned();
    let flash =
        Flash::good(format!("{} removed. Mail to and from it is no longer logged here.", short(&shown)));
    let path = path_of(action.id);
    action.done(&path, flash.undo(format!("{path}/addresses"), vec![("address".to_owned(), shown)]))
}

fn address(form: &Form) -> Result<Email, Invalid> {
    parse_address(&form.members(&[("address", As::Text)]))
}
