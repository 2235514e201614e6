//! Creates an account by hand.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use rapport_app::Error;
use rapport_app::account::CreateAccount;
use rapport_app::read::accounts::{Suggestions, suggestions};
use rapport_domain::account;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::Status;
use serde_json::{Map, Value};

use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};

/// Rows for custom fields in the form. More can be added on the account's page.
const FIELD_ROWS: usize = 4;

#[derive(Template)]
#[template(path = "accounts/new.html")]
struct NewPage {
    frame: Frame,
    draft: Draft,
    codes: Vec<String>,
    keys: Vec<String>,
}
framed!("accounts": NewPage);

impl NewPage {
    async fn load(pages: &Pages, visitor: &Visitor, draft: Draft) -> Result<Self, Refusal> {
        let found = pages.show(visitor, MEMBER, |snapshot, _| suggestions(snapshot));
        let Shown { frame, reply: Suggestions { codes, fields } } = found.await?;
        Ok(Self { frame, draft, codes, keys: fields })
    }
}

pub async fn show(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let draft = Draft::new([("status", Status::Prospect.as_str().to_owned())]);
    Ok(NewPage::load(&pages, &visitor, draft).await?.respond())
}

pub async fn create(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let created = match parse(&form) {
        Ok(create) => pages.submit(&visitor, &form, CreateAccount(create)).await,
        Err(invalid) => Err(invalid.into()),
    };
    match created {
        Ok(created) => {
            let account = created.reply;
            let flash = Flash::good(format!("“{}” created.", account.name));
            Ok(pages.done(&format!("/accounts/{}", account.id), flash))
        }
        Err(error) => {
            let draft =
                Draft::refused(&form, beside_its_field(error)).map_err(|error| visitor.refused(error))?;
            Ok(NewPage::load(&pages, &visitor, draft).await?.refuse())
        }
    }
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

/// Reports a taken imported_id as a fault of that field.
fn beside_its_field(error: Error) -> Error {
    match error {
        Error::Conflict { code: "imported_id_taken", detail } => {
            Invalid::one("/imported_id", "imported_id_taken", detail).into()
        }
        error => error,
    }
}
