//! The company as a whole: the export of all its data.

use axum::extract::State;
use axum::response::Response;
use rapport_app::export::{Exported, RecordExport};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::api::call::Caller;
use crate::edge::problem::Problem;
use crate::shared::company_export::{begin, respond};

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(export_company))
}

/// Export all data
///
/// Returns everything that the company stored, except for secrets, as one JSON object on each line: a line about the
/// file, a line for each row with `table` and `row`, and a last line with `end` and the number of rows. A file without
/// that last line is incomplete. The export is recorded in the audit log.
#[utoipa::path(
    get,
    path = "/api/company/export/",
    tag = "Settings",
    responses((status = 200, description = "All data.", content((String = "application/jsonl")))),
    security(("token" = ["company"])),
)]
async fn export_company(State(api): State<Api>, caller: Caller) -> Result<Response, Problem> {
    let begun = begin(api.app(), &caller.access()).await;
    let begun = api.settle(&caller, begun)?;
    api.write(&caller, Ok(RecordExport::whole(Exported::Company, "jsonl"))).await?;
    Ok(respond(api.app(), caller.access(), begun))
}
