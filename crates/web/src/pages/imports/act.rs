//! Starts, undoes, cancels or removes an import, and serves its error file.

use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_app::import::{CancelImport, ErrorFile, Purpose, RemoveImport, UndoImport, begin};
use rapport_domain::id::ImportId;
use rapport_domain::import::Request;

use super::one::ImportPage;
use super::{PATH, path_of};
use crate::pages::EXPORT;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::shared::error_file;

/// Starts the import that the dry run has shown. If the form arrives twice, the second finds it started.
pub async fn start(action: Action<ImportId>) -> Result<Response, Refusal> {
    let (app, access) = (action.pages.app(), action.visitor.access());
    let begun = begin(app, &access, action.id, Request::default(), (Purpose::Run, None)).await;
    action.settle(begun, banner::<ImportPage>).await?;
    Ok(Redirect::to(&path_of(action.id)).into_response())
}

pub async fn undo(action: Action<ImportId>) -> Result<Response, Refusal> {
    action.act::<ImportPage, _>(UndoImport { id: action.id, runner: None }).await?;
    Ok(Redirect::to(&path_of(action.id)).into_response())
}

/// Cancels a running import. One that has finished meanwhile stays as it is.
pub async fn cancel(action: Action<ImportId>) -> Result<Response, Refusal> {
    action.act::<ImportPage, _>(CancelImport(action.id)).await?;
    action.done(&path_of(action.id), "Import cancelled. Rows already imported stay until you undo them.")
}

pub async fn remove(action: Action<ImportId>) -> Result<Response, Refusal> {
    action.act::<ImportPage, _>(RemoveImport(action.id)).await?;
    action.done(PATH, "Import and file removed.")
}

pub async fn errors(visit: Visit<ImportId>) -> Result<Response, Refusal> {
    visit.frame(EXPORT).await?;
    let file = ErrorFile::open(visit.pages.app(), &visit.visitor.access(), visit.id).await;
    Ok(error_file::respond(file.map_err(|error| visit.visitor.refused(error))?))
}
