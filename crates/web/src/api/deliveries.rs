//! Deliveries: list them, read one with its attempts, and redeliver one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::Viewer;
use rapport_app::read::delivery::{self, Detail, KeptAttempt, Listed};
use rapport_app::redeliver::Redeliver;
use rapport_domain::delivery::{Delivery, Failure};
use rapport_domain::delivery_list::{Appearance, Filter, Shown, account_id, event_kind, webhook_id};
use rapport_domain::event::Kind;
use rapport_domain::id::{AccountId, DeliveryId, EventId, WebhookId};
use rapport_domain::schema::one_of;
use rapport_domain::time::Time;
use rapport_store::Snapshot;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id, PlainCall};
use crate::api::{Api, WEBHOOKS, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'd';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_deliveries))
        .routes(routes!(get_delivery))
        .routes(routes!(redeliver))
}

/// One event for one webhook.
#[derive(Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    #[schema(value_type = String, example = "dlv_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: DeliveryId,
    #[schema(value_type = String, example = "whk_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    webhook_id: WebhookId,
    /// The payload's top-level id.
    #[schema(value_type = String, example = "evt_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    event_id: EventId,
    #[serde(rename = "type")]
    #[schema(value_type = Kind)]
    kind: &'static str,
    /// Null for a test.
    #[schema(required = true, value_type = Option<String>)]
    account_id: Option<AccountId>,
    #[schema(value_type = Shown)]
    state: &'static str,
    /// Attempts that have ended, manual ones included.
    attempt_count: i64,
    /// From the successful attempt if there was one, otherwise from the last attempt.
    #[schema(required = true)]
    response_code: Option<i64>,
    /// What went wrong, in words. `webhook_deleted`, `dropped` or `payload_erased` if the delivery ended without
    /// an attempt.
    #[schema(required = true)]
    error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Null unless the delivery is pending.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Time>,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    finished_at: Option<Time>,
}

impl From<Listed> for DeliveryView {
    fn from(Listed { delivery, shown }: Listed) -> Self {
        let Appearance { state, error, next_attempt_at, finished_at } = shown;
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook,
            event_id: delivery.event,
            kind: delivery.kind.as_str(),
            account_id: delivery.account,
            state: state.as_str(),
            attempt_count: delivery.attempts,
            response_code: delivery.response_code,
            error,
            created_at: delivery.created_at,
            next_attempt_at,
            finished_at,
        }
    }
}

/// A delivery with its payload and its attempts.
#[derive(Serialize, ToSchema)]
#[schema(as = DeliveryDetail)]
pub struct DeliveryDetail {
    #[serde(flatten)]
    view: DeliveryView,
    /// The request body, byte for byte the same in every attempt. Null if it was erased.
    #[schema(required = true, value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
    /// Ordered by number. An attempt appears when it ends.
    attempts: Vec<AttemptView>,
}

/// One HTTP request of a delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = Attempt)]
struct AttemptView {
    number: i64,
    #[schema(value_type = String, format = DateTime)]
    started_at: Time,
    duration_ms: i64,
    #[schema(schema_with = attempt_status)]
    status: &'static str,
    /// Null if no status was received. A truncated response keeps its code.
    #[schema(required = true)]
    response_code: Option<i64>,
    /// What went wrong, in a sentence.
    #[schema(required = true)]
    error: Option<String>,
    /// Why no complete response was received.
    #[schema(required = true, value_type = Option<Failure>)]
    error_class: Option<String>,
    /// Requested by an operator. It does not start a retry schedule.
    manual: bool,
    timings: TimingsView,
    /// The address we connected to.
    #[schema(required = true, example = "203.0.113.7:443")]
    address: Option<String>,
    /// The beginning of the response, at most 16 KiB, as text.
    #[schema(required = true)]
    response_excerpt: Option<String>,
    /// The response was longer than the excerpt.
    response_excerpt_cut: bool,
}

const SUCCEEDED: &str = Shown::Succeeded.as_str();
const FAILED: &str = Shown::Failed.as_str();

fn attempt_status() -> ObjectBuilder {
    one_of([SUCCEEDED, FAILED])
}

/// How long each phase of an attempt took, in milliseconds. Null for phases that did not happen.
#[derive(Serialize, ToSchema)]
#[schema(as = AttemptTimings)]
#[expect(clippy::struct_field_names, reason = "the wire names include the unit")]
struct TimingsView {
    #[schema(required = true)]
    dns_ms: Option<f64>,
    #[schema(required = true)]
    connect_ms: Option<f64>,
    #[schema(required = true)]
    tls_ms: Option<f64>,
    #[schema(required = true)]
    first_byte_ms: Option<f64>,
    total_ms: f64,
}

