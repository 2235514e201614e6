//! An account's status history: every move, where it came from and who made it.

use serde::Serialize;

use crate::id::{AccountId, CredentialId, HistoryId, PersonId};
use crate::pipeline::{Source, Status};
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

impl Serialize for Actor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct View<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            id: Option<String>,
            name: Option<&'a str>,
        }
        let id = match self {
            Self::Token { id, .. } | Self::IngestKey { id } | Self::InboundKey { id } => Some(id.to_string()),
            Self::Person { id, .. } => Some(id.to_string()),
            Self::CommandLine | Self::System => None,
        };
        View { kind: self.kind(), id, name: self.name() }.serialize(serializer)
    }
}

/// One entry; the first entry of an account has no `from`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    pub id: HistoryId,
    #[serde(skip)]
    pub account: AccountId,
    pub from: Option<Status>,
    pub to: Status,
    pub source: Source,
    pub actor: Actor,
    pub note: Option<String>,
    pub at: Time,
}
