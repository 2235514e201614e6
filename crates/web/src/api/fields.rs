//! The names of the custom fields a company uses, for choosing one to filter by.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::accounts::field_names;
use rapport_domain::custom_fields::MAX_KEY;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor_bytes, write_cursor};

const LIST: u8 = b'f';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_fields))
}

/// A custom field that the company's accounts have.
#[derive(Serialize, ToSchema)]
#[schema(as = Field)]
struct FieldView {
    #[schema(example = "plan")]
    name: String,
}

/// List custom fields
///
/// The names in use, sorted. To filter accounts by one, use `field.NAME=value`.
#[utoipa::path(
    get,
    path = "/api/fields/",
    tag = "Accounts",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of names.", body = Page<FieldView>)),
    security(("token" = ["read"])),
)]
async fn list_fields(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(read_place);
    let limit = parameters.limit();
    let found = api.read(&caller, READ, parameters.finish(), move |snapshot, _, ()| {
        field_names(snapshot, after.as_deref(), limit)
    });
    let names = found.await?.reply;
    let next = names.items.last().filter(|_| names.more);
    let next_cursor = next.map(|name| write_cursor(LIST, name.as_bytes()));
    let items: Vec<FieldView> = names.items.into_iter().map(|name| FieldView { name }).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn read_place(text: &str) -> Option<String> {
    let name = String::from_utf8(read_cursor_bytes(LIST, text)?).ok()?;
    MAX_KEY.check(&name).ok().map(|()| name)
}
