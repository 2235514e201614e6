//! Conversations with an account, their messages, and the requests about them.

use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::activity::MAX_AHEAD_SECONDS;
use crate::history::Actor;
use crate::id::{AccountId, ConversationId, MessageId};
use crate::invalid::{Fault, Invalid, Members, as_str, as_text};
use crate::member::Email;
use crate::schema::words;
use crate::sender_check::SenderCheck;
use crate::text::{Length, fold};
use crate::time::Time;

/// The longest line that a mail header may have.
pub const MAX_SUBJECT: Length = Length::up_to(998);
pub const MAX_CHANNEL: Length = Length::up_to(64);
pub const MAX_BODY: Length = Length::up_to(200_000);
/// How much of a body a payload includes, so that receivers don't have to accept very large payloads.
pub const MAX_PAYLOAD_BODY_CHARS: usize = 20_000;
/// The default channel of a conversation; mail is threaded only within this one.
pub const EMAIL: &str = "email";

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    Inbound,
    Outbound,
}

impl Direction {
    pub const ALL: [Self; 2] = [Self::Inbound, Self::Outbound];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inbound => "inbound",
            Self::Outbound => "outbound",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|direction| direction.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_direction", Self::ALL.map(Self::as_str)))
    }
}

words!(Direction, "Direction", "`inbound` if they wrote to us, `outbound` if we wrote to them.");

impl Serialize for Direction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    pub id: ConversationId,
    pub account: AccountId,
    pub subject: Option<String>,
    pub channel: String,
    pub message_count: i64,
    /// The time of the latest message. Before the first message, the time of creation.
    pub last_message_at: Time,
    pub created_at: Time,
}

impl Conversation {
    pub fn new(id: ConversationId, account: AccountId, request: Start, now: Time) -> Self {
        let Start { subject, channel } = request;
        Self { id, account, subject, channel, message_count: 0, last_message_at: now, created_at: now }
    }

    /// The mark by which mail without references finds this conversation.
    pub fn thread(&self) -> Option<ThreadMark> {
        (self.channel == EMAIL).then(|| ThreadMark::of(self.subject.as_deref().unwrap_or_default()))
    }

    /// Updates the conversation for a new message.
    pub fn extend(&mut self, occurred_at: Time) {
        let is_first = self.message_count == 0;
        self.last_message_at = if is_first { occurred_at } else { self.last_message_at.max(occurred_at) };
        self.message_count += 1;
    }

    pub fn view(&self) -> ConversationView<'_> {
        ConversationView {
            id: self.id,
            account_id: self.account,
            subject: self.subject.as_deref(),
            channel: &self.channel,
            message_count: self.message_count,
            last_message_at: (self.message_count > 0).then_some(self.last_message_at),
            created_at: self.created_at,
        }
    }
}

/// A conversation with an account.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
pub struct ConversationView<'a> {
    /// The conversation's id.
    #[schema(value_type = String, example = "cnv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: ConversationId,
    /// The account that it is with.
    #[schema(value_type = String, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    account_id: AccountId,
    /// Null if it has none.
    #[schema(required = true, example = "Offer for the spring")]
    subject: Option<&'a str>,
    /// The medium of the conversation.
    #[schema(example = "email")]
    channel: &'a str,
    /// How many messages it has.
    message_count: i64,
    /// When its latest message was. Null if there are no messages yet.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_message_at: Option<Time>,
    /// When it was created in Rapport.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

/// The hash of a subject without reply and forward prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadMark([u8; 16]);

