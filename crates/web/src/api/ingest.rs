//! The documented ingest: a batch of client activity from the customer's own product.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::ingest::{Ingest, Ingested};
use rapport_app::{Needs, Viewer, metric};
use rapport_domain::activity::{BatchError, Rejection, parse_batch};
use rapport_domain::invalid::FieldError;
use rapport_store::Snapshot;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Call;
use crate::api::{Api, requests};
use crate::edge::json::{self, Object, Rendered};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(ingest))
}

/// What was done with a batch.
#[derive(Serialize, ToSchema)]
struct IngestReply {
    received: usize,
    accepted: usize,
    /// Events whose `event_id` was already accepted. They have no effect.
    duplicates: usize,
    /// Events that match no account, as sent, plus `index`. An event that has an `index` of its own keeps that.
    #[schema(value_type = Vec<HashMap<String, Value>>)]
    unmatched: Vec<Value>,
    rejected: Vec<Rejection>,
    /// The indexes of `duplicates` in the request. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    duplicate_indexes: Vec<usize>,
    /// The indexes of `unmatched` in the request, in the same order. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    unmatched_indexes: Vec<usize>,
}

/// Record client activity
///
/// Send events in batches of up to 100. 200 means that every accepted event is stored with all its effects.
/// Events are applied in array order. `received` is always the sum of `accepted`, `duplicates`, `unmatched` and
/// `rejected`. Don't retry unmatched events in a loop: import the account first. With an `event_id`, an event is
/// safe to send again. With `strict`, one unmatched or invalid event fails the batch (422 `batch_refused`), each of
/// them is named, and nothing is stored. The body can be compressed (`Content-Encoding: gzip`).
#[utoipa::path(
    post,
    path = "/api/pulse/ingest/",
    tag = "Upsert and ingest",
    request_body = requests::IngestRequest,
    responses(
        (status = 200, description = "The batch is stored.", body = IngestReply),
        (status = 413, description = "More than 100 events, or over 1 MiB."),
        (status = 422, description = "There are no events, all of them are invalid, or the batch is strict and some are \
                                      unmatched or invalid. The reply's members are included."),
    ),
    security(("ingest_key" = [])),
)]
async fn ingest(State(api): State<Api>, Call { caller, body }: Call) -> Result<Response, Problem> {
    let received_at = api.app().now();
    let parsed = body.and_then(|object| match parse_batch(&object.members, received_at) {
        Ok(batch) if batch.valid.is_empty() => Err(all_invalid(batch.rejected)),
        Ok(batch) => Ok((batch, object)),
        Err(BatchError::TooLarge { received }) => Err(Problem::batch_too_large(received)),
        Err(BatchError::Invalid(invalid)) => Err(invalid.into()),
    });
    let (batch, object) = match parsed {
        Ok(parsed) => parsed,
        Err(problem) => {
            api.verify(&caller, Needs::IngestKey).await?;
            return Err(problem);
        }
    };
    let command = Ingest { batch, received_at, bytes: object.bytes };
    let Some(repeat) = &caller.repeat else {
        let ingested = api.write(&caller, Ok(command)).await?;
        count(&ingested);
        return reply(ingested, object).map(IntoResponse::into_response);
    };
    let render = move |_: &mut Snapshot, _: &Viewer, ingested: Ingested| {
        let (rendered, refusal) = match reply(ingested.clone(), object.clone()) {
            Ok(rendered) => (rendered, None),
            Err(problem) => (Rendered::from(&problem), Some(problem)),
        };
        Ok((rendered, (ingested, refusal)))
    };
    let (response, done) = api.act_once(&caller, repeat, command, render).await?;
    if let Some((ingested, refusal)) = done {
        count(&ingested);
        refusal.map_or(Ok(()), Err)?;
    }
    Ok(response)
}

fn reply(ingested: Ingested, object: Object) -> Result<Rendered, Problem> {
    if ingested.rejected.len() == ingested.received {
        return Err(all_invalid(ingested.rejected));
    }
    if ingested.refused {
        return Err(batch_refused(ingested, object));
    }
    let Ingested { received, accepted, duplicates, unmatched, rejected, .. } = ingested;
    let reply = IngestReply {
        received,
        accepted,
        duplicates: duplicates.len(),
        unmatched: as_sent(&unmatched, object),
        rejected,
        duplicate_indexes: duplicates,
        unmatched_indexes: unmatched,
    };
    Ok(json::render(StatusCode::OK, &reply))
}

/// The events at these indexes as they were sent, each with its `index` unless it has one of its own.
fn as_sent(places: &[usize], mut object: Object) -> Vec<Value> {
    let Some(Value::Array(events)) = object.members.get_mut("events") else { return Vec::new() };
    let sent = places.iter().filter_map(|place| {
        let mut event = events.get_mut(*place)?.take();
        event.as_object_mut()?.entry("index").or_insert_with(|| Value::from(*place));
        Some(event)
    });
    sent.collect()
}

/// The error for a strict batch in which some events are unmatched or invalid, with the members of the reply. `errors`
/// names each of them, in order.
fn batch_refused(ingested: Ingested, object: Object) -> Problem {
    let Ingested { received, unmatched, rejected, .. } = ingested;
    let missing = unmatched.iter().map(|index| {
        let (pointer, detail) = (format!("/events/{index}"), "matches no account".to_owned());
        (*index, FieldError { pointer, code: "unmatched", detail })
    });
    let mut errors: Vec<(usize, FieldError)> =
        rejected.iter().map(|rejection| (rejection.index, error(rejection))).chain(missing).collect();
    errors.sort_by_key(|(index, _)| *index);
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "batch_refused",
        "the batch is strict and some of its events are unmatched or invalid, so nothing was stored; see `errors`",
    )
    .with_errors(errors.into_iter().map(|(_, error)| error).collect())
    .with_member("received", received.into())
    .with_member("accepted", 0.into())
    .with_member("duplicates", 0.into())
    .with_member("unmatched", as_sent(&unmatched, object).into())
    .with_member("rejected", json!(rejected))
    .with_member("unmatched_indexes", json!(unmatched))
}

/// The error for a batch without a valid event, with the members of the reply.
fn all_invalid(rejected: Vec<Rejection>) -> Problem {
    let errors = rejected.iter().map(error);
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "all_rejected",
        "every event in the batch is invalid; see `rejected`",
    )
    .with_errors(errors.collect())
    .with_member("received", rejected.len().into())
    .with_member("accepted", 0.into())
    .with_member("duplicates", 0.into())
    .with_member("unmatched", json!([]))
    .with_member("rejected", json!(rejected))
}

fn error(rejection: &Rejection) -> FieldError {
    let mut pointer = format!("/events/{}", rejection.index);
    for part in rejection.field.split('.').filter(|part| !part.is_empty()) {
        pointer.push('/');
        pointer.push_str(part);
    }
    FieldError { pointer, code: rejection.code, detail: rejection.detail.clone() }
}

/// Counts the events of a batch, unless it was refused.
fn count(ingested: &Ingested) {
    if ingested.refused {
        return;
    }
    let add = |outcome: &'static str, events: usize| {
        if events > 0 {
            metric::INGEST_EVENTS.counter([outcome.into()]).increment(events as u64);
        }
    };
    add("accepted", ingested.accepted);
    add("duplicate", ingested.duplicates.len());
    add("unmatched", ingested.unmatched.len());
    add("rejected", ingested.rejected.len());
}
