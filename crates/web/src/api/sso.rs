//! The company's single sign-on. For owners only.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::Answer;
use rapport_app::read::sso::{Domain, Shown, settings};
use rapport_app::sso::settings::{PutSso, RemoveSso, test};
use rapport_domain::id::PersonId;
use rapport_domain::member::Role;
use rapport_domain::sso::{Change, Mode, callback_path};
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, PlainCall};
use crate::api::{Api, SSO, requests};
use crate::edge::json;
use crate::edge::problem::Problem;

const WHAT: &str = "single sign-on";

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(get_sso, put_sso, remove_sso)).routes(routes!(test_sso))
}

/// The settings of single sign-on, without the client secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Sso)]
struct SsoView {
    mode: Mode,
    /// The URL that identifies the provider.
    #[schema(example = "https://login.acme.example")]
    issuer: String,
    #[schema(example = "rapport")]
    client_id: String,
    domains: Vec<DomainView>,
    /// The role of people who become members by logging in for the first time without an invitation.
    default_role: Role,
    /// The owner who can log in with a password even if single sign-on is required.
    #[schema(required = true, value_type = Option<String>, example = "per_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    break_glass_owner: Option<PersonId>,
    /// Where the provider sends people back to. Register it there.
    #[schema(example = "https://crm.acme.example/sso/acme/callback")]
    callback_url: String,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A domain whose people log in with the provider.
#[derive(Serialize, ToSchema)]
#[schema(as = SsoDomain)]
struct DomainView {
    #[schema(example = "acme.example")]
    domain: String,
    /// When the server's administrator confirmed that it is the company's. Until then it has no effect.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    confirmed_at: Option<Time>,
}

impl From<Domain> for DomainView {
    fn from(Domain { domain, confirmed_at }: Domain) -> Self {
        Self { domain: domain.as_str().to_owned(), confirmed_at }
    }
}

/// Get the settings of single sign-on
///
/// The client secret is never shown. Requires the owner role.
#[utoipa::path(
    get,
    path = "/api/settings/sso/",
    tag = "Settings",
    responses(
        (status = 200, description = "The settings.", body = SsoView),
        (status = 403, description = "The token's role must be `owner`."),
        (status = 404, description = "Single sign-on isn't set up."),
    ),
    security(("token" = ["sso"])),
)]
async fn get_sso(State(api): State<Api>, caller: Caller) -> Result<Response, Problem> {
    show(&api, &caller).await
}

/// Set up or change single sign-on
///
/// Replaces all settings; only the client secret is kept if you leave it out, unless the issuer changes. Modes other than
/// `off` need a domain that the server's administrator has confirmed. Requires the owner role.
#[utoipa::path(
    put,
    path = "/api/settings/sso/",
    tag = "Settings",
    request_body = requests::SsoPut,
    responses(
        (status = 200, description = "The settings.", body = SsoView),
        (status = 403, description = "The token's role must be `owner`."),
        (status = 409, description = "None of the domains is confirmed yet."),
    ),
    security(("token" = ["sso"])),
)]
async fn put_sso(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, change) = call.parse(Change::parse);
    api.write(&caller, change.map(PutSso)).await?;
    show(&api, &caller).await
}

/// Remove single sign-on
///
/// Everyone who logged in with it is logged out. Requires the owner role.
#[utoipa::path(
    delete,
    path = "/api/settings/sso/",
    tag = "Settings",
    responses(
        (status = 204, description = "Removed."),
        (status = 403, description = "The token's role must be `owner`."),
        (status = 404, description = "Single sign-on isn't set up."),
    ),
    security(("token" = ["sso"])),
)]
async fn remove_sso(State(api): State<Api>, caller: Caller) -> Result<Response, Problem> {
    api.write(&caller, Ok(RemoveSso)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The result of a test.
#[derive(Serialize, ToSchema)]
#[schema(as = SsoTest)]
struct TestView {
    works: bool,
    /// What is wrong, and what to do.
    #[schema(required = true)]
    problem: Option<String>,
}

/// Test the connection to the provider
///
/// Asks the provider how it is set up, and says what keeps us from working with it. Requires the owner role.
#[utoipa::path(
    post,
    path = "/api/settings/sso/test/",
    tag = "Settings",
    responses(
        (status = 200, description = "Whether it works.", body = TestView),
        (status = 403, description = "The token's role must be `owner`."),
        (status = 404, description = "Single sign-on isn't set up."),
    ),
    security(("token" = ["sso"])),
)]
async fn test_sso(State(api): State<Api>, call: PlainCall) -> Result<Response, Problem> {
    let (caller, asked) = call.command(());
    api.verify(&caller, SSO).await?;
    asked?;
    let tested =
        test(api.app(), &caller.access()).await.map_err(|error| Problem::of(error, caller.scheme))?;
    let problem = tested.err().map(|error| error.to_string());
    Ok(json::respond(StatusCode::OK, &TestView { works: problem.is_none(), problem }))
}

async fn show(api: &Api, caller: &Caller) -> Result<Response, Problem> {
    let found = api.read(caller, SSO, Ok(()), |snapshot, _, ()| settings(snapshot));
    let Answer { reply, company, .. } = found.await?;
    let Shown { sso, domains } = reply.ok_or_else(|| Problem::not_found(WHAT))?;
    let path = callback_path(company.slug.as_str());
    let view = SsoView {
        mode: sso.settings.mode,
        issuer: sso.settings.issuer.as_str().to_owned(),
        client_id: sso.settings.client_id,
        domains: domains.into_iter().map(DomainView::from).collect(),
        default_role: sso.settings.role,
        break_glass_owner: sso.settings.break_glass,
        callback_url: format!("{}{path}", api.app().services().outside().base_url),
        updated_at: sso.updated_at,
    };
    Ok(json::respond(StatusCode::OK, &view))
}
