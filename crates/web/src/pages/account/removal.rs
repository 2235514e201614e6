//! Deletes an account or erases its payloads. Neither can be undone, so the page asks first.

use axum::extract::{Path, State};
use axum::response::Response;
use rapport_app::Error;
use rapport_app::account::DeleteAccount;
use rapport_app::erasure::ErasePayloads;
use rapport_domain::id::AccountId;

use super::words::short;
use super::{account_id, before, path_of};
use crate::pages::Pages;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::words::number::counted;

pub async fn delete(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let name = short(&before(&pages, &visitor, id).await?.reply.name);
    let deleted = pages.submit(&visitor, &form, DeleteAccount(id)).await;
    deleted.map_err(|error| visitor.refused(error))?;
    Ok(pages.done("/accounts", Flash::good(format!("{name} deleted."))))
}

pub async fn erase_payloads(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = account_id(&id)?;
    let erased = erase(&pages, &visitor, &form, id).await.map_err(|error| visitor.refused(error))?;
    let payloads = counted(i64::try_from(erased).unwrap_or(i64::MAX), "payload", "payloads");
    Ok(pages.done(&path_of(id), Flash::good(format!("{payloads} erased from the delivery history."))))
}

/// Erases in as many steps as it takes. Only the first carries the form id.
async fn erase(pages: &Pages, visitor: &Visitor, form: &Form, account: AccountId) -> Result<usize, Error> {
    let mut step = pages.submit(visitor, form, ErasePayloads { account, after: None }).await?;
    let mut erased = step.erased;
    while step.next.is_some() {
        let next = ErasePayloads { account, after: step.next };
        step = pages.write_as(&visitor.access(), visitor.address, next).await?;
        erased += step.erased;
    }
    Ok(erased)
}
