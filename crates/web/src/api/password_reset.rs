//! Password resets: anyone can request one, the link goes out by mail, and anyone with the link can use it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::Access;
use rapport_app::password_reset::{OpenReset, RequestReset, SendReset};
use rapport_domain::id::PersonId;
use rapport_domain::password_reset::{Confirmation, parse_email};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Id, OpenCall, PlainCall};
use crate::api::hashing::refused;
use crate::api::{Api, requests};
use crate::edge::json;
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(request_password_reset))
        .routes(routes!(confirm_password_reset))
        .routes(routes!(send_password_reset))
}

/// Request a password reset
///
/// Needs no credential. Always returns 202, so that it does not reveal whether the address belongs to anyone. The link
/// works once and expires after an hour.
#[utoipa::path(
    post,
    path = "/api/password-reset/",
    tag = "Password",
    request_body = requests::PasswordResetRequest,
    responses((status = 202, description = "If the address belongs to someone, a mail is on its way.")),
    security(()),
)]
async fn request_password_reset(State(api): State<Api>, call: OpenCall) -> Result<Response, Problem> {
    let origin = call.origin;
    let email = call.parse(parse_email)?;
    let noted = api.app().write_from(&Access::NO_COMPANY, Some(origin), RequestReset(email)).await;
    noted.map_err(refused)?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Set a new password
///
/// Needs no credential other than the token. Afterwards, this token and all other reset tokens of the person are
/// invalid. A password that is easy to guess is refused, also for people who know the person's address, name or company.
#[utoipa::path(
    post,
    path = "/api/password-reset/confirm/",
    tag = "Password",
    request_body = requests::PasswordResetConfirm,
    responses((status = 204, description = "The password was changed.")),
    security(()),
)]
async fn confirm_password_reset(State(api): State<Api>, call: OpenCall) -> Result<Response, Problem> {
    let origin = call.origin;
    let Confirmation { token, password } = call.parse(Confirmation::parse)?;
    // A hash occupies a core for a while, so make sure first that the reset exists.
    let open = OpenReset::look(api.app(), &token).await.map_err(refused)?;
    let access = open.access();
    let command = api.slowly(move |services| open.choose(services, &password)).await?;
    api.app().write_from(&access, Some(origin), command).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A password reset that was sent to a member.
#[derive(Serialize, ToSchema)]
struct SentReset {
    /// Whether the link was mailed to the member.
    mailed: bool,
    /// The link to pass on if the server has no mail configured. It is shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

/// Send a member a password reset
///
/// The link is mailed. If the server has no mail configured, the response contains the link once, unless the member
/// also belongs to other companies. Requires the admin role; only an owner can do this for an owner.
#[utoipa::path(
    post,
    path = "/api/members/{id}/password-reset/",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    responses(
        (status = 200, description = "The reset was sent.", body = SentReset),
        (status = 409, description = "The member is deactivated, or the link can only be sent by mail."),
    ),
    security(("token" = ["members"])),
)]
async fn send_password_reset(
    State(api): State<Api>,
    Id(id): Id<PersonId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|person| plain.map(|()| SendReset(person)));
    let render = |link: Option<String>| {
        json::render(StatusCode::OK, &SentReset { mailed: link.is_none(), link }).with_secret()
    };
    api.act(&caller, command, render).await
}
