//! An account's timeline: everything that happened to it, in one list.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::timeline::{Said, Told as Item, ToldPlace as Place, told};
use rapport_domain::contact::{Contact, Kind};
use rapport_domain::conversation::{Direction, Sender};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AccountId, ContactId, ConversationId, HistoryId, MessageId, NoteId};
use rapport_domain::note::Note;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'T';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(account_timeline))
}

/// Something that happened to an account. The list is ordered by `at`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TimelineItem<'a> {
    Created {
        #[schema(value_type = String, format = DateTime)]
        at: Time,
        #[schema(value_type = String, example = "his_01jz3v8m5xqkf0t6b2n9rc7d4e")]
        id: HistoryId,
        to: Status,
        source: Source,
        actor: &'a Actor,
        #[schema(required = true)]
        note: Option<&'a str>,
    },
    StatusChanged {
        #[schema(value_type = String, format = DateTime)]
        at: Time,
        #[schema(value_type = String, example = "his_01jz3v8m5xqkf0t6b2n9rc7d4e")]
        id: HistoryId,
        from: Status,
        to: Status,
        source: Source,
        actor: &'a Actor,
        #[schema(required = true)]
        note: Option<&'a str>,
    },
    Contact {
        #[schema(value_type = String, format = DateTime)]
        at: Time,
        #[schema(value_type = String, example = "ctc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
        id: ContactId,
        kind: Kind,
        #[schema(required = true)]
        note: Option<&'a str>,
        actor: &'a Actor,
    },
    Note {
        #[schema(value_type = String, format = DateTime)]
        at: Time,
        #[schema(value_type = String, example = "nte_01jz3v8m5xqkf0t6b2n9rc7d4e")]
        id: NoteId,
        text: &'a str,
        pinned: bool,
        actor: &'a Actor,
    },
    Message {
        #[schema(value_type = String, format = DateTime)]
        at: Time,
        #[schema(value_type = String, example = "msg_01jz3v8m5xqkf0t6b2n9rc7d4e")]
        id: MessageId,
        #[schema(value_type = String, example = "cnv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
        conversation_id: ConversationId,
        direction: Direction,
        channel: &'a str,
        #[schema(required = true)]
        subject: Option<&'a str>,
        /// The beginning of the body.
        excerpt: &'a str,
        /// The sender named in the mail.
        #[schema(required = true)]
        sender: Option<&'a Sender>,
        /// Who logged or wrote it.
        actor: &'a Actor,
        automatic: bool,
    },
}

impl<'a> TimelineItem<'a> {
    fn of(item: &'a Item) -> Self {
        match item {
            Item::Stage(HistoryEntry { id, from, to, source, actor, note, at, .. }) => {
                let (at, id, to, source, note) = (*at, *id, *to, *source, note.as_deref());
                match *from {
                    None => Self::Created { at, id, to, source, actor, note },
                    Some(from) => Self::StatusChanged { at, id, from, to, source, actor, note },
                }
            }
            Item::Contact(Contact { id, kind, note, actor, occurred_at, .. }) => {
                Self::Contact { at: *occurred_at, id: *id, kind: *kind, note: note.as_deref(), actor }
            }
            Item::Note(Note { id, text, pinned, author, created_at, .. }) => {
                Self::Note { at: *created_at, id: *id, text, pinned: *pinned, actor: author }
            }
            Item::Message(said) => {
                let Said { id, conversation, direction, channel, subject, excerpt, .. } = said;
                Self::Message {
                    at: said.at,
                    id: *id,
                    conversation_id: *conversation,
                    direction: *direction,
                    channel,
                    subject: subject.as_deref(),
                    excerpt,
                    sender: said.sender.as_ref(),
                    actor: &said.author,
                    automatic: said.automatic,
                }
            }
        }
    }
}

/// List an account's timeline
///
/// Its creation, moves, contacts, notes and messages, newest first. Every item has `type`, `at` and `id`; its other
/// fields depend on its type.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/timeline/",
    tag = "Conversations",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of the timeline.", body = Page<TimelineItem>)),
    security(("token" = ["read"])),
)]
async fn account_timeline(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let from = parameters.cursor(read_place).unwrap_or(Place::START);
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, move |snapshot, _, id| told(snapshot, id, from, limit));
    let (items, next) = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let items = items.iter().map(TimelineItem::of).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor: next.map(write_place) }))
}

fn write_place(place: Place) -> String {
    let Place { stage, contact, note, message } = place;
    let times = [contact.0.as_micros().to_be_bytes(), message.0.as_micros().to_be_bytes()];
    let ids = [*stage.as_bytes(), *contact.1.as_bytes(), *message.1.as_bytes(), *note.as_bytes()];
    write_cursor(LIST, &[times.as_flattened(), ids.as_flattened()].concat())
}

fn read_place(text: &str) -> Option<Place> {
    let place: [u8; 80] = read_cursor(LIST, text)?;
    let (times, ids) = place.split_at(16);
    let time = |at: usize| Some(Time::from_micros(i64::from_be_bytes(times[at..at + 8].try_into().ok()?)));
    let id = |at: usize| ids[at..at + 16].try_into().ok();
    Some(Place {
        stage: HistoryId::from_bytes(id(0)?),
        contact: (time(0)?, ContactId::from_bytes(id(16)?)),
        message: (time(8)?, MessageId::from_bytes(id(32)?)),
        note: NoteId::from_bytes(id(48)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back() {
        let place = Place {
            stage: HistoryId::from_bytes([1; 16]),
            contact: (Time::from_micros(-5), ContactId::from_bytes([2; 16])),
            note: NoteId::from_bytes([4; 16]),
            message: (Time::from_micros(7), MessageId::from_bytes([3; 16])),
        };
        for place in [place, Place::START] {
            assert_eq!(read_place(&write_place(place)), Some(place));
        }
        assert_eq!(read_place("zzz"), None);
    }
}