impl ThreadMark {
    pub fn of(subject: &str) -> Self {
        let mut mark = [0; 16];
        mark.copy_from_slice(&digest(&SHA256, plain_subject(subject).as_bytes()).as_ref()[..16]);
        Self(mark)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Reply and forward prefixes of mail programs in European languages.
const PREFIXES: [&str; 22] = [
    "re", "fw", "fwd", "aw", "wg", "sv", "vs", "vb", "antw", "doorst", "rv", "res", "enc", "tr", "ref",
    "odp", "pd", "ynt", "ilt", "rif", "i", "r",
];

/// A subject normalised for threading: folded, without `Re:` and similar prefixes, with single spaces.
pub fn plain_subject(subject: &str) -> String {
    let words: Vec<String> = fold(subject).split_whitespace().map(str::to_owned).collect();
    let joined = words.join(" ");
    let mut rest = joined.as_str();
    while let Some((head, tail)) = rest.split_once(':') {
        // Some programs count replies: "Re[2]:", "AW (3):".
        let word = head.trim_end_matches(|c: char| c.is_ascii_digit() || "[](). ".contains(c));
        let is_counted = head.len() == word.len() || head[word.len()..].contains(['[', '(', ' ', '.']);
        if !PREFIXES.contains(&word) || !is_counted {
            break;
        }
        rest = tail.trim_start();
    }
    rest.trim().to_owned()
}

/// A request for a new conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub subject: Option<String>,
    pub channel: String,
}

impl Start {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let subject = members.optional("subject", |value| as_text(value, MAX_SUBJECT.or_empty()));
        let channel = members.optional("channel", |value| as_text(value, MAX_CHANNEL));
        members.refuse_unknown();
        members.finish()?;
        let subject = subject.filter(|subject| !subject.is_empty());
        Ok(Self { subject, channel: channel.unwrap_or_else(|| EMAIL.to_owned()) })
    }
}

/// A request to log a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub direction: Direction,
    pub body: String,
    /// The conversation's channel if absent.
    pub channel: Option<String>,
    pub subject: Option<String>,
    /// The time of logging if absent.
    pub occurred_at: Option<Time>,
}

impl Log {
    pub fn parse(body: &Map<String, Value>, now: Time) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let direction = members.required("direction", |value| Direction::parse(as_str(value)?));
        let text = members.required("body", |value| as_text(value, MAX_BODY));
        let channel = members.optional("channel", |value| as_text(value, MAX_CHANNEL));
        let subject = members.optional("subject", |value| as_text(value, MAX_SUBJECT.or_empty()));
        let occurred_at = members.optional("occurred_at", |value| past_time(value, now));
        members.refuse_unknown();
        let subject = subject.filter(|subject| !subject.is_empty());
        members.build(|| Some(Self { direction: direction?, body: text?, channel, subject, occurred_at }))
    }
}

/// Parses an email address to add to an account, whose mail is then logged there.
pub fn parse_address(body: &Map<String, Value>) -> Result<Email, Invalid> {
    let mut members = Members::of(body);
    let address = members.required("address", Email::from_json);
    members.refuse_unknown();
    members.build(|| address)
}

/// Parses a time that isn't in the future, allowing for clock differences.
pub fn past_time(value: &Value, now: Time) -> Result<Time, Fault> {
    let at = Time::parse(as_str(value)?).map_err(|error| Fault::new("malformed", error.to_string()))?;
    if at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        let detail = format!("must not be more than {} minutes in the future", MAX_AHEAD_SECONDS / 60);
        return Err(Fault::new("in_the_future", detail));
    }
    Ok(at)
}

/// A mail attachment. Only its description is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Attachment {
    /// The file's name. Null if the mail names none.
    #[schema(required = true, example = "offer.pdf")]
    pub name: Option<String>,
    /// The media type.
    #[serde(rename = "type")]
    #[schema(example = "application/pdf")]
    pub media_type: String,
    /// The decoded size in bytes.
    pub size: usize,
}

/// The sender named in a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Sender {
    /// The email address.
    #[schema(example = "ana@nordlys.example")]
    pub address: String,
    /// The name next to the address. Null if there is none.
    #[schema(required = true, example = "Ana Keller")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub conversation: ConversationId,
    pub account: AccountId,
    pub direction: Direction,
    pub channel: String,
    pub subject: Option<String>,
    pub body: String,
    /// The mail's body was longer than what is kept.
    pub body_truncated: bool,
    /// Who logged it, or the member who wrote the mail.
    pub author: Actor,
    pub sender: Option<Sender>,
    /// What a trusted relay said about the sender; `None` if no relay was trusted, or it isn't a mail.
    pub sender_check: Option<SenderCheck>,
    /// A JSON array of attachments; `None` for a message without attachments.
    pub attachments: Option<String>,
    /// Written by a machine: an out-of-office reply, a bounce, a mailing list.
    pub automatic: bool,
    pub occurred_at: Time,
    pub created_at: Time,
}

