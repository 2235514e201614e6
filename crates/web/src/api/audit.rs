//! The audit log: who changed settings, keys, members and channels.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::audit::{self, AuditEntry};
use rapport_domain::history::Actor;
use rapport_domain::id::AuditId;
use rapport_domain::time::Time;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{ADMIN, Api, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'u';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_audit))
}

/// A change, with who made it, when and from where.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct AuditView {
    #[schema(value_type = String, example = "aud_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: AuditId,
    actor: Actor,
    #[schema(example = "settings.changed")]
    action: String,
    /// The id of the changed object.
    #[schema(required = true)]
    target: Option<String>,
    /// What was changed; never a secret.
    #[schema(required = true, value_type = Option<Object>)]
    detail: Option<Box<RawValue>>,
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// The network address the request came from. Null for the command line and the service itself.
    #[schema(required = true, example = "192.0.2.7")]
    address: Option<String>,
    /// The `X-Request-Id` of that request. Null for the command line, the service itself and older entries.
    #[schema(required = true, example = "5b0f2c1e-1a")]
    request_id: Option<String>,
}

impl From<AuditEntry> for AuditView {
    fn from(AuditEntry { id, actor, action, target, detail, at, address, request_id }: AuditEntry) -> Self {
        let detail = RawValue::from_string(detail).ok();
        Self { id, actor, action, target, detail, at, address, request_id }
    }
}

/// List the audit log
///
/// Newest first. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/audit/",
    tag = "Audit",
    params(requests::PageParameters),
    responses((status = 200, description = "A page of the log.", body = Page<AuditView>)),
    security(("token" = ["admin"])),
)]
async fn list_audit(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(AuditId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, ADMIN, parameters.finish(), move |snapshot, _, ()| {
        audit::list(snapshot, before, limit)
    });
    let page = found.await?.reply;
    let next_cursor =
        page.items.last().filter(|_| page.more).map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items: Vec<AuditView> = page.items.into_iter().map(AuditView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}
