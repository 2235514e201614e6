//! An account's status history: every move, where it came from and who made it.

use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::id::{AccountId, CredentialId, HistoryId, PersonId};
use crate::pipeline::{Source, Status};
use crate::schema::one_of;
use crate::time::Time;

/// Who did something. The name is the one at that moment and never changes in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    Token {
        id: CredentialId,
        name: String,
    },
    IngestKey {
        id: CredentialId,
    },
    InboundKey {
        id: CredentialId,
    },
    Person {
        id: PersonId,
        name: String,
    },
    /// The administrator of the server, through the command line.
    CommandLine,
    /// The service itself.
    System,
}

impl Actor {
    const KINDS: [&str; 6] = ["token", "ingest_key", "inbound_key", "person", "command_line", "system"];

    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Token { .. } => "token",
            Self::IngestKey { .. } => "ingest_key",
            Self::InboundKey { .. } => "inbound_key",
            Self::Person { .. } => "person",
            Self::CommandLine => "command_line",
            Self::System => "system",
        }
    }

    pub const fn id_bytes(&self) -> Option<&[u8; 16]> {
        match self {
            Self::Token { id, .. } | Self::IngestKey { id } | Self::InboundKey { id } => Some(id.as_bytes()),
            Self::Person { id, .. } => Some(id.as_bytes()),
            Self::CommandLine | Self::System => None,
        }
    }

    /// The id as the wire spells it.
    pub fn id_text(&self) -> Option<String> {
        match self {
            Self::Token { id, .. } | Self::IngestKey { id } | Self::InboundKey { id } => Some(id.to_string()),
            Self::Person { id, .. } => Some(id.to_string()),
            Self::CommandLine | Self::System => None,
        }
    }

    /// The person, if it was one.
    pub const fn person(&self) -> Option<PersonId> {
        match self {
            Self::Person { id, .. } => Some(*id),
            Self::Token { .. }
            | Self::IngestKey { .. }
            | Self::InboundKey { .. }
            | Self::CommandLine
            | Self::System => None,
        }
    }

    /// Whether it is the same person or credential, whatever their name was then.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.kind(), self.id_bytes()) == (other.kind(), other.id_bytes())
    }

    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Token { name, .. } | Self::Person { name, .. } => Some(name),
            Self::IngestKey { .. } | Self::InboundKey { .. } | Self::CommandLine | Self::System => None,
        }
    }

    /// From the three parts that storage keeps.
    pub fn from_parts(kind: &str, id: Option<[u8; 16]>, name: Option<String>) -> Self {
        let id = id.unwrap_or_default();
        let name = name.unwrap_or_default();
        match kind {
            "token" => Self::Token { id: CredentialId::from_bytes(id), name },
            "ingest_key" => Self::IngestKey { id: CredentialId::from_bytes(id) },
            "inbound_key" => Self::InboundKey { id: CredentialId::from_bytes(id) },
            "person" => Self::Person { id: PersonId::from_bytes(id), name },
            "command_line" => Self::CommandLine,
            _ => Self::System,
        }
    }
}

/// Who did something, with their name at that time.
#[derive(Serialize, ToSchema)]
struct ActorView<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = actor_kind)]
    kind: &'static str,
    /// The id of the person, token or key. Null for the command line and for the service itself.
    #[schema(required = true)]
    id: Option<String>,
    /// The name of the person or token. Null if it has none.
    #[schema(required = true)]
    name: Option<&'a str>,
}

fn actor_kind() -> ObjectBuilder {
    one_of(Actor::KINDS).description(Some("What kind of actor it is."))
}

impl PartialSchema for Actor {
    fn schema() -> RefOr<Schema> {
        ActorView::schema()
    }
}

impl ToSchema for Actor {}

impl Serialize for Actor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ActorView { kind: self.kind(), id: self.id_text(), name: self.name() }.serialize(serializer)
    }
}

/// One move of an account. Its first entry has no `from`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HistoryEntry {
    #[schema(value_type = String, example = "his_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    pub id: HistoryId,
    #[serde(skip)]
    pub account: AccountId,
    #[schema(required = true)]
    pub from: Option<Status>,
    pub to: Status,
    pub source: Source,
    pub actor: Actor,
    #[schema(required = true)]
    pub note: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// When the event happened that moved the account. `None` for other moves, which happened when they were made.
    #[serde(skip)]
    pub happened_at: Option<Time>,
}