impl Message {
    /// A message logged by a person or a program.
    pub fn new(id: MessageId, of: &Conversation, log: &Log, author: &Actor, now: Time) -> Self {
        Self {
            id,
            conversation: of.id,
            account: of.account,
            direction: log.direction,
            channel: log.channel.clone().unwrap_or_else(|| of.channel.clone()),
            subject: log.subject.clone(),
            body: log.body.clone(),
            body_truncated: false,
            author: author.clone(),
            sender: None,
            sender_check: None,
            attachments: None,
            automatic: false,
            occurred_at: log.occurred_at.unwrap_or(now),
            created_at: now,
        }
    }

    /// Whether it counts as contact: a person on our side wrote to them.
    pub fn is_contact(&self) -> bool {
        self.direction == Direction::Outbound && !self.automatic
    }

    /// Whether it is news for receivers: a person on their side wrote to us.
    pub fn is_reply(&self) -> bool {
        self.direction == Direction::Inbound && !self.automatic
    }

    pub fn view(&self) -> MessageView<'_> {
        self.view_up_to(usize::MAX)
    }

    /// The message as it appears in payloads.
    pub fn payload_view(&self) -> MessageView<'_> {
        self.view_up_to(MAX_PAYLOAD_BODY_CHARS)
    }

    fn view_up_to(&self, chars: usize) -> MessageView<'_> {
        let end = self.body.char_indices().nth(chars).map_or(self.body.len(), |(at, _)| at);
        let attachments = serde_json::from_str(self.attachments.as_deref().unwrap_or("[]"));
        MessageView {
            id: self.id,
            conversation_id: self.conversation,
            account_id: self.account,
            direction: self.direction,
            channel: &self.channel,
            subject: self.subject.as_deref(),
            body: &self.body[..end],
            body_truncated: self.body_truncated || end < self.body.len(),
            author: &self.author,
            sender: self.sender.as_ref(),
            sender_check: self.sender_check.as_ref(),
            attachments: attachments.expect("stored attachments are JSON"),
            automatic: self.automatic,
            occurred_at: self.occurred_at,
            created_at: self.created_at,
        }
    }
}

/// A message in a conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
pub struct MessageView<'a> {
    /// The message's id.
    #[schema(value_type = String, example = "msg_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: MessageId,
    /// The conversation that it belongs to.
    #[schema(value_type = String, example = "cnv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    conversation_id: ConversationId,
    /// The account that it was exchanged with.
    #[schema(value_type = String, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    account_id: AccountId,
    /// `inbound` if it came from the account.
    direction: Direction,
    /// The medium of the message.
    #[schema(example = "email")]
    channel: &'a str,
    /// Null if it has none.
    #[schema(required = true)]
    subject: Option<&'a str>,
    /// The plain text.
    body: &'a str,
    /// True if only the beginning of the mail is kept, or, in a webhook payload, if the body is longer than 20,000
    /// characters.
    body_truncated: bool,
    /// Who logged it, or the member who wrote the mail.
    author: &'a Actor,
    /// The sender named in the mail. Null if the message wasn't a mail.
    #[schema(required = true)]
    sender: Option<&'a Sender>,
    /// What the mail relay that the operator trusts said about the sender. Null if no relay is trusted, so that
    /// senders aren't checked.
    #[schema(required = true)]
    sender_check: Option<&'a SenderCheck>,
    /// The mail's attachments. Their contents are not kept.
    #[schema(value_type = Vec<Attachment>)]
    attachments: &'a RawValue,
    /// Sent by a machine, such as an out-of-office reply, a bounce or a mailing list. It counts neither as contact
    /// nor as a reply.
    automatic: bool,
    /// When it was sent.
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Time,
    /// When it was logged.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

#[cfg(test)]
mod tests;
