//! Inbound mail: a raw message, posted by a mail provider or a forwarder.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::Body as _;
use rapport_app::inbound::{Entry, Logged, ReceiveMail, Received};
use rapport_app::reading::mail;
use rapport_app::{Needs, Viewer, metric};
use rapport_domain::conversation::Direction;
use rapport_domain::id::{AccountId, CompanyId, ConversationId, MessageId};
use rapport_domain::inbound::MAX_MAIL_BYTES;
use rapport_store::Snapshot;
use serde::Serialize;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{Api, repeat};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::edge::shares::{Shares, half};

/// How much memory incoming mails may use together: enough for six of the largest or thousands of plain ones.
const ROOM_KIB: usize = 6 * (MAX_MAIL_BYTES >> 10);
const MEDIA_TYPES: [&str; 2] = ["message/rfc822", "message/global"];

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(receive_email))
}

/// What was done with a mail.
#[derive(Serialize, ToSchema)]
#[schema(as = InboundMail)]
#[expect(clippy::struct_excessive_bools, reason = "each member of the response is independent")]
struct Reply {
    /// Whether this request logged it.
    logged: bool,
    /// It was already logged under the same Message-ID.
    duplicate: bool,
    /// Why nothing was logged: `members_only`, `former_member`, `automatic`, `no_sender`.
    #[schema(required = true, value_type = Option<String>)]
    ignored: Option<&'static str>,
    #[schema(required = true, value_type = Option<String>, example = "inbound")]
    direction: Option<Direction>,
    /// Sent by a machine. It counts neither as contact nor as a reply.
    automatic: bool,
    /// Whether an account was created for the sender or recipient.
    created_account: bool,
    #[schema(required = true, value_type = Option<String>, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    account_id: Option<AccountId>,
    #[schema(required = true, value_type = Option<String>, example = "cnv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    conversation_id: Option<ConversationId>,
    #[schema(required = true, value_type = Option<String>, example = "msg_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    message_id: Option<MessageId>,
    /// The other accounts it was logged on. A member's mail to several accounts is contact with each of them.
    copies: Vec<Copy>,
}

/// A mail logged on another account.
#[derive(Serialize, ToSchema)]
#[schema(as = InboundMailCopy)]
#[expect(clippy::struct_field_names, reason = "these are the names on the wire")]
struct Copy {
    #[schema(value_type = String)]
    account_id: AccountId,
    #[schema(value_type = String)]
    conversation_id: ConversationId,
    #[schema(value_type = String)]
    message_id: MessageId,
}

impl From<Logged> for Copy {
    fn from(Logged { account, conversation, message }: Logged) -> Self {
        Self { account_id: account, conversation_id: conversation, message_id: message }
    }
}

impl Reply {
    const NOTHING: Self = Self {
        logged: false,
        duplicate: false,
        ignored: None,
        direction: None,
        automatic: false,
        created_account: false,
        account_id: None,
        conversation_id: None,
        message_id: None,
        copies: Vec::new(),
    };

    fn at(Logged { account, conversation, message }: Logged) -> Self {
        Self {
            account_id: Some(account),
            conversation_id: Some(conversation),
            message_id: Some(message),
            ..Self::NOTHING
        }
    }
}

impl From<Received> for Reply {
    fn from(received: Received) -> Self {
        match received {
            Received::Ignored(ignored) => Self { ignored: Some(ignored.as_str()), ..Self::NOTHING },
            Received::Duplicate(logged) => Self { duplicate: true, ..Self::at(logged) },
            Received::Logged(Entry { direction, automatic, created_account, logged, copies }) => Self {
                logged: true,
                direction: Some(direction),
                automatic,
                created_account,
                copies: copies.into_iter().map(Copy::from).collect(),
                ..Self::at(logged)
            },
        }
    }
}

/// Log a mail
///
/// Send a raw RFC 5322 message of up to 25 MiB. It is added to the conversation it replies to (`In-Reply-To`,
/// `References`), otherwise it is matched by its sender. An unknown sender becomes a prospect. A mail from a member is
/// logged as outbound on the accounts it was sent to and counts as contact. The same Message-ID is never logged twice.
/// Automatic replies, bounces and mailing lists are logged only on known accounts, as `automatic`.
#[utoipa::path(
    post,
    path = "/api/inbound/email/",
    tag = "Conversations",
    request_body(content = String, content_type = "message/rfc822", description = "The message."),
    responses(
        (status = 200, description = "Nothing was logged: the mail was already logged or is ignored.", body = Reply),
        (status = 201, description = "The mail was logged.", body = Reply),
        (status = 400, description = "The body is damaged."),
        (status = 413, description = "The message is over 25 MiB."),
        (status = 415, description = "The body is not sent as message/rfc822."),
        (status = 422, description = "The body is not a mail: it has no header."),
    ),
    security(("inbound_key" = [])),
)]
async fn receive_email(State(api): State<Api>, call: MailCall) -> Result<Response, Problem> {
    let MailCall { caller, raw } = call;
    let command = match raw {
        Ok((raw, room)) => {
            let parsed = parse(raw).await;
            drop(room);
            parsed
        }
        Err(problem) => Err(problem),
    };
    let (Some(repeat), true) = (caller.repeat.clone(), command.is_ok()) else {
        let received = api.write(&caller, command).await?;
        count(outcome(&received));
        return Ok(render(received).into_response());
    };
    let render = |_: &mut Snapshot, _: &Viewer, received: Received| {
        let outcome = Counted(outcome(&received));
        Ok((render(received), outcome))
    };
    let (response, outcome) = api.act_once(&caller, &repeat, command?, render).await?;
    outcome.into_iter().for_each(|Counted(outcome)| count(outcome));
    Ok(response)
}

