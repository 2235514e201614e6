//! Channels and the promo codes that attribute accounts to them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::channel::{AddCode, ArchiveCode, CreateChannel, DeleteChannel, DeleteCode, RenameChannel};
use rapport_app::read::channel;
use rapport_domain::channel::{Channel, ChannelCode, PromoCode, parse_archived, parse_code, parse_name};
use rapport_domain::id::ChannelId;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, read_cursor_bytes, write_cursor};

const LIST: u8 = b'c';
const CODES: u8 = b'p';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_channels, create_channel))
        .routes(routes!(get_channel, rename_channel, delete_channel))
        .routes(routes!(list_codes, add_code))
        .routes(routes!(get_code, archive_code, delete_code))
}

/// A channel that promo codes attribute accounts to.
#[derive(Serialize, ToSchema)]
#[schema(as = Channel)]
struct ChannelView {
    #[schema(value_type = String, example = "chn_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: ChannelId,
    #[schema(example = "Spring fair")]
    name: String,
    codes: Vec<CodeView>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

/// A promo code of a channel.
#[derive(Serialize, ToSchema)]
#[schema(as = PromoCode)]
struct CodeView {
    #[schema(example = "SPRING_26")]
    code: String,
    /// An archived code no longer matches. Accounts it has attributed keep their channel.
    archived: bool,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    archived_at: Option<Time>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl ChannelView {
    fn new(Channel { id, name, created_at }: Channel, codes: Vec<CodeView>) -> Self {
        Self { id, name, codes, created_at }
    }
}

impl From<ChannelCode> for CodeView {
    fn from(ChannelCode { code, archived_at, created_at, .. }: ChannelCode) -> Self {
        Self { code: code.as_str().to_owned(), archived: archived_at.is_some(), archived_at, created_at }
    }
}

/// List channels
///
/// With their promo codes.
#[utoipa::path(
    get,
    path = "/api/channels/",
    tag = "Channels",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of channels with their codes.", body = Page<ChannelView>)),
    security(("token" = ["read"])),
)]
async fn list_channels(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(|text| read_cursor(LIST, text).map(ChannelId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, READ, parameters.finish(), |snapshot, _, ()| channel::all(snapshot));
    let (channels, mut codes) = found.await?.reply;
    codes.sort_by_key(|code| code.channel);
    let cursor = |id: ChannelId| write_cursor(LIST, id.as_bytes());
    let Page { items, next_cursor } =
        Page::cut(channels, |channel| channel.id, after.as_ref(), limit, cursor);
    let with_codes = |channel: Channel| {
        let first = codes.partition_point(|code| code.channel < channel.id);
        let own = codes[first..].iter().take_while(|code| code.channel == channel.id);
        let own = own.cloned().map(CodeView::from).collect();
        ChannelView::new(channel, own)
    };
    let items: Vec<ChannelView> = items.into_iter().map(with_codes).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Create a channel
///
/// Its name is unique in the company. Add promo codes to attribute accounts to it.
#[utoipa::path(
    post,
    path = "/api/channels/",
    tag = "Channels",
    request_body = requests::ChannelName,
    responses(
        (status = 201, description = "The channel. It has no codes yet.", body = ChannelView),
        (status = 409, description = "Another channel has this name."),
    ),
    security(("token" = ["channels"])),
)]
async fn create_channel(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, name) = call.parse(parse_name);
    let command = name.map(|name| CreateChannel { name });
    let render = |created| json::render(StatusCode::CREATED, &ChannelView::new(created, Vec::new()));
    api.act(&caller, command, render).await
}

/// Get a channel
///
/// With its promo codes.
#[utoipa::path(
    get,
    path = "/api/channels/{id}/",
    tag = "Channels",
    params(("id" = String, Path, description = "The channel's id.")),
    responses((status = 200, description = "The channel with its codes.", body = ChannelView)),
    security(("token" = ["read"])),
)]
async fn get_channel(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ChannelId>,
) -> Result<Response, Problem> {
    show(&api, &caller, id).await
}

/// Rename a channel
///
/// Accounts stay attributed to it.
#[utoipa::path(
    patch,
    path = "/api/channels/{id}/",
    tag = "Channels",
    params(("id" = String, Path, description = "The channel's id.")),
    request_body = requests::ChannelName,
    responses(
        (status = 200, description = "The channel with its codes.", body = ChannelView),
        (status = 409, description = "Another channel has this name."),
    ),
    security(("token" = ["channels"])),
)]
async fn rename_channel(
    State(api): State<Api>,
    Id(id): Id<ChannelId>,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, name) = call.parse(parse_name);
    let command = id.and_then(|id| name.map(|name| RenameChannel { id, name }));
    let renamed = api.write(&caller, command).await?;
    show(&api, &caller, Ok(renamed.id)).await
}

