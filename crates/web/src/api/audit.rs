//! The audit log. It can only be read: no endpoint changes or deletes an entry.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::read::audit;
use rapport_domain::audit::{Filter, Wanted, person_id};
use rapport_domain::file_format::Format;
use rapport_domain::id::AuditId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{AUDIT, Api, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::audit::{AuditView, Extent, respond};
use crate::shared::paging::Page;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

const LIST: u8 = b'u';

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_audit)).routes(routes!(export_audit))
}

/// List the audit log
///
/// Newest first. Entries must match all filters. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/audit/",
    tag = "Audit",
    params(requests::AuditFilterParameters, requests::PageParameters),
    responses((status = 200, description = "A page of the log.", body = Page<AuditView>)),
    security(("token" = ["audit"])),
)]
async fn list_audit(
    State(api): State<Api>,
    caller: Caller,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let filter = filter(&mut parameters);
    let before = parameters.cursor(|text| read_cursor(LIST, text).map(AuditId::from_bytes));
    let limit = parameters.limit();
    let found = api.read(&caller, AUDIT, parameters.finish(), move |snapshot, _, ()| {
        audit::list(snapshot, &filter, before, limit)
    });
    let page = found.await?.reply;
    let next_cursor =
        page.items.last().filter(|_| page.more).map(|last| write_cursor(LIST, last.id.as_bytes()));
    let items: Vec<AuditView> = page.items.into_iter().map(AuditView::from).collect();
    Ok(json::respond(StatusCode::OK, &Page { items, next_cursor }))
}

/// Export the audit log
///
/// Returns the entries that match the filters, newest first, as CSV or as one JSON object per line. The export is itself
/// recorded. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/audit/export/",
    tag = "Audit",
    params(requests::AuditFilterParameters, requests::AuditExportParameters),
    responses((status = 200, description = "The entries.", content(
        (String = "text/csv"),
        (String = "application/jsonl"),
    ))),
    security(("token" = ["audit"])),
)]
async fn export_audit(
    State(api): State<Api>,
    caller: Caller,
    RawQuery(query): RawQuery,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let filter = filter(&mut parameters);
    let format = parameters.optional("format", Format::parse).unwrap_or(Format::Csv);
    let extent = parameters.finish().map(|()| Extent { filter, format });
    let begun = api.read(&caller, AUDIT, extent, |snapshot, _, extent| extent.begin(snapshot)).await?;
    let what = Exported::Audit;
    let record = RecordExport { what, format: format.as_str(), filter: query.unwrap_or_default() };
    api.write(&caller, Ok(record)).await?;
    Ok(respond(api.app(), caller.access(), begun))
}

fn filter(parameters: &mut Parameters) -> Filter {
    Filter {
        person: parameters.optional("person", person_id),
        action: parameters.optional("action", Wanted::parse),
        hides_logins: parameters.boolean("logins") == Some(false),
        from: parameters.time("from"),
        to: parameters.time("to"),
    }
}
