//! Everything about one account, as a file.

use axum::extract::State;
use axum::response::Response;
use rapport_app::{Answer, Needs};
use rapport_domain::id::AccountId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Caller, Id};
use crate::api::{Api, requests};
use crate::edge::problem::Problem;
use crate::shared::ACCOUNT_DATA;
use crate::shared::full_export::{Wanted, format, respond};
use crate::shared::parameters::Parameters;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(export_account))
}

/// Export everything about an account
///
/// Returns the account and all rows about it: addresses, history, contacts, conversations and messages, activity, imports,
/// events with their deliveries and attempts, and its entries of the audit log. The file types are those of
/// `GET company/export/`. This works for a deleted account too, as long as something about it is stored. The export is
/// recorded in the audit log. Requires the admin role.
#[utoipa::path(
    get,
    path = "/api/accounts/{id}/export/",
    tag = "Accounts",
    params(("id" = String, Path, description = "The account's id."), requests::FullExportParameters),
    responses((status = 200, description = "Everything about the account.", content(
        (String = "application/jsonl"),
        (inline(requests::Archive) = "application/zip"),
    ))),
    security(("token" = ["account_data"])),
)]
async fn export_account(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id<AccountId>,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let format = format(&mut parameters);
    let wanted = id.and_then(|id| parameters.finish().map(|()| Wanted { account: Some(id), format }));
    api.export_whole(&caller, ACCOUNT_DATA, wanted).await
}

impl Api {
    /// Sends everything about a company or an account, after recording that.
    pub(super) async fn export_whole(
        &self,
        caller: &Caller,
        needs: Needs,
        wanted: Result<Wanted, Problem>,
    ) -> Result<Response, Problem> {
        let found = self.read(caller, needs, wanted, |snapshot, _, wanted| wanted.begin(snapshot)).await?;
        let Answer { reply, company, now } = found;
        let begun = reply.ok_or_else(|| Problem::not_found("account"))?;
        self.write(caller, Ok(begun.record())).await?;
        let answer = respond(self.app(), caller.access(), Answer { reply: begun, company, now });
        self.settle(caller, answer)
    }
}
