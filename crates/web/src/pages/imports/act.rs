//! Starts, undoes, cancels or removes an import, and serves its error file.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_app::import::{CancelImport, ErrorFile, Purpose, RemoveImport, UndoImport, begin};
use rapport_domain::import::Request;

use super::{PATH, not_now, path_of, wanted};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};
use crate::shared::error_file;

/// Starts the import that the dry run has shown. If the form arrives twice, the second finds it started.
pub async fn start(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let id = wanted(&id)?;
    let begun = begin(pages.app(), &visitor.access(), id, Request::default(), (Purpose::Run, None)).await;
    Ok(match begun {
        Ok(_) => Redirect::to(&path_of(id)).into_response(),
        Err(error) => not_now(&pages, &visitor, id, error),
    })
}

pub async fn undo(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = wanted(&id)?;
    Ok(match pages.submit(&visitor, &form, UndoImport { id, runner: None }).await {
        Ok(_) => Redirect::to(&path_of(id)).into_response(),
        Err(error) => not_now(&pages, &visitor, id, error),
    })
}

/// Cancels a running import. One that has finished meanwhile stays as it is.
pub async fn cancel(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = wanted(&id)?;
    Ok(match pages.submit(&visitor, &form, CancelImport(id)).await {
        Ok(()) => {
            let text = "Import cancelled. Rows already imported stay until you undo them.";
            pages.done(&path_of(id), Flash::good(text))
        }
        Err(error) => not_now(&pages, &visitor, id, error),
    })
}

pub async fn remove(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = wanted(&id)?;
    Ok(match pages.submit(&visitor, &form, RemoveImport(id)).await {
        Ok(()) => pages.done(PATH, Flash::good("Import and file removed.")),
        Err(error) => not_now(&pages, &visitor, id, error),
    })
}

pub async fn errors(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let id = wanted(&id)?;
    let access = visitor.access();
    let verified = pages.app().read(&access, ADMIN, |_, _| Ok(())).await;
    verified.map_err(|error| visitor.refused(error))?;
    let file = ErrorFile::open(pages.app(), &access, id).await.map_err(|error| visitor.refused(error))?;
    Ok(error_file::respond(file))
}
