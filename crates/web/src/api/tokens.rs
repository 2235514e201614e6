//! API tokens: list, create and revoke them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::credential::{CreateToken, NewCredential, RevokeToken};
use rapport_app::read::credential;
use rapport_domain::credential::{Credential, TokenRequest};
use rapport_domain::id::{CredentialId, PersonId};
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::{Api, KEYS, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b't';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_tokens, create_token)).routes(routes!(revoke_token))
}

/// An API token without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Token)]
struct TokenView {
    #[schema(value_type = String, example = "crd_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: CredentialId,
    #[schema(example = "CRM sync")]
    name: String,
    role: Role,
    /// The visible part of the token.
    #[schema(example = "rap_…7d4e")]
    prefix: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Time>,
    /// When it stops working. Null if it has no end.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// The id of the member whose token it is. Null if it belongs to the company.
    #[schema(required = true, value_type = Option<String>, example = "per_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    owner: Option<PersonId>,
    /// Its own limit, in requests per second. Null if only the server's limit applies.
    #[schema(required = true, example = 20)]
    rate_limit: Option<i64>,
}

impl From<Credential> for TokenView {
    fn from(token: Credential) -> Self {
        let Credential { id, name, role, shown, created_at, last_used_at, expires_at, person, .. } = token;
        let (owner, rate_limit) = (person, token.rate_limit);
        Self { id, name, role, prefix: shown, created_at, last_used_at, expires_at, owner, rate_limit }
    }
}

/// A new API token.
#[derive(Serialize, ToSchema)]
struct NewToken {
    /// The token itself. It is shown only once.
    #[schema(example = "rap_0000000000000g7d4e…")]
    token: String,
    #[serde(flatten)]
    view: TokenView,
}

/// List API tokens
///
/// Expired ones included. Only an owner sees tokens with the owner role and tokens of owners. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/tokens/",
    tag = "Tokens",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of tokens, without their secrets.", body = Page<TokenView>)),
    security(("token" = ["keys"])),
)]
async fn list_tokens(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(|text| read_cursor(LIST, text).map(CredentialId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, KEYS, parameters.finish(), |snapshot, viewer, ()| {
        credential::tokens(snapshot, viewer)
    });
    let tokens: Vec<Credential> = found.await?.reply.into_iter().map(|token| token.credential).collect();
    let cursor = |id: CredentialId| write_cursor(LIST, id.as_bytes());
    let Page { items, next_cursor } = Page::cut(tokens, |token| token.id, after.as_ref(), limit, cursor);
    let items: Vec<TokenView> = items.into_iter().map(TokenView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Create an API token
///
/// Returns the token, once. Its role defaults to `admin` and cannot be above its creator's, nor above that of the member
/// whose token it is. Such a token acts with at most that member's current role, and ends when the member is removed or
/// deactivated. Requires the admin role; only an owner can create a token for an owner.
#[utoipa::path(
    post,
    path = "/api/tokens/",
    tag = "Tokens",
    request_body = requests::TokenCreate,
    responses((status = 201, description = "The token.", body = NewToken)),
    security(("token" = ["keys"])),
)]
async fn create_token(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, request) = call.parse(TokenRequest::parse);
    let render = |NewCredential { credential, text }| {
        json::render(StatusCode::CREATED, &NewToken { token: text, view: credential.into() }).with_secret()
    };
    api.act(&caller, request.map(CreateToken), render).await
}

/// Revoke an API token
///
/// The token stops working immediately. Requires the admin role; only an owner can revoke a token with the owner role or
/// a token of an owner.
#[utoipa::path(
    delete,
    path = "/api/tokens/{id}/",
    tag = "Tokens",
    params(("id" = String, Path, description = "The token's id.")),
    responses((status = 204, description = "Revoked.")),
    security(("token" = ["keys"])),
)]
async fn revoke_token(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<CredentialId>,
) -> Result<Response, Problem> {
    api.write(&caller, id.map(RevokeToken)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
