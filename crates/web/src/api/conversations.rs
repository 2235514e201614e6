//! Conversations with an account, and the messages logged in them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::conversation::{LogMessage, StartConversation};
use rapport_app::read::conversation;
use rapport_domain::conversation::{ConversationView, Log, Start};
use rapport_domain::correction::logged::Logged;
use rapport_domain::id::{AccountId, ConversationId, MessageId};
use rapport_domain::time::Time;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::logged::{LoggedMessage, render};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const CONVERSATIONS: u8 = b'N';
const MESSAGES: u8 = b'M';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_conversations, start_conversation))
        .routes(routes!(get_conversation))
        .routes(routes!(list_messages, log_message))
}

/// List an account's conversations
///
/// The conversation with the latest message comes first.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/conversations/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of conversations.", body = Page<ConversationView>)),
    security(("token" = ["read"])),
)]
async fn list_conversations(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| {
        let (at, id) = read_place(CONVERSATIONS, text)?;
        Some((at, ConversationId::from_bytes(id)))
    });
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, move |snapshot, _, id| {
        conversation::of_account(snapshot, id, before, limit)
    });
    let page = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let last = page.items.last().filter(|_| page.more);
    let next_cursor = last.map(|last| write_place(CONVERSATIONS, last.last_message_at, last.id.as_bytes()));
    let items = page.items.iter().map(|conversation| conversation.view()).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Start a conversation
///
/// Messages are logged in it one by one. Starting it doesn't count as contact.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/conversations/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The account's id.")),
    request_body = requests::ConversationCreate,
    responses((status = 201, description = "The conversation. It has no messages yet.", body = ConversationView)),
    security(("token" = ["work"])),
)]
async fn start_conversation(
    State(api): State<Api>,
    Id(id): Id<AccountId>,
    call: Call,
) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Start::parse);
    let command = id.and_then(|account| request.map(|request| StartConversation { account, request }));
    api.act(&caller, command, |begun| json::render(StatusCode::CREATED, &begun.view())).await
}

/// Get a conversation
///
/// Its messages are a list of their own.
#[utoipa::path(
    get,
    path = "/api/conversations/{id}/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The conversation's id.")),
    responses((status = 200, description = "The conversation.", body = ConversationView)),
    security(("token" = ["read"])),
)]
async fn get_conversation(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ConversationId>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, READ, id, |snapshot, _, id| conversation::one(snapshot, id));
    let found = found.await?.reply.ok_or_else(|| Problem::not_found("conversation"))?;
    Ok(json::respond(StatusCode::OK, &found.view()))
}

/// List a conversation's messages
///
/// Latest `occurred_at` first. If messages are very long, a page can have fewer than `limit` items.
#[utoipa::path(
    get,
    path = "/api/conversations/{id}/messages/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The conversation's id."), requests::PageParameters),
    responses((status = 200, description = "A page of messages.", body = Page<LoggedMessage>)),
    security(("token" = ["read"])),
)]
async fn list_messages(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<ConversationId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| {
        let (at, id) = read_place(MESSAGES, text)?;
        Some((at, MessageId::from_bytes(id)))
    });
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, move |snapshot, _, id| {
        conversation::messages(snapshot, id, before, limit)
    });
    let (page, edits) = found.await?.reply.ok_or_else(|| Problem::not_found("conversation"))?;
    let last = page.items.last().filter(|_| page.more);
    let next_cursor = last.map(|last| write_place(MESSAGES, last.occurred_at, last.id.as_bytes()));
    let items = page.items.iter().map(|message| LoggedMessage::new(message, &edits)).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Log a message
///
/// An outbound message counts as contact with the account. An inbound one doesn't, and fires `message.inbound`.
#[utoipa::path(
    post,
    path = "/api/conversations/{id}/messages/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The conversation's id.")),
    request_body = requests::MessageCreate,
    responses((status = 201, description = "The message.", body = LoggedMessage)),
    security(("token" = ["work"])),
)]
async fn log_message(
    State(api): State<Api>,
    Id(id): Id<ConversationId>,
    call: Call,
) -> Result<Response, Problem> {
    let now = api.app().now();
    let (caller, log) = call.parse(|members| Log::parse(members, now));
    let command = id.and_then(|conversation| log.map(|log| LogMessage { conversation, log }));
    api.act(&caller, command, |logged| render(StatusCode::CREATED, Logged::Message(logged), None)).await
}

/// Writes a place in a list that is ordered by time, then by id.
fn write_place(list: u8, at: Time, id: &[u8; 16]) -> String {
    write_cursor(list, &[at.as_micros().to_be_bytes().as_slice(), id].concat())
}

fn read_place(list: u8, text: &str) -> Option<(Time, [u8; 16])> {
    let place: [u8; 24] = read_cursor(list, text)?;
    let (at, id) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), id.try_into().ok()?))
}
