//! Exports the list as CSV: the accounts of all its pages, with the columns that are shown.

use axum::extract::{RawQuery, State};
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use rapport_app::Answer;
use rapport_app::read::accounts::Sort;
use rapport_app::read::export::Extent;

use crate::pages::accounts::asked::Asked;
use crate::pages::kit::form::Form;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};
use crate::shared::export::{self, Begun, Column as Exported};

pub async fn export(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let (asked, _) = Asked::read(&Form::of_query(query.as_deref()));
    let access = visitor.access();
    let columns = asked.columns().into_iter().flat_map(|column| column.exported());
    let columns = ["name", "imported_id"].map(Exported::Member).into_iter().chain(columns).collect();
    let found =
        pages.app().read(&access, MEMBER, move |snapshot, viewer| match asked.filter(viewer.zone()) {
            Ok(filter) => {
                let extent = Extent::new(viewer, filter, asked.sort() == Sort::Newest);
                let page = extent.page(snapshot, None)?;
                Ok(Ok((extent, page)))
            }
            Err(problem) => Ok(Err(problem)),
        });
    let Answer { reply, company, now } = found.await.map_err(|error| visitor.refused(error))?;
    let (extent, page) = reply.map_err(Refusal::Page)?;
    let begun = Answer { reply: Begun::chosen(extent, columns, page), company, now };
    let mut response = export::respond(pages.app(), access, "accounts", begun);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
