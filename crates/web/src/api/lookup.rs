//! Lookup by domain: reads what a home page says about its organisation and can create an account from it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::lookup::CreateFromLookup;
use rapport_app::read::account::of_site;
use rapport_domain::account::AccountView;
use rapport_domain::id::AccountId;
use rapport_domain::lookup::{Preview, Request};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::accounts::render;
use crate::api::call::{Call, Caller};
use crate::api::{Api, WORK, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::lookup::preview;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(look_up))
}

/// Look up a domain
///
/// Reads the home page of a domain over HTTPS and returns its title, site name, description and schema.org
/// Organization. Nothing is stored. With `create`, it creates an account from them with the source `lookup` and fires
/// `account.created`. `name`, `status` and `custom_fields` require `create` and take precedence over what was found.
/// If an account was already created from the domain, the preview shows it, and no second one is created.
#[utoipa::path(
    post,
    path = "/api/lookup/",
    tag = "Accounts",
    request_body = requests::LookupRequest,
    responses(
        (status = 200, description = "What was found on the page.", body = LookupPreview),
        (status = 201, description = "The new account.", body = AccountView),
        (status = 409, description = "An account was already created from this domain."),
    ),
    security(("token" = ["work"])),
)]
async fn look_up(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    // Verify the caller before sending a request to another host on their behalf.
    api.verify(&caller, WORK).await?;
    let Request { site, create } = request?;
    if create.is_some()
        && let Some(response) = api.recalled(&caller, WORK).await?
    {
        return Ok(response);
    }
    let preview = preview(api.app(), &site).await.map_err(|error| Problem::of(error, caller.scheme))?;
    match create {
        Some(create) => {
            let command = Ok(CreateFromLookup { preview, create });
            api.act(&caller, command, |created| render(StatusCode::CREATED, &created)).await
        }
        None => show(&api, &caller, preview).await,
    }
}

/// What was found, and the account that it is about.
#[derive(Serialize, ToSchema)]
struct LookupPreview {
    #[serde(flatten)]
    preview: Preview,
    /// The account that was created from this domain.
    #[schema(required = true, value_type = Option<String>)]
    account_id: Option<AccountId>,
}

async fn show(api: &Api, caller: &Caller, preview: Preview) -> Result<Response, Problem> {
    let domain = preview.domain.clone();
    let known = api.read(caller, WORK, Ok(domain), |snapshot, _, site| of_site(snapshot, &site));
    let account_id = known.await?.reply;
    Ok(json::respond(StatusCode::OK, &LookupPreview { preview, account_id }))
}
