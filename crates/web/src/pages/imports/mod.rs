//! The import wizard: upload a CSV file, map its columns, check a dry run, run the import, and undo it if needed.
//! `/imports/{id}` shows the current step of an import. Every step survives a reload.

mod act;
mod columns;
mod format_choice;
mod leash;
mod list;
mod one;
mod upload;
mod word_choice;
mod words;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::read::import;
use rapport_domain::id::ImportId;
use rapport_domain::import::Import;

use crate::pages::imports::columns::ColumnsPage;
use crate::pages::imports::list::ListPage;
use crate::pages::imports::one::ImportPage;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::frame::Shown;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Visit, show};
use crate::pages::{IMPORT, Pages};

/// The list, and the target of the upload.
pub const PATH: &str = "/imports";

pub fn routes() -> Router<Pages> {
    // Uploads have their own size limit.
    let list = get(show::<ListPage, ()>).post(upload::upload).layer(DefaultBodyLimit::disable());
    Router::new()
        .route(PATH, list)
        .route("/imports/{id}", get(one::show))
        .route("/imports/{id}/columns", get(columns::show).post(columns::try_out))
        .route("/imports/{id}/layout", post(columns::read_again))
        .route("/imports/{id}/start", post(act::start))
        .route("/imports/{id}/cancel", post(act::cancel))
        .route("/imports/{id}/undo", post(act::undo))
        .route("/imports/{id}/remove", post(act::remove))
        .route("/imports/{id}/retry", post(act::retry))
        .route("/imports/{id}/errors", get(act::errors))
}

fn path_of(id: ImportId) -> String {
    format!("{PATH}/{id}")
}

async fn find(visit: &Visit<ImportId>) -> Result<Shown<Import>, Refusal> {
    let id = visit.id;
    let Shown { frame, reply } = visit.read(IMPORT, move |snapshot, _| import::one(snapshot, id)).await?;
    let reply = reply.ok_or_else(|| Refusal::not_found("import"))?;
    Ok(Shown { frame, reply })
}

/// A conflict is about the state of the import, so the import's page says it. A fault is about the form.
async fn settle(
    action: &Action<ImportId>,
    done: Result<(), Error>,
    put: impl FnOnce(&mut ColumnsPage, Draft) + Send,
) -> Result<(), Refusal> {
    match done {
        Err(error @ Error::Conflict { .. }) => action.settle(Err(error), banner::<ImportPage>).await,
        done => action.settle(done, put).await,
    }
}
