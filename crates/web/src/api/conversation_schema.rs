//! Shapes of conversations, messages and the timeline for the OpenAPI document alone: what the domain
//! parses from raw members and what it renders.

#![expect(dead_code, reason = "these types describe; nothing makes one")]

use utoipa::ToSchema;

use crate::api::schema::{Actor, Source, Status};

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Direction {
    Inbound,
    Outbound,
}

/// A conversation with an account.
#[derive(ToSchema)]
pub struct Conversation {
    #[schema(example = "cnv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: String,
    #[schema(example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    account_id: String,
    #[schema(required = true, example = "Offer for the spring")]
    subject: Option<String>,
    /// How it is held.
    #[schema(example = "email")]
    channel: String,
    message_count: i64,
    /// Null while there is none.
    #[schema(required = true, format = DateTime)]
    last_message_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(ToSchema)]
pub struct ConversationCreate {
    #[schema(max_length = 998, example = "Offer for the spring")]
    subject: Option<String>,
    /// A word for how it is held: `email` unless said.
    #[schema(min_length = 1, max_length = 64, example = "email")]
    channel: Option<String>,
}

/// A message of a conversation.
#[derive(ToSchema)]
pub struct Message {
    #[schema(example = "msg_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: String,
    #[schema(example = "cnv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    conversation_id: String,
    #[schema(example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    account_id: String,
    direction: Direction,
    #[schema(example = "email")]
    channel: String,
    #[schema(required = true)]
    subject: Option<String>,
    body: String,
    /// True where the mail said more than is kept; in a payload also where it is longer than 20,000
    /// characters.
    body_truncated: bool,
    /// Who logged it, or the member who wrote the mail.
    author: Actor,
    /// Who a mail says it is from.
    #[schema(required = true)]
    sender: Option<Sender>,
    /// What was attached to a mail. Attachments themselves are not kept.
    attachments: Vec<Attachment>,
    /// A machine wrote it: an absence note, a bounce, a mailing list. It neither counts as contact nor as
    /// a reply.
    automatic: bool,
    #[schema(format = DateTime)]
    occurred_at: String,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(ToSchema)]
pub struct Sender {
    #[schema(example = "ana@nordlys.example")]
    address: String,
    #[schema(required = true, example = "Ana Keller")]
    name: Option<String>,
}

#[derive(ToSchema)]
pub struct Attachment {
    #[schema(required = true, example = "offer.pdf")]
    name: Option<String>,
    #[schema(rename = "type", example = "application/pdf")]
    media_type: String,
    /// In bytes, decoded.
    size: u64,
}

#[derive(ToSchema)]
pub struct MessageCreate {
    direction: Direction,
    #[schema(min_length = 1, max_length = 200_000)]
    body: String,
    /// The conversation's unless said.
    #[schema(min_length = 1, max_length = 64, example = "email")]
    channel: Option<String>,
    #[schema(max_length = 998)]
    subject: Option<String>,
    /// Now unless said; at most five minutes ahead.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
}

/// Something that happened to an account. Which members there are depends on `type`.
#[derive(ToSchema)]
pub struct TimelineItem {
    #[schema(rename = "type")]
    item_type: TimelineType,
    /// When it happened: the order of the list.
    #[schema(format = DateTime)]
    at: String,
    id: String,
    /// `status_changed`: the stage before.
    from: Option<Status>,
    /// `created`, `status_changed`: the stage since.
    to: Option<Status>,
    /// `created`, `status_changed`: by which route.
    source: Option<Source>,
    /// `contact`: `call`, `meeting`, `email` or `other`.
    kind: Option<String>,
    /// `created`, `status_changed`, `contact`.
    note: Option<String>,
    /// `created`, `status_changed`, `contact`: who did it; `message`: who logged or wrote it.
    actor: Option<Actor>,
    /// `message`.
    conversation_id: Option<String>,
    /// `message`.
    direction: Option<Direction>,
    /// `message`.
    channel: Option<String>,
    /// `message`.
    subject: Option<String>,
    /// `message`: the beginning of the body.
    excerpt: Option<String>,
    /// `message`: who a mail says it is from.
    sender: Option<Sender>,
    /// `message`.
    automatic: Option<bool>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum TimelineType {
    Created,
    StatusChanged,
    Contact,
    Message,
}

/// A mail address that an account is known by.
#[derive(ToSchema)]
pub struct Address {
    #[schema(example = "ana@nordlys.example")]
    address: String,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(ToSchema)]
pub struct AddressCreate {
    #[schema(max_length = 254, example = "ana@nordlys.example")]
    address: String,
}
