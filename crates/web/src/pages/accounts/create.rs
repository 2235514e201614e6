//! Creates an account by hand.

use askama::Template;
use axum::response::Response;
use rapport_app::account::CreateAccount;
use rapport_app::read::accounts::{Suggestions, suggestions};
use rapport_domain::account;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;
use serde_json::{Map, Value};

use crate::pages::WORK;
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};

/// Rows for custom fields in the form. More can be added on the account's page.
const FIELD_ROWS: usize = 4;

#[derive(Template)]
#[template(path = "accounts/new.html")]
pub struct NewPage {
    frame: Frame,
    draft: Draft,
    codes: Vec<String>,
    keys: Vec<String>,
}
framed!("accounts": NewPage);

impl Load<()> for NewPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let found = visit.read(WORK, |snapshot, _| suggestions(snapshot));
        let Shown { frame, reply: Suggestions { codes, fields } } = found.await?;
        let draft = Draft::new([("status", Status::Prospect.as_str().to_owned())]);
        Ok(Self { frame, draft, codes, keys: fields })
    }
}

pub async fn create(action: Action) -> Result<Response, Refusal> {
    let command = parse(&action.form).map(CreateAccount);
    let created = action.run(command, |page: &mut NewPage, draft| page.draft = draft).await?.reply;
    action.done(&format!("/accounts/{}", created.id), format!("“{}” created.", created.name))
}

fn parse(form: &Form) -> Result<account::Create, Invalid> {
    let mut members = form.members(&[
        ("name", As::Text),
        ("imported_id", As::Text),
        ("status", As::Text),
        ("captured_value", As::Text),
        ("captured_value_currency", As::Text),
        ("promo_code", As::Text),
    ]);
    members.insert("custom_fields".to_owned(), Value::Object(typed_fields(form)?));
    account::Create::parse(&members)
}

/// Custom fields are pairs of fields in the form. Their values are strings.
fn typed_fields(form: &Form) -> Result<Map<String, Value>, Invalid> {
    let wrong = |code, detail: &str| Invalid::one("/custom_fields", code, detail);
    let mut fields = Map::new();
    for n in 1..=FIELD_ROWS {
        let (key, value) = (form.given(&format!("key{n}")), form.given(&format!("value{n}")));
        match (key, value) {
            (Some(key), Some(value)) => {
                if fields.insert(key.to_owned(), Value::from(value)).is_some() {
                    return Err(wrong("repeated", "each field can be used only once"));
                }
            }
            (None, Some(_)) => return Err(wrong("required", "every value needs a field name")),
            (Some(_) | None, None) => {}
        }
    }
    Ok(fields)
}
