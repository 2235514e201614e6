//! Starts, undoes, cancels or removes an import, and serves its error file.

use axum::response::{IntoResponse as _, Redirect, Response};
use rapport_app::Error;
use rapport_app::import::{self, CancelImport, ErrorFile, Purpose, RemoveImport, UndoImport, begin};
use rapport_domain::id::ImportId;
use rapport_domain::import::{Import, Request};

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

/// Uploads the rows that failed as a file of their own, and leads to the column that can fix them.
pub async fn retry(action: Action<ImportId>) -> Result<Response, Refusal> {
    let uploaded = try_again(&action).await;
    let uploaded = action.settle(uploaded, banner::<ImportPage>).await?;
    let place: String = action.form.text("place").chars().filter(|letter| is_plain(*letter)).collect();
    action.done(
        &format!("{}/columns#{place}", path_of(uploaded.id)),
        "Only the rows that failed are in this file. Change the columns and start again.",
    )
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

async fn try_again(action: &Action<ImportId>) -> Result<Import, Error> {
    let form = action.form.id()?;
    import::retry(action.pages.app(), &action.visitor.access(), action.id, form).await
}

pub async fn errors(visit: Visit<ImportId>) -> Result<Response, Refusal> {
    visit.frame(EXPORT).await?;
    let file = ErrorFile::open(visit.pages.app(), &visit.visitor.access(), visit.id).await;
    Ok(error_file::respond(file.map_err(|error| visit.visitor.refused(error))?))
}
