//! Resetting a member's second factors.

use axum::extract::State;
use axum::response::Response;
use rapport_app::second_factor::ResetFactors;
use rapport_domain::id::PersonId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::api::call::{Id, PlainCall};
use crate::edge::json::Rendered;
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(reset_factors))
}

/// Reset a member's second factors
///
/// Removes their passkeys, their authenticator app and their recovery codes, and logs them out everywhere. They are told
/// by mail. Works for a login that is only for this company; for others, the member or the server's administrator does it.
#[utoipa::path(
    post,
    path = "/api/members/{id}/factor-reset/",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    responses(
        (status = 204, description = "The second factors are removed."),
        (status = 403, description = "The token's role must be `owner`."),
        (status = 409, description = "The member has no second factor, or the login isn't only for this company."),
    ),
    security(("token" = ["factors"])),
)]
async fn reset_factors(
    State(api): State<Api>,
    Id(id): Id<PersonId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|person| plain.map(|()| ResetFactors(person)));
    api.act(&caller, command, |_| Rendered::NO_CONTENT).await
}
