//! Lookup by domain: reads what a home page says about its organisation and can create an account from it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::lookup::CreateFromLookup;
use rapport_app::read::account::of_site;
use rapport_domain::id::AccountId;
use rapport_domain::lookup::{Preview, Request};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::accounts::render;
use crate::api::call::{Call, Caller};
use crate::api::{Api, MEMBER, schema};
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
    request_body = LookupRequest,
    responses(
        (status = 200, description = "What was found on the page.", body = LookupPreview),
        (status = 201, description = "The new account.", body = schema::Account),
        (status = 409, description = "An account was already created from this domain.", body = schema::Problem),
    ),
    security(("token" = [])),
)]
async fn look_up(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    // Verify the caller before sending a request to another host on their behalf.
    api.verify(&caller, MEMBER).await?;
    let Request { site, create } = request?;
    let preview = preview(api.app(), &site).await.map_err(|error| Problem::of(error, caller.scheme))?;
    match create {
        Some(create) => {
            let created = api.write(&caller, Ok(CreateFromLookup { preview, create })).await?;
            Ok(render(StatusCode::CREATED, &created))
        }
        None => show(&api, &caller, preview).await,
    }
}

async fn show(api: &Api, caller: &Caller, preview: Preview) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Reply {
        #[serde(flatten)]
        preview: Preview,
        account_id: Option<AccountId>,
    }
    let domain = preview.domain.clone();
    let known = api.read(caller, MEMBER, Ok(domain), |snapshot, _, site| of_site(snapshot, &site));
    let account_id = known.await?.reply;
    Ok(json::respond(StatusCode::OK, &Reply { preview, account_id }))
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the API and is never constructed")]
struct LookupRequest {
    /// A domain, or the address of one of its pages.
    #[schema(example = "nordlys.example")]
    domain: String,
    /// Create an account from what is found.
    create: Option<bool>,
    /// With `create`: replaces the name that was found.
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// With `create`: defaults to `prospect`.
    status: Option<schema::Status>,
    /// With `create`: added to `website` and `description`, or replaces them.
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<String>,
}

/// What a home page says about its organisation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the API and is never constructed")]
struct LookupPreview {
    /// The domain without `www.`.
    #[schema(example = "nordlys.example")]
    domain: String,
    /// Where the page was found, after redirects.
    #[schema(example = "https://www.nordlys.example/")]
    url: String,
    /// The name that an account created from it would have.
    #[schema(example = "Nordlys AS")]
    name: String,
    #[schema(required = true)]
    title: Option<String>,
    #[schema(required = true)]
    site_name: Option<String>,
    #[schema(required = true)]
    description: Option<String>,
    /// The address of a picture.
    #[schema(required = true)]
    logo: Option<String>,
    #[schema(required = true)]
    organization: Option<LookupOrganization>,
    /// The account that was created from this domain.
    #[schema(required = true)]
    account_id: Option<String>,
}

/// A schema.org Organization.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the API and is never constructed")]
struct LookupOrganization {
    #[schema(required = true)]
    name: Option<String>,
    #[schema(required = true)]
    legal_name: Option<String>,
    #[schema(required = true)]
    description: Option<String>,
    #[schema(required = true)]
    url: Option<String>,
    #[schema(required = true)]
    logo: Option<String>,
    #[schema(required = true)]
    email: Option<String>,
    #[schema(required = true)]
    telephone: Option<String>,
    #[schema(required = true)]
    address: Option<LookupAddress>,
    same_as: Vec<String>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the API and is never constructed")]
struct LookupAddress {
    #[schema(required = true)]
    street: Option<String>,
    #[schema(required = true)]
    locality: Option<String>,
    #[schema(required = true)]
    region: Option<String>,
    #[schema(required = true)]
    postal_code: Option<String>,
    #[schema(required = true)]
    country: Option<String>,
}
