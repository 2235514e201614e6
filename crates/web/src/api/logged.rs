//! What was logged on an account, as the API shows it: the entry with its last edit.

use axum::http::StatusCode;
use rapport_app::Viewer;
use rapport_app::correction::Target;
use rapport_app::read::correction::{Edits, entry};
use rapport_domain::contact::Contact;
use rapport_domain::conversation::{Message, MessageView};
use rapport_domain::correction::Mark;
use rapport_domain::correction::content::Correctable as _;
use rapport_domain::correction::logged::Logged;
use rapport_domain::history::Actor;
use rapport_domain::note::Note;
use rapport_domain::time::Time;
use rapport_store::Snapshot;
use serde::Serialize;
use utoipa::ToSchema;

use crate::edge::json::{self, Rendered};

/// A contact, and when it was last edited.
#[derive(Serialize, ToSchema)]
pub struct LoggedContact {
    #[serde(flatten)]
    contact: Contact,
    /// When it was last edited. Null if it never was.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    edited_at: Option<Time>,
    /// Who last edited it. Null if nobody did.
    #[schema(required = true)]
    edited_by: Option<Actor>,
}

impl LoggedContact {
    pub fn new(contact: Contact, edits: &Edits) -> Self {
        let edited = edits.get(contact.entry().id_bytes()).cloned();
        Self::edited(contact, edited)
    }

    fn edited(contact: Contact, edited: Option<Mark>) -> Self {
        let (edited_at, edited_by) = parts(edited);
        Self { contact, edited_at, edited_by }
    }
}

/// A message, and when it was last edited.
#[derive(Serialize, ToSchema)]
pub struct LoggedMessage<'a> {
    #[serde(flatten)]
    message: MessageView<'a>,
    /// When it was last edited. Null if it never was.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    edited_at: Option<Time>,
    /// Who last edited it. Null if nobody did.
    #[schema(required = true)]
    edited_by: Option<Actor>,
}

impl<'a> LoggedMessage<'a> {
    pub fn new(message: &'a Message, edits: &Edits) -> Self {
        Self::edited(message, edits.get(message.entry().id_bytes()).cloned())
    }

    fn edited(message: &'a Message, edited: Option<Mark>) -> Self {
        let (edited_at, edited_by) = parts(edited);
        Self { message: message.view(), edited_at, edited_by }
    }
}

/// A note, and when it was last edited.
#[derive(Serialize, ToSchema)]
pub struct LoggedNote {
    #[serde(flatten)]
    note: Note,
    /// When it was last edited, pinned or unpinned. Null if it never was.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    edited_at: Option<Time>,
    /// Who did that. Null if nobody did.
    #[schema(required = true)]
    edited_by: Option<Actor>,
}

impl LoggedNote {
    pub fn new(note: Note, edits: &Edits) -> Self {
        let edited = edits.get(note.entry().id_bytes()).cloned();
        Self::edited(note, edited)
    }

    fn edited(note: Note, edited: Option<Mark>) -> Self {
        let (edited_at, edited_by) = parts(edited);
        Self { note, edited_at, edited_by }
    }
}

fn parts(edited: Option<Mark>) -> (Option<Time>, Option<Actor>) {
    edited.map(|Mark { at, by }| (at, by)).unzip()
}

pub fn render(status: StatusCode, logged: Logged, edited: Option<Mark>) -> Rendered {
    match logged {
        Logged::Contact(contact) => json::render(status, &LoggedContact::edited(contact, edited)),
        Logged::Message(message) => json::render(status, &LoggedMessage::edited(&message, edited)),
        Logged::Note(note) => json::render(status, &LoggedNote::edited(note, edited)),
    }
}

/// The entry as a GET shows it.
pub fn current<K: Into<Target>>(
    snapshot: &mut Snapshot,
    _: &Viewer,
    key: K,
) -> Result<Option<Rendered>, rapport_store::Error> {
    let found = entry(snapshot, key.into())?;
    Ok(found.map(|(logged, edited)| render(StatusCode::OK, logged, edited)))
}
