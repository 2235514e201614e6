//! An account's client activity, event by event.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::timeline::{KeptActivity, events};
use rapport_domain::id::AccountId;
use rapport_domain::time::Time;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id};
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'a';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(account_activity))
}

/// An accepted activity event.
#[derive(Serialize, ToSchema)]
struct ActivityItem {
    #[schema(example = "feature_used")]
    kind: String,
    #[schema(required = true, example = "reports.export")]
    feature: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Time,
    #[schema(value_type = String, format = DateTime)]
    received_at: Time,
    /// As sent.
    #[schema(required = true, value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
}

impl From<KeptActivity> for ActivityItem {
    fn from(kept: KeptActivity) -> Self {
        let KeptActivity { occurred_at, received_at, kind, feature, metadata, .. } = kept;
        let metadata = metadata.and_then(|text| RawValue::from_string(text).ok());
        Self { kind, feature, occurred_at, received_at, metadata }
    }
}

/// List an account's activity
///
/// Events accepted by ingest, latest `occurred_at` first.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/activity/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id."), requests::PageParameters),
    responses((status = 200, description = "A page of activity.", body = Page<ActivityItem>)),
    security(("token" = ["read"])),
)]
async fn account_activity(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(read_place);
    let limit = parameters.limit();
    let question = parameters.about(id);
    let found = api.read(&caller, READ, question, move |snapshot, _, id| events(snapshot, id, before, limit));
    let page = found.await?.reply.ok_or_else(|| Problem::not_found("account"))?;
    let next_cursor = page.items.last().filter(|_| page.more).map(write_place);
    let items: Vec<ActivityItem> = page.items.into_iter().map(ActivityItem::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

fn write_place(last: &KeptActivity) -> String {
    let (at, seq) = (last.occurred_at.as_micros().to_be_bytes(), last.seq.to_be_bytes());
    write_cursor(LIST, [at, seq].as_flattened())
}

fn read_place(text: &str) -> Option<(Time, i64)> {
    let place: [u8; 16] = read_cursor(LIST, text)?;
    let (at, seq) = place.split_first_chunk::<8>()?;
    Some((Time::from_micros(i64::from_be_bytes(*at)), i64::from_be_bytes(seq.try_into().ok()?)))
}