impl From<KeptAttempt> for AttemptView {
    fn from(kept: KeptAttempt) -> Self {
        let timings = TimingsView {
            dns_ms: kept.dns_us.map(millis),
            connect_ms: kept.connect_us.map(millis),
            tls_ms: kept.tls_us.map(millis),
            first_byte_ms: kept.first_byte_us.map(millis),
            total_ms: millis(kept.total_us),
        };
        Self {
            number: kept.number,
            started_at: kept.started_at,
            duration_ms: (kept.total_us + 500) / 1_000,
            status: if kept.succeeded { SUCCEEDED } else { FAILED },
            response_code: kept.response_code,
            error: kept.error,
            error_class: kept.failure,
            manual: kept.manual,
            timings,
            address: kept.address,
            response_excerpt: kept.excerpt.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            response_excerpt_cut: kept.excerpt_cut,
        }
    }
}

/// Attempts end within seconds, so their microseconds are far below the type's maximum.
fn millis(micros: i64) -> f64 {
    f64::from(i32::try_from(micros).unwrap_or(i32::MAX)) / 1_000.0
}

/// List deliveries
///
/// Newest first. Deliveries must match all filters. If matches are rare, a page can be short or empty and still
/// have a `next_cursor`: continue until it is null. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/deliveries/",
    tag = "Deliveries",
    params(requests::DeliveryListParameters, requests::PageParameters),
    responses((status = 200, description = "A page of deliveries.", body = Page<DeliveryView>)),
    security(("token" = ["webhooks"])),
)]
async fn list_deliveries(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let filter = Filter {
        webhook: parameters.optional("webhook", webhook_id),
        state: parameters.optional("state", Shown::parse),
        kind: parameters.optional("type", event_kind),
        account: parameters.optional("account", account_id),
        since: parameters.time("since"),
        until: parameters.time("until"),
    };
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(DeliveryId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, WEBHOOKS, parameters.finish(), move |snapshot, _, ()| {
        delivery::log(snapshot, &filter, before, limit)
    });
    let scan = found.await?.reply;
    let page = Page {
        items: scan.found.into_iter().map(DeliveryView::from).collect(),
        next_cursor: scan.next.map(|place| write_cursor(LIST, place.as_bytes())),
    };
    Ok(json::respond(StatusCode::OK, &page))
}

/// Get a delivery
///
/// Includes its payload and all attempts so far. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/deliveries/{id}/",
    tag = "Deliveries",
    params(("id" = String, Path, description = "The delivery's id.")),
    responses((status = 200, description = "The delivery.", body = DeliveryDetail)),
    security(("token" = ["webhooks"])),
)]
async fn get_delivery(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<DeliveryId>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, WEBHOOKS, id, |snapshot, _, id| delivery::one(snapshot, id));
    let found = found.await?.reply.ok_or_else(|| Problem::not_found("delivery"))?;
    Ok(rendered(StatusCode::OK, found).into_response())
}

/// Renders a delivery that exists, in full.
pub fn accepted(
    snapshot: &mut Snapshot,
    _: &Viewer,
    Delivery { id, .. }: Delivery,
) -> Result<Rendered, rapport_store::Error> {
    let found = delivery::one(snapshot, id)?;
    let missing = || Rendered::from(&Problem::not_found("delivery"));
    Ok(found.map_or_else(missing, |found| rendered(StatusCode::ACCEPTED, found)))
}

fn rendered(status: StatusCode, Detail { listed, event, attempts }: Detail) -> Rendered {
    let detail = DeliveryDetail {
        view: listed.into(),
        payload: event.and_then(|event| RawValue::from_string(event.payload).ok()),
        attempts: attempts.into_iter().map(AttemptView::from).collect(),
    };
    json::render(status, &detail)
}

/// Redeliver a delivery
///
/// Adds one manual attempt with the same delivery id and the same bytes. This works in any state, even while the
/// webhook is disabled. A delivery that has succeeded stays succeeded. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/deliveries/{id}/redeliver/",
    tag = "Deliveries",
    params(("id" = String, Path, description = "The delivery's id.")),
    responses(
        (status = 202, description = "The delivery. The attempt follows.", body = DeliveryDetail),
        (status = 409, description = "Its webhook was deleted or its payload was erased."),
    ),
    security(("token" = ["webhooks"])),
)]
async fn redeliver(
    State(api): State<Api>,
    Id(id): Id<DeliveryId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let command = id.and_then(|id| plain.map(|()| Redeliver(id)));
    api.act_and_show(&caller, command, accepted).await
}