/// Delete a channel
///
/// Also deletes its codes. A channel with attributed accounts cannot be deleted; archive its codes instead.
#[utoipa::path(
    delete,
    path = "/api/channels/{id}/",
    tag = "Channels",
    params(("id" = String, Path, description = "The channel's id.")),
    responses(
        (status = 204, description = "Deleted."),
        (status = 409, description = "Accounts are attributed to it."),
    ),
    security(("token" = ["channels"])),
)]
async fn delete_channel(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ChannelId>,
) -> Result<Response, Problem> {
    api.write(&caller, id.map(DeleteChannel)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn show(api: &Api, caller: &Caller, id: Result<ChannelId, Problem>) -> Result<Response, Problem> {
    let found = api.read(caller, READ, id, |snapshot, _, id| channel::one(snapshot, id));
    let (found, codes) = found.await?.reply.ok_or_else(|| Problem::not_found("channel"))?;
    let codes = codes.into_iter().map(CodeView::from).collect();
    Ok(json::respond(StatusCode::OK, &ChannelView::new(found, codes)))
}

/// List a channel's promo codes
///
/// Archived codes included.
#[utoipa::path(
    get,
    path = "/api/channels/{id}/codes/",
    tag = "Channels",
    params(("id" = String, Path, description = "The channel's id."), requests::PageParameters),
    responses((status = 200, description = "A page of its codes.", body = Page<CodeView>)),
    security(("token" = ["read"])),
)]
async fn list_codes(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ChannelId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let after = parameters.cursor(read_code_place);
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, |snapshot, _, id| channel::one(snapshot, id));
    let (_, codes) = found.await?.reply.ok_or_else(|| Problem::not_found("channel"))?;
    let key = |code: &ChannelCode| (code.created_at, code.code.folded());
    let Page { items, next_cursor } = Page::cut(codes, key, after.as_ref(), limit, write_code_place);
    let items: Vec<CodeView> = items.into_iter().map(CodeView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn write_code_place((at, code): (Time, String)) -> String {
    write_cursor(CODES, &[at.as_micros().to_be_bytes().as_slice(), code.as_bytes()].concat())
}

fn read_code_place(text: &str) -> Option<(Time, String)> {
    let place = read_cursor_bytes(CODES, text)?;
    let (at, code) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), String::from_utf8(code.to_vec()).ok()?))
}

/// Add a promo code to a channel
///
/// A code has at most 64 letters, digits, hyphens and underscores and is unique in the company, ignoring case.
#[utoipa::path(
    post,
    path = "/api/channels/{id}/codes/",
    tag = "Channels",
    params(("id" = String, Path, description = "The channel's id.")),
    request_body = requests::CodeCreate,
    responses(
        (status = 201, description = "The code.", body = CodeView),
        (status = 409, description = "The company already has this code."),
    ),
    security(("token" = ["channels"])),
)]
async fn add_code(State(api): State<Api>, Id(id): Id<ChannelId>, call: Call) -> Result<Response, Problem> {
    let (caller, code) = call.parse(parse_code);
    let command = id.and_then(|channel| code.map(|code| AddCode { channel, code, archived: false }));
    api.act(&caller, command, |added| json::render(StatusCode::CREATED, &CodeView::from(added))).await
}

/// Get a promo code
///
/// In any spelling of upper and lower case.
#[utoipa::path(
    get,
    path = "/api/channels/{id}/codes/{code}/",
    tag = "Channels",
    params(
        ("id" = String, Path, description = "The channel's id."),
        ("code" = String, Path, description = "The code, in any case."),
    ),
    responses(
        (status = 200, description = "The code.", body = CodeView),
        (status = 404, description = "This channel has no such code."),
    ),
    security(("token" = ["read"])),
)]
async fn get_code(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(ChannelId, PromoCode)>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, path, |snapshot, _, (id, code)| channel::code(snapshot, id, &code));
    let found = found.await?.reply.ok_or_else(|| Problem::not_found("promo code"))?;
    Ok(json::respond(StatusCode::OK, &CodeView::from(found)))
}

/// Archive or restore a promo code
///
/// An archived code matches nothing and stays taken. Accounts that it attributed stay attributed.
#[utoipa::path(
    patch,
    path = "/api/channels/{id}/codes/{code}/",
    tag = "Channels",
    params(
        ("id" = String, Path, description = "The channel's id."),
        ("code" = String, Path, description = "The code, in any case."),
    ),
    request_body = requests::CodePatch,
    responses(
        (status = 200, description = "The code.", body = CodeView),
        (status = 404, description = "This channel has no such code."),
    ),
    security(("token" = ["channels"])),
)]
async fn archive_code(
    State(api): State<Api>,
    Id(path): Id<(ChannelId, PromoCode)>,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, archived) = call.parse(parse_archived);
    let command =
        path.and_then(|(channel, code)| archived.map(|archived| ArchiveCode { channel, code, archived }));
    let archived = api.write(&caller, command).await?;
    Ok(json::respond(StatusCode::OK, &CodeView::from(archived)))
}

/// Delete a promo code
///
/// The code no longer matches and its name can be used again. Accounts it has attributed keep their channel.
#[utoipa::path(
    delete,
    path = "/api/channels/{id}/codes/{code}/",
    tag = "Channels",
    params(
        ("id" = String, Path, description = "The channel's id."),
        ("code" = String, Path, description = "The code, in any case."),
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "This channel has no such code."),
    ),
    security(("token" = ["channels"])),
)]
async fn delete_code(
    State(api): State<Api>,
    caller: Caller,
    Id(path): Id<(ChannelId, PromoCode)>,
) -> Result<Response, Problem> {
    api.write(&caller, path.map(|(channel, code)| DeleteCode { channel, code })).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
