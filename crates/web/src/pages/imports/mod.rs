//! The import wizard: upload a CSV file, map its columns, check a dry run, run the import, and undo it if needed.
//! `/imports/{id}` shows the current step of an import. Every step survives a reload.

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
use rapport_app::read::import::one;
use rapport_domain::id::ImportId;
use rapport_domain::import::Import;

use crate::pages::kit::draft::sentence;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::frame::Shown;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

/// The list, and the target of the upload.
pub const PATH: &str = "/imports";

pub fn routes() -> Router<Pages> {
    // Uploads have their own size limit.
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

/// Parses the id in an address. An invalid one is not found.
fn wanted(segment: &str) -> Result<ImportId, Refusal> {
    segment.parse().map_err(|_| Refusal::not_found("import"))
}

async fn find(pages: &Pages, visitor: &Visitor, id: ImportId) -> Result<Shown<Import>, Refusal> {
    let Shown { frame, reply } = pages.show(visitor, ADMIN, move |snapshot, _| one(snapshot, id)).await?;
    let reply = reply.ok_or_else(|| Refusal::not_found("import"))?;
    Ok(Shown { frame, reply })
}

/// Shows the import with a message if it cannot do what was asked in its current state.
fn not_now(pages: &Pages, visitor: &Visitor, id: ImportId, error: Error) -> Response {
    match error {
        Error::Conflict { detail, .. } => pages.done(&path_of(id), Flash::bad(sentence(&detail))),
        error => visitor.refused(error).into_response(),
    }
}
