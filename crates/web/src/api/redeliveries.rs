//! Bulk redelivery: preview, start, follow and cancel.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::redelivery::{self, CancelRedelivery, Counted, Progress, StartRedelivery};
use rapport_domain::id::RedeliveryId;
use rapport_domain::redelivery::Request;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller, Id};
use crate::api::{Api, WEBHOOKS, requests};
use crate::edge::json;
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(redeliver_many)).routes(routes!(get_redelivery, cancel_redelivery))
}

/// How many deliveries match a filter.
#[derive(Serialize, ToSchema)]
#[schema(as = RedeliveryPreview)]
struct PreviewView {
    /// Exact up to 100,000.
    count: i64,
    /// True if there may be more than `count`.
    capped: bool,
}

/// A bulk redelivery.
#[derive(Serialize, ToSchema)]
#[schema(as = Redelivery)]
struct RedeliveryView {
    #[schema(value_type = String, example = "rdl_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: RedeliveryId,
    #[schema(value_type = rapport_domain::redelivery::State)]
    state: &'static str,
    /// How many deliveries matched at the start (counting stops at a limit). Once finished, how many were found.
    total: i64,
    /// Attempts requested so far.
    queued: i64,
    /// Attempts made.
    done: i64,
    /// Some attempts are waiting for an auto-disabled webhook. They are made once it is enabled.
    paused: bool,
    /// Deliveries skipped because their webhook was deleted or their payload was erased.
    skipped: i64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    finished_at: Option<Time>,
}

impl RedeliveryView {
    fn new(Progress { redelivery, unmade, paused }: &Progress) -> Self {
        Self {
            id: redelivery.id,
            state: redelivery.state().as_str(),
            total: redelivery.total,
            queued: redelivery.queued,
            done: (redelivery.queued - unmade).max(0),
            paused: *paused,
            skipped: redelivery.skipped,
            created_at: redelivery.created_at,
            finished_at: redelivery.finished_at.or(redelivery.cancelled_at),
        }
    }
}

/// Bulk redeliver
///
/// Adds one attempt to every delivery that matches the filter, newest first, in the background. At least one
/// filter is required. With `preview`, deliveries are only counted. Attempts for an auto-disabled webhook wait
/// until it is enabled. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/deliveries/redeliver/",
    tag = "Deliveries",
    request_body = requests::RedeliverMany,
    responses(
        (status = 200, description = "With `preview`: how many deliveries match.", body = PreviewView),
        (status = 202, description = "Started.", body = RedeliveryView),
    ),
    security(("token" = ["webhooks"])),
)]
async fn redeliver_many(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, request) = call.parse(Request::parse);
    let Request { filter, preview } = match request {
        Ok(request) => request,
        Err(problem) => {
            api.verify(&caller, WEBHOOKS).await?;
            return Err(problem);
        }
    };
    if !preview && let Some(response) = api.recalled(&caller, WEBHOOKS).await? {
        return Ok(response);
    }
    let counted = redelivery::count(api.app(), &caller.access(), filter).await;
    let Counted { count, capped } = api.settle(&caller, counted)?;
    if preview {
        return Ok(json::respond(StatusCode::OK, &PreviewView { count, capped }));
    }
    let render = |started| {
        let begun = Progress { redelivery: started, unmade: 0, paused: false };
        json::render(StatusCode::ACCEPTED, &RedeliveryView::new(&begun))
    };
    api.act(&caller, Ok(StartRedelivery { filter, total: count }), render).await
}

/// Follow a bulk redelivery
///
/// Its state, and how many deliveries it has sent again.
#[utoipa::path(
    get,
    path = "/api/deliveries/redeliver/{id}/",
    tag = "Deliveries",
    params(("id" = String, Path, description = "The bulk redelivery's id.")),
    responses((status = 200, description = "The progress of the bulk redelivery.", body = RedeliveryView)),
    security(("token" = ["webhooks"])),
)]
async fn get_redelivery(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<RedeliveryId>,
) -> Result<Response, Problem> {
    let found = api.read(&caller, WEBHOOKS, id, |snapshot, _, id| redelivery::progress(snapshot, id));
    let progress = found.await?.reply.ok_or_else(|| Problem::not_found("redelivery"))?;
    Ok(json::respond(StatusCode::OK, &RedeliveryView::new(&progress)))
}

/// Cancel a bulk redelivery
///
/// Attempts that have not started are withdrawn, including those already queued for sending. Requests in progress
/// are completed.
#[utoipa::path(
    delete,
    path = "/api/deliveries/redeliver/{id}/",
    tag = "Deliveries",
    params(("id" = String, Path, description = "The bulk redelivery's id.")),
    responses((status = 204, description = "Cancelled, or already finished.")),
    security(("token" = ["webhooks"])),
)]
async fn cancel_redelivery(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<RedeliveryId>,
) -> Result<Response, Problem> {
    api.write(&caller, id.map(CancelRedelivery)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
