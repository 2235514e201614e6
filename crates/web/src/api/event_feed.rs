//! The events of the company, to be read in order instead of received by a webhook.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::feed::{EventsAfter, Place, events, settled};
use rapport_domain::delivery_list::event_kind;
use rapport_domain::event::Kind;
use rapport_domain::feed::{Kinds, complete_at, parse_wait};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{ArrayBuilder, ArrayItems, OneOfBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::events::schema_name;
use crate::api::following::Cursor;
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::parameters::Parameters;

const LIST: u8 = b'e';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_events))
}

/// Some events. Those of an account are in the order in which they happened.
#[derive(Serialize, ToSchema)]
#[schema(as = EventPage)]
pub struct EventPage {
    #[schema(schema_with = payloads)]
    items: Vec<Box<RawValue>>,
    /// Send it as `cursor` to get the events after these. Never null: keep it, and continue from there at any time.
    next_cursor: String,
    /// There are further events already.
    has_more: bool,
}

fn payloads() -> ArrayBuilder {
    let any = Kind::ALL
        .into_iter()
        .fold(OneOfBuilder::new(), |any, kind| any.item(Ref::from_schema_name(schema_name(kind))));
    ArrayBuilder::new()
        .items(ArrayItems::RefOrSchema(Box::new(any.into())))
        .description(Some("The payloads, byte for byte as webhooks receive them."))
}

/// Read the events
///
/// Returns every event of the company, whether a webhook selects it or not, oldest first: the same payloads, for the same
/// 90 days. The events of an account are in the order in which they happened. Keep `next_cursor` when you have handled the events. Without `cursor` you get
/// the oldest events. With `wait`, an empty answer comes only after that time, and events as soon as there are any.
#[utoipa::path(
    get,
    path = "/api/events/",
    tag = "Events",
    params(requests::EventFeedParameters, requests::PageParameters),
    responses((status = 200, description = "Some events.", body = EventPage)),
    security(("token" = ["read"])),
)]
async fn list_events(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let kinds = Kinds(parameters.several("type", event_kind));
    let cursor = Cursor::of(&mut parameters, LIST, api.app().now());
    let wait = parameters.optional("wait", parse_wait).unwrap_or(0);
    let limit = parameters.limit();
    let mut question = parameters.finish();
    let deadline = Instant::now() + Duration::from_secs(wait);
    let mut place = cursor.map_or(Place::START, |cursor| cursor.place);
    let mut waiter = None;
    loop {
        let found = api.read(&caller, READ, question, |snapshot, _, ()| settled(snapshot)).await?;
        let (company, settled) = (found.company.id, found.reply);
        let asked = EventsAfter { place, kinds: kinds.clone(), limit };
        let found =
            api.read(&caller, READ, Ok(asked), move |snapshot, _, asked| events(snapshot, &asked, settled));
        let found = found.await?;
        let (page, now) = (found.reply, found.now);
        let is_over = Instant::now() >= deadline || api.0.waiting.is_over();
        if !page.payloads.is_empty() || page.more || is_over {
            let complete = match page.reached.filter(|_| page.more) {
                Some(reached) => complete_at(reached, now),
                None => now,
            };
            let next = Cursor { place: page.next, complete_at: complete };
            return respond(page.payloads, next, page.more);
        }
        // Events of other kinds need not be looked at again.
        place = page.next;
        match &mut waiter {
            // Something may have been committed since it looked.
            None => waiter = Some(api.settle(&caller, api.0.waiting.enter(api.app(), company))?),
            Some(waiter) => waiter.turn(deadline).await,
        }
        question = Ok(());
    }
}

fn respond(payloads: Vec<String>, next: Cursor, has_more: bool) -> Result<Response, Problem> {
    let items = payloads.into_iter().map(RawValue::from_string).collect::<Result<_, _>>();
    let items = items.map_err(|error| Problem::internal(format!("a stored payload is not JSON: {error}")))?;
    let page = EventPage { items, next_cursor: next.write(LIST), has_more };
    Ok(json::respond(StatusCode::OK, &page))
}
