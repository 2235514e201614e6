//! Schemas of conversations, messages and the timeline for the OpenAPI document only. The domain parses and renders
//! the actual members.

#![expect(dead_code, reason = "these types only describe the API and are never constructed")]

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
    /// The medium of the conversation.
    #[schema(example = "email")]
    channel: String,
    message_count: i64,
    /// Null if there are no messages yet.
    #[schema(required = true, format = DateTime)]
    last_message_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(ToSchema)]
pub struct ConversationCreate {
    #[schema(max_length = 998, example = "Offer for the spring")]
    subject: Option<String>,
    /// A word for the medium of the conversation. Defaults to `email`.
    #[schema(min_length = 1, max_length = 64, example = "email")]
    channel: Option<String>,
}

/// A message in a conversation.
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
    /// True if only the beginning of the mail is kept, or, in a webhook payload, if the body is longer than 20,000
    /// characters.
    body_truncated: bool,
    /// Who logged it, or the member who wrote the mail.
    author: Actor,
    /// The sender named in the mail.
    #[schema(required = true)]
    sender: Option<Sender>,
    /// The mail's attachments. Their contents are not kept.
    attachments: Vec<Attachment>,
    /// Sent by a machine, such as an out-of-office reply, a bounce or a mailing list. It counts neither as contact
    /// nor as a reply.
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
    /// The decoded size in bytes.
    size: u64,
}

#[derive(ToSchema)]
pub struct MessageCreate {
    direction: Direction,
    #[schema(min_length = 1, max_length = 200_000)]
    body: String,
    /// Defaults to the conversation's channel.
    #[schema(min_length = 1, max_length = 64, example = "email")]
    channel: Option<String>,
    #[schema(max_length = 998)]
    subject: Option<String>,
    /// Defaults to now. At most 5 minutes ahead.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
}

/// Something that happened to an account. The fields depend on `type`.
#[derive(ToSchema)]
pub struct TimelineItem {
    #[schema(rename = "type")]
    item_type: TimelineType,
    /// When it happened. The list is ordered by this.
    #[schema(format = DateTime)]
    at: String,
    id: String,
    /// `status_changed`: the previous status.
    from: Option<Status>,
    /// `created`, `status_changed`: the new status.
    to: Option<Status>,
    /// `created`, `status_changed`: the source of the change.
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
    /// `message`: the sender named in the mail.
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

/// An email address of an account.
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
