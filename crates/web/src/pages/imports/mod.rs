//! The import wizard: a CSV file is uploaded, somebody says what its columns are, a dry run says what it would do, then
//! it runs, and it can be undone. `/imports/{id}` shows the step that an import is in; every step survives a reload.

mod act;
mod columns;
mod leash;
mod list;
mod show;
mod upload;
mod words;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_domain::id::ImportId;
use rapport_domain::import::Import;
use rapport_store::import;

use crate::pages::draft::sentence;
use crate::pages::flash::Flash;
use crate::pages::frame::Shown;
use crate::pages::refusal::Refusal;
use crate::pages::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

/// The list, and where a file is sent.
pub const PATH: &str = "/imports";

pub fn routes() -> Router<Pages> {
    // An upload keeps to a limit of its own.
    let list = get(list::show).post(upload::upload).layer(DefaultBodyLimit::disable());
    Router::new()
        .route(PATH, list)
        .route("/imports/{id}", get(show::show))
        .route("/imports/{id}/columns", get(columns::show).post(columns::try_out))
        .route("/imports/{id}/layout", post(columns::read_again))
        .route("/imports/{id}/start", post(act::start))
        .route("/imports/{id}/cancel", post(act::cancel))
        .route("/imports/{id}/undo", post(act::undo))
        .route("/imports/{id}/remove", post(act::remove))
        .route("/imports/{id}/errors", get(act::errors))
}

fn path_of(id: ImportId) -> String {
    format!("{PATH}/{id}")
}

/// The id in an address; whoever makes one up finds nothing.
fn wanted(segment: &str) -> Result<ImportId, Refusal> {
    segment.parse().map_err(|_| Refusal::not_found("import"))
}

async fn find(pages: &Pages, visitor: &Visitor, id: ImportId) -> Result<Shown<Import>, Refusal> {
    let Shown { frame, reply } =
        pages.show(visitor, ADMIN, move |snapshot| import::get(snapshot, id)).await?;
    let reply = reply.ok_or_else(|| Refusal::not_found("import"))?;
    Ok(Shown { frame, reply })
}

/// What an import cannot do now is said on the page of what it does.
fn not_now(pages: &Pages, visitor: &Visitor, id: ImportId, error: Error) -> Response {
    match error {
        Error::Conflict { detail, .. } => pages.done(&path_of(id), Flash::bad(sentence(&detail))),
        error => visitor.refused(error).into_response(),
    }
}