/// The outcome of a mail as a metric names it.
struct Counted(&'static str);

fn render(received: Received) -> Rendered {
    let status = if matches!(received, Received::Logged(_)) { StatusCode::CREATED } else { StatusCode::OK };
    json::render(status, &Reply::from(received))
}

/// Parses on a blocking thread: large mails take a while, and a panic must not end the process.
async fn parse(raw: Bytes) -> Result<ReceiveMail, Problem> {
    let parsed = tokio::task::spawn_blocking(move || mail::read(&raw).map(ReceiveMail::new)).await;
    let parsed = parsed.map_err(|error| Problem::internal(format!("failed to read a mail: {error}")))?;
    parsed.map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_a_mail", error.to_string()))
}

fn outcome(received: &Received) -> &'static str {
    match received {
        Received::Logged(entry) => entry.direction.as_str(),
        Received::Duplicate(_) => "duplicate",
        Received::Ignored(ignored) => ignored.as_str(),
    }
}

fn count(outcome: &'static str) {
    metric::INBOUND_MAILS.counter([outcome.into()]).increment(1);
}

/// The memory for incoming mails, in kibibytes. A mail that arrives slowly keeps the size it announced. One company's
/// mails may use half of the memory, so that the rest is left for others.
pub struct MailRoom {
    all: Arc<Semaphore>,
    companies: Shares<CompanyId>,
}

type Room = [OwnedSemaphorePermit; 2];

impl Default for MailRoom {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ROOM_KIB)), companies: Shares::new(half(ROOM_KIB)) }
    }
}

impl MailRoom {
    async fn take(&self, company: CompanyId, kib: u32) -> Result<Room, AcquireError> {
        // Take the company's share first: waiting for it does not hold up others.
        let share = self.companies.of(company).acquire_many_owned(kib).await?;
        Ok([share, Arc::clone(&self.all).acquire_many_owned(kib).await?])
    }
}

/// A request with a mail. The caller is verified before the body is read.
struct MailCall {
    caller: Caller,
    /// The mail and its reserved memory.
    raw: Result<(Bytes, Room), Problem>,
}

impl FromRequest<Api> for MailCall {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let verified = match Caller::of(&parts) {
            Ok(caller) => api.verify(&caller, Needs::InboundKey).await.map(|_| caller),
            Err(refused) => Err(refused),
        };
        let mut caller = match verified {
            Ok(caller) => caller,
            Err(refused) => {
                json::drain(body).await;
                return Err(refused);
            }
        };
        if let Err(problem) = require_mail(&parts.headers) {
            json::drain(body).await;
            return Ok(Self { caller, raw: Err(problem) });
        }
        let room = api.0.mail_room.take(caller.presented.company, kib_of(&parts.headers, &body));
        let Ok(Ok(room)) = tokio::time::timeout(api.0.body_timeout, room).await else {
            return Err(Problem::of(rapport_app::Error::Busy, caller.scheme));
        };
        let raw = json::receive(&parts.headers, body, MAX_MAIL_BYTES, api.0.body_timeout).await;
        let mut raw = raw.and_then(|raw| json::decompress(&parts.headers, raw, MAX_MAIL_BYTES));
        if let Ok(bytes) = &raw {
            let begun = repeat::key(&parts)
                .and_then(|key| key.map(|key| api.repeat(&caller, &key, &parts, bytes)).transpose());
            match begun {
                Ok(repeat) => caller.repeat = repeat,
                Err(problem) => raw = Err(problem),
            }
        }
        Ok(Self { caller, raw: raw.map(|raw| (raw, room)) })
    }
}

/// The memory to reserve for a mail: its announced size, otherwise the maximum.
fn kib_of(headers: &HeaderMap, body: &Body) -> u32 {
    let announced = body.size_hint().upper().filter(|_| !headers.contains_key(header::CONTENT_ENCODING));
    let bytes = announced.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(MAX_MAIL_BYTES);
    u32::try_from(bytes.min(MAX_MAIL_BYTES).div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

fn require_mail(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = sent.split(';').next().unwrap_or("").trim();
    if MEDIA_TYPES.iter().any(|media_type| essence.eq_ignore_ascii_case(media_type)) {
        return Ok(());
    }
    Err(Problem::unsupported("unsupported_media_type", "send the body as Content-Type: message/rfc822"))
}
