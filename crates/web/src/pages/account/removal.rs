//! Deletes an account or erases its payloads. Neither can be undone, so the page asks first.

use axum::response::Response;
use rapport_app::Error;
use rapport_app::account::DeleteAccount;
use rapport_app::erasure::ErasePayloads;
use rapport_domain::id::AccountId;

use super::page::AccountPage;
use super::words::short;
use super::{before, path_of};
use crate::pages::DELETE;
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::refusal::Refusal;
use crate::pages::words::number::counted;

pub async fn delete(action: Action<AccountId>) -> Result<Response, Refusal> {
    let name = short(&before(&action, DELETE).await?.reply.name);
    action.act::<AccountPage, _>(DeleteAccount(action.id)).await?;
    action.done("/accounts", format!("{name} deleted."))
}

pub async fn erase_payloads(action: Action<AccountId>) -> Result<Response, Refusal> {
    let erased = action.settle(erase(&action).await, banner::<AccountPage>).await?;
    let payloads = counted(i64::try_from(erased).unwrap_or(i64::MAX), "payload", "payloads");
    action.done(&path_of(action.id), format!("{payloads} erased from the delivery history."))
}

/// Erases in as many steps as it takes. Only the first carries the form id.
async fn erase(action: &Action<AccountId>) -> Result<usize, Error> {
    let (account, visitor) = (action.id, &action.visitor);
    let mut step = action.submit(ErasePayloads { account, after: None }).await?;
    let mut erased = step.erased;
    while step.next.is_some() {
        let next = ErasePayloads { account, after: step.next };
        step = action.pages.write_as(&visitor.access(), visitor.origin, next).await?;
        erased += step.erased;
    }
    Ok(erased)
}
