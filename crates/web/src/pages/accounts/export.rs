//! Exports the list as CSV: the accounts of all its pages, with the columns that are shown.

use axum::extract::{RawQuery, State};
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use rapport_app::Answer;
use rapport_store::account_list::Sort;

use crate::pages::accounts::asked::Asked;
use crate::pages::accounts::zone;
use crate::pages::kit::form::Form;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};
use crate::shared::export::{self, Column as Exported};

pub async fn export(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let (asked, _) = Asked::read(&Form::of_query(query.as_deref()));
    let (access, now) = (visitor.access(), pages.app().now());
    let found = pages.app().read(&access, MEMBER, move |snapshot, _| {
        let zone = zone(snapshot)?;
        let filter = match asked.filter(&zone) {
            Ok(filter) => filter,
            Err(problem) => return Ok(Err(problem)),
        };
        let named = ["name", "imported_id"].map(Exported::Member);
        let columns =
            named.into_iter().chain(asked.columns().into_iter().flat_map(|column| column.exported()));
        let newest_first = asked.sort() == Sort::Newest;
        export::begin_with(snapshot, filter, columns.collect(), newest_first, now).map(Ok)
    });
    let Answer { reply, company, now } = found.await.map_err(|error| visitor.refused(error))?;
    let begun = Answer { reply: reply.map_err(Refusal::Page)?, company, now };
    let mut response = export::respond(pages.app(), access, "accounts", begun);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
