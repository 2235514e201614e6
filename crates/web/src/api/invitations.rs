//! Invitations: create, list, resend and revoke them. Anyone with the link can accept one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::Error;
use rapport_app::invitation::{Invite, Invited, Offer, ResendInvitation, RevokeInvitation};
use rapport_app::read::members::invitations;
use rapport_domain::id::InvitationId;
use rapport_domain::invitation::{Acceptance, Invitation, Request};
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id, OpenCall, PlainCall};
use crate::api::hashing::refused;
use crate::api::members::MemberView;
use crate::api::{Api, MEMBERS, requests};
use crate::edge::guessing::Attempt;
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'i';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_invitations, create_invitation))
        .routes(routes!(revoke_invitation))
        .routes(routes!(resend_invitation))
        .routes(routes!(accept_invitation))
}

/// An open invitation.
#[derive(Serialize, ToSchema)]
#[schema(as = Invitation)]
struct InvitationView {
    #[schema(value_type = String, example = "inv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: InvitationId,
    #[schema(example = "ana@acme.example")]
    email: String,
    role: Role,
    /// Who sent the invitation: a member, or the name of a token.
    #[schema(required = true)]
    invited_by: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
    expired: bool,
}

impl InvitationView {
    fn new(invitation: Invitation, now: Time) -> Self {
        let expired = invitation.is_expired(now);
        let Invitation { id, email, role, invited_by, created_at, expires_at, .. } = invitation;
        Self { id, email: email.as_str().to_owned(), role, invited_by, created_at, expires_at, expired }
    }
}

/// An invitation that was just created or resent.
#[derive(Serialize, ToSchema)]
pub(super) struct NewInvitation {
    #[serde(flatten)]
    view: InvitationView,
    /// Whether the link was mailed to the address.
    mailed: bool,
    /// The link to pass on if the server has no mail configured. It is shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

impl NewInvitation {
    fn new(Invited { invitation, link }: Invited, now: Time) -> Self {
        Self { view: InvitationView::new(invitation, now), mailed: link.is_none(), link }
    }

    /// The response with it, which may contain the link.
    fn rendering(status: StatusCode, now: Time) -> impl Fn(Invited) -> Rendered + Send + Sync + 'static {
        move |made| json::render(status, &Self::new(made, now)).with_secret()
    }
}

/// List open invitations
///
/// Newest first, expired ones included. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/invitations/",
    tag = "Invitations",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of invitations.", body = Page<InvitationView>)),
    security(("token" = ["members"])),
)]
async fn list_invitations(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(|text| read_cursor(LIST, text).map(InvitationId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, MEMBERS, parameters.finish(), |snapshot, _, ()| invitations(snapshot));
    let found = found.await?;
    let cursor = |id: InvitationId| write_cursor(LIST, id.as_bytes());
    let Page { items, next_cursor } = Page::cut(found.reply, |item| item.id, after.as_ref(), limit, cursor);
    let items: Vec<InvitationView> =
        items.into_iter().map(|item| InvitationView::new(item, found.now)).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Invite someone
///
/// The link works once and expires after seven days. It is mailed; if the server has no mail configured, the response
/// contains it once. Requires the admin role; only an owner can invite an owner.
#[utoipa::path(
    post,
    path = "/api/invitations/",
    tag = "Invitations",
    request_body = requests::InvitationCreate,
    responses(
        (status = 201, description = "The invitation.", body = NewInvitation),
        (status = 409, description = "This person is already a member or already invited."),
    ),
    security(("token" = ["members"])),
)]
async fn create_invitation(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    invite(&api, call).await
}

/// Invites the person that a request names.
pub(super) async fn invite(api: &Api, call: Call) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    let command = request.map(|Request { email, name, role }| Invite { email, name, role });
    api.act(&caller, command, NewInvitation::rendering(StatusCode::CREATED, api.app().now())).await
}

/// Resend an invitation
///
/// Sends a new link, which expires after seven days. The old link stops working. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/invitations/{id}/resend/",
    tag = "Invitations",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses((status = 200, description = "The invitation.", body = NewInvitation)),
    security(("token" = ["members"])),
)]
async fn resend_invitation(
    State(api): State<Api>,
    Id(id): Id<InvitationId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|id| plain.map(|()| ResendInvitation(id)));
    api.act(&caller, command, NewInvitation::rendering(StatusCode::OK, api.app().now())).await
}

/// Revoke an invitation
///
/// Its link stops working. Requires the admin role.
#[utoipa::path(
    delete,
    path = "/api/invitations/{id}/",
    tag = "Invitations",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses((status = 204, description = "Revoked.")),
    security(("token" = ["members"])),
)]
async fn revoke_invitation(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<InvitationId>,
) -> Result<Response, Problem> {
    api.write(&caller, id.map(RevokeInvitation)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A new member and the company they joined.
#[derive(Serialize, ToSchema)]
struct Joined {
    /// The company's name.
    company: String,
    member: MemberView,
}

/// Accept an invitation
///
/// Needs no credential other than the token. A link that came by mail proves the address: a person who already has a
/// login with it joins with its password, others get one. With a link that was handed over, `login` says which of both
/// is meant, and a new login works for this company only. Where single sign-on is required, people join by logging in with
/// it instead.
#[utoipa::path(
    post,
    path = "/api/invitations/accept/",
    tag = "Invitations",
    request_body = requests::InvitationAccept,
    responses(
        (status = 201, description = "The member.", body = Joined),
        (status = 403, description = "The company requires single sign-on."),
        (status = 409, description = "This person is already a member."),
    ),
    security(()),
)]
async fn accept_invitation(State(api): State<Api>, call: OpenCall) -> Result<Response, Problem> {
    let origin = call.origin;
    let acceptance = call.parse(Acceptance::parse)?;
    let offer = Offer::look(api.app(), &acceptance.token).await.map_err(refused)?;
    let (access, company, email) = (offer.access(), offer.company.clone(), offer.email.clone());
    let attempt = Attempt { email: &email, address: origin.address, browser: None };
    let guess =
        offer.guesses(acceptance.login).then(|| api.0.limiter.guessing.admit(attempt, api.app().now()));
    let guess = guess.transpose().map_err(Problem::too_many_requests)?;
    let accept = api.slowly(move |services| Ok(offer.answer(services, acceptance))).await?;
    if let Some(guess) = guess {
        guess.settle(accept.as_ref().is_err_and(Error::is_wrong_password));
    }
    let accept = accept.map_err(refused)?;
    let joined = api.app().write_from(&access, Some(origin), accept).await.map_err(refused)?;
    Ok(json::respond(StatusCode::CREATED, &Joined { company, member: joined.into() }))
}
