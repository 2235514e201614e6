//! The company as a whole: the export of all its data.

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{Api, requests};
use crate::edge::problem::Problem;
use crate::shared::COMPANY;
use crate::shared::full_export::{Wanted, format};
use crate::shared::parameters::Parameters;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(export_company))
}

/// Export all data
///
/// Returns everything that the company stored, except for secrets.
///
/// With `format=jsonl`, it is one JSON object on each line: a line about the file, a line for each row with `table` and
/// `row`, and a last line with `end` and the number of rows. With `format=csv`, it is a ZIP archive with a CSV file for
/// each table, and `manifest.json`, which has the same as the last line, as its last file. A file without its last line
/// or its manifest is incomplete. The export is recorded in the audit log.
#[utoipa::path(
    get,
    path = "/api/company/export/",
    tag = "Settings",
    params(requests::FullExportParameters),
    responses((status = 200, description = "All data.", content(
        (String = "application/jsonl"),
        (inline(requests::Archive) = "application/zip"),
    ))),
    security(("token" = ["company"])),
)]
async fn export_company(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let format = format(&mut parameters);
    let wanted = parameters.finish().map(|()| Wanted { account: None, format });
    api.export_whole(&caller, COMPANY, wanted).await
}
