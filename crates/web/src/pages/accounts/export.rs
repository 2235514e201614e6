//! Exports the list as CSV: the accounts of all its pages, with the columns that are shown.

use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use rapport_app::Answer;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::read::accounts::Sort;
use rapport_app::read::export::Extent;

use crate::pages::EXPORT;
use crate::pages::accounts::asked::Asked;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::shared::export::{self, Begun, Column};

pub async fn export(visit: Visit) -> Result<Response, Refusal> {
    let (asked, _) = Asked::read(&visit.query);
    let access = visit.visitor.access();
    let columns = asked.columns().into_iter().flat_map(|column| column.exported());
    let columns = ["name", "imported_id"].map(Column::Member).into_iter().chain(columns).collect();
    let found =
        visit.pages.app().read(&access, EXPORT, move |snapshot, viewer| match asked.filter(viewer.zone()) {
            Ok(filter) => {
                let extent = Extent::new(viewer, filter, asked.sort() == Sort::NEWEST);
                let page = extent.page(snapshot, None)?;
                Ok(Ok((extent, page)))
            }
            Err(problem) => Ok(Err(problem)),
        });
    let Answer { reply, company, now } = found.await.map_err(|error| visit.visitor.refused(error))?;
    let (extent, page) = reply.map_err(Refusal::Page)?;
    let (what, filter) = (Exported::Accounts, visit.query.to_query());
    visit.write(RecordExport { what, format: "csv", filter }).await?;
    let begun = Answer { reply: Begun::chosen(extent, columns, page), company, now };
    let mut response = export::respond(visit.pages.app(), access, "accounts", begun);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
