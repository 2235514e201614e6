//! The latest rejected activity events.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::ingest::{self, Reject};
use rapport_domain::id::RejectId;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{Api, KEYS, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'j';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_ingest_rejects))
}

/// A rejected activity event.
#[derive(Serialize, ToSchema)]
#[schema(as = IngestReject)]
struct RejectView {
    #[schema(value_type = String, example = "rej_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: RejectId,
    /// When its batch arrived.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Its index in the batch.
    index: i64,
    /// Its `imported_id`, or its `account_id` if it had no `imported_id`, as sent.
    #[schema(required = true, example = "crm-1001")]
    account: Option<String>,
    /// As sent.
    #[schema(required = true, example = "feature_used")]
    kind: Option<String>,
    #[schema(example = "required")]
    code: String,
    #[schema(example = "feature")]
    field: String,
    #[schema(example = "is required when kind is feature_used")]
    detail: String,
}

impl From<Reject> for RejectView {
    fn from(Reject { id, at, place, account, kind, code, field, detail }: Reject) -> Self {
        Self { id, at, index: place, account, kind, code, field, detail }
    }
}

/// List rejected events
///
/// Newest first. Up to 20 events per batch and the latest 200 in total are kept, for 90 days. Batches that were refused
/// as a whole are not included. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/settings/ingest-key/rejects/",
    tag = "Settings",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of rejected events.", body = Page<RejectView>)),
    security(("token" = ["keys"])),
)]
async fn list_ingest_rejects(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(RejectId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, KEYS, parameters.finish(), move |snapshot, _, ()| {
        ingest::rejects(snapshot, before, limit)
    });
    let page = found.await?.reply;
    let next_cursor =
        page.items.last().filter(|_| page.more).map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items: Vec<RejectView> = page.items.into_iter().map(RejectView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}
