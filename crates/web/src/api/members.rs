//! Members: the people in a company and their roles.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::read::members;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Member, Patch, Role};
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::invitations::{NewInvitation, invite};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'm';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_members, invite_member)).routes(routes!(
        get_member,
        change_member,
        remove_member
    ))
}

/// A person as a member of the company.
#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
pub(super) struct MemberView {
    #[schema(value_type = String, example = "per_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: PersonId,
    #[schema(example = "ana@acme.example")]
    email: String,
    name: String,
    role: Role,
    active: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    deactivated_at: Option<Time>,
}

impl From<Member> for MemberView {
    fn from(Member { person, email, name, role, created_at, deactivated_at }: Member) -> Self {
        let active = deactivated_at.is_none();
        Self { id: person, email: email.as_str().to_owned(), name, role, active, created_at, deactivated_at }
    }
}

/// List members
///
/// Deactivated ones included.
#[utoipa::path(
    get,
    path = "/api/members/",
    tag = "Members",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of members.", body = Page<MemberView>)),
    security(("token" = ["read"])),
)]
async fn list_members(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(read_place);
    let limit = parameters.limit();
    let found = api.read(&caller, READ, parameters.finish(), |snapshot, _, ()| members::all(snapshot));
    let members = found.await?.reply;
    let key = |member: &Member| (member.created_at, member.person);
    let Page { items, next_cursor } = Page::cut(members, key, after.as_ref(), limit, write_place);
    let items: Vec<MemberView> = items.into_iter().map(MemberView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn write_place((at, person): (Time, PersonId)) -> String {
    write_cursor(LIST, &[at.as_micros().to_be_bytes().as_slice(), person.as_bytes()].concat())
}

fn read_place(text: &str) -> Option<(Time, PersonId)> {
    let place: [u8; 24] = read_cursor(LIST, text)?;
    let (at, person) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), PersonId::from_bytes(person.try_into().ok()?)))
}

/// Invite someone
///
/// The same as creating an invitation: the person becomes a member by accepting it. Requires the admin role; only an
/// owner can invite an owner.
#[utoipa::path(
    post,
    path = "/api/members/",
    tag = "Members",
    request_body = requests::InvitationCreate,
    responses(
        (status = 201, description = "The invitation.", body = NewInvitation),
        (status = 409, description = "This person is already a member or already invited."),
    ),
    security(("token" = ["members"])),
)]
async fn invite_member(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    invite(&api, call).await
}

/// Get a member
///
/// With their role, and whether they are active.
#[utoipa::path(
    get,
    path = "/api/members/{id}/",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    responses((status = 200, description = "The member.", body = MemberView)),
    security(("token" = ["read"])),
)]
async fn get_member(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<PersonId>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, id, |snapshot, _, id| members::one(snapshot, id));
    let member = found.await?.reply.ok_or_else(|| Problem::not_found("member"))?;
    Ok(json::respond(StatusCode::OK, &MemberView::from(member)))
}

/// Change a member's role, deactivate or reactivate them
///
/// Requires the admin role; only an owner can change an owner. A company keeps at least one active owner.
#[utoipa::path(
    patch,
    path = "/api/members/{id}/",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    request_body = requests::MemberPatch,
    responses(
        (status = 200, description = "The member.", body = MemberView),
        (status = 409, description = "This is the last owner."),
    ),
    security(("token" = ["members"])),
)]
async fn change_member(
    State(api): State<Api>,
    Id(id): Id<PersonId>,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, patch) = call.parse(Patch::parse);
    let command =
        id.and_then(|person| patch.map(|Patch { role, active }| ChangeMember { person, role, active }));
    let changed = api.write(&caller, command).await?;
    Ok(json::respond(StatusCode::OK, &MemberView::from(changed)))
}

/// Remove a member
///
/// Requires the admin role; only an owner can remove an owner. A company keeps at least one active owner.
#[utoipa::path(
    delete,
    path = "/api/members/{id}/",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    responses(
        (status = 204, description = "Removed."),
        (status = 409, description = "This is the last owner."),
    ),
    security(("token" = ["members"])),
)]
async fn remove_member(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<PersonId>,
) -> Result<Response, Problem> {
    api.write(&caller, id.map(RemoveMember)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
