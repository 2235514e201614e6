//! Lookup by domain: what a home page says of its organisation, and an account made of it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::lookup::{CreateFromLookup, FetchError};
use rapport_app::reading::page;
use rapport_app::{App, Error};
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use rapport_domain::lookup::{Preview, Request, Site};
use rapport_store::account_site;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::accounts::render;
use crate::api::call::{Call, Caller};
use crate::api::{Api, MEMBER, schema};
use crate::json;
use crate::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(look_up))
}

/// Look up a domain
///
/// Reads the home page of a domain over HTTPS and answers what it says: title, site name, description and a
/// schema.org Organization. Nothing is stored. With `create` an account is made of it instead, with source
/// `lookup`; it fires `account.created`. `name`, `status` and `custom_fields` go with `create` and go before what
/// was found. A domain from which an account was made already shows that account, and makes no second one.
#[utoipa::path(
    post,
    path = "/api/lookup/",
    tag = "Accounts",
    request_body = LookupRequest,
    responses(
        (status = 200, description = "What the page says.", body = LookupPreview),
        (status = 201, description = "The account made of it.", body = schema::Account),
        (status = 409, description = "An account was made from this domain already.", body = schema::Problem),
    ),
    security(("token" = [])),
)]
async fn look_up(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    // Nobody has us call elsewhere who may not call here.
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

/// Reads the home page of a site. Whoever asks was verified before.
pub async fn preview(app: &App, site: &Site) -> Result<Preview, Error> {
    let fetched = app.services().home_page(&site.page).await.map_err(refused)?;
    let read = tokio::task::spawn_blocking(move || {
        let page = page::read(&fetched.body, fetched.content_type.as_deref(), &fetched.at);
        (fetched.at, page)
    });
    let (at, page) =
        read.await.map_err(|error| Error::Internal(format!("a page could not be read: {error}")))?;
    Ok(Preview::new(site, at.as_str().to_owned(), page))
}

async fn show(api: &Api, caller: &Caller, preview: Preview) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Reply {
        #[serde(flatten)]
        preview: Preview,
        account_id: Option<AccountId>,
    }
    let domain = preview.domain.clone();
    let known = api.read(caller, MEMBER, Ok(domain), |snapshot, site| account_site::find(snapshot, &site));
    let account_id = known.await?.reply;
    Ok(json::respond(StatusCode::OK, &Reply { preview, account_id }))
}

fn refused(error: FetchError) -> Error {
    if let Some(fault) = error.fault() {
        return Invalid::one("/domain", fault.code, fault.detail).into();
    }
    tracing::warn!(%error, "a home page could not be fetched");
    Error::Busy
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; nothing makes one")]
struct LookupRequest {
    /// A domain, or the address of one of its pages.
    #[schema(example = "nordlys.example")]
    domain: String,
    /// Make an account of what is found.
    create: Option<bool>,
    /// With `create`: instead of the name found.
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// With `create`: `prospect` unless said.
    status: Option<schema::Status>,
    /// With `create`: beside `website` and `description`, or instead of them.
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<String>,
}

/// What a home page says of its organisation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; nothing makes one")]
struct LookupPreview {
    /// As one domain is told from another: without `www.`.
    #[schema(example = "nordlys.example")]
    domain: String,
    /// Where the page was found, after redirects.
    #[schema(example = "https://www.nordlys.example/")]
    url: String,
    /// What an account made of it is called.
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
    /// The account that was made from this domain.
    #[schema(required = true)]
    account_id: Option<String>,
}

/// A schema.org Organization.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes; nothing makes one")]
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
#[expect(dead_code, reason = "it describes; nothing makes one")]
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
