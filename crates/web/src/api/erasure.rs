//! Erasure of an account's payloads from the delivery history, and of its values from the audit log.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rapport_app::erasure::{EndErasure, erase_payloads as erase};
use rapport_domain::erasure::{Erased, KeptRows, RemovedRows};
use rapport_domain::id::AccountId;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Id, PlainCall};
use crate::api::{Api, DELETE};
use crate::edge::json;
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(erase_payloads))
}

#[derive(Serialize, ToSchema)]
struct ErasedPayloads {
    /// The number of erased payloads.
    erased: u64,
    /// What was removed, by table.
    removed: Vec<RemovedRows>,
    /// What was kept without it, by table, and why.
    kept: Vec<KeptRows>,
}

impl From<Erased> for ErasedPayloads {
    fn from(erased: Erased) -> Self {
        Self { erased: erased.payloads, removed: erased.removed().to_vec(), kept: erased.kept().to_vec() }
    }
}

/// Erase an account's payloads
///
/// Removes the payloads of its events and the responses of receivers from the delivery history, and replaces the
/// account's names and values in the audit log. It also removes what corrections of its contacts, messages and notes
/// keep to undo them. The metadata of all of them is kept. Open deliveries end as `failed` with the
/// error `payload_erased`. This works for a deleted account too. The response and the audit log say how many rows of each
/// table that was.
#[utoipa::path(
    post,
    path = "/api/accounts/{id}/erase-payloads/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id.")),
    responses((status = 200, description = "What was removed and what was kept.", body = ErasedPayloads)),
    security(("token" = ["delete"])),
)]
async fn erase_payloads(
    State(api): State<Api>,
    Id(id): Id<AccountId>,
    call: PlainCall,
) -> Result<Response, Problem> {
    let (caller, plain) = call.command(());
    let account = match id.and_then(|id| plain.map(|()| id)) {
        Ok(account) => account,
        Err(problem) => {
            api.verify(&caller, DELETE).await?;
            return Err(problem);
        }
    };
    if let Some(response) = api.recalled(&caller, DELETE).await? {
        return Ok(response);
    }
    // Erasing what is already erased does nothing, so it is enough to keep the response when all of it is done.
    let erased = erase(api.app(), &caller.access(), account).await;
    let erased = api.settle(&caller, erased)?;
    let render = move |()| json::render(StatusCode::OK, &ErasedPayloads::from(erased));
    if caller.repeat.is_some() {
        return api.act(&caller, Ok(EndErasure), render).await;
    }
    Ok(render(()).into_response())
}
