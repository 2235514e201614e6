//! The documented upsert: an account change keyed by the customer's own record id.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::upsert::{Upsert, Upserted, foreign_project};
use rapport_domain::account::{self, AccountView};
use rapport_domain::invalid::Invalid;
use rapport_domain::policy::Outcome;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller};
use crate::api::{Api, WORK, requests};
use crate::edge::json::{self, Object, Rendered};
use crate::edge::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(upsert_by_imported_id))
}

/// The account after an upsert, and what the upsert did.
#[derive(Serialize, ToSchema)]
pub struct UpsertReply<'a> {
    account: AccountView<'a>,
    created: bool,
    /// The fields of the account that changed.
    #[schema(example = json!(["status", "custom_fields"]))]
    changed: &'a [&'static str],
    /// Fields that were sent but not used.
    #[schema(example = json!(["name"]))]
    ignored: &'a [&'static str],
    /// Whether `promo_code` matched an active code of the company.
    promo_code_matched: bool,
    /// What came of `name`. Only if you sent it and name a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_outcome: Option<Outcome>,
    /// What came of `status`. Only if you sent it and name a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_outcome: Option<Outcome>,
}

impl<'a> UpsertReply<'a> {
    pub fn of(upserted: &'a Upserted) -> Self {
        let Upserted { account, created, changed, ignored, promo_code_matched, outcomes, settings, now } =
            upserted;
        Self {
            account: account.view(settings, *now),
            created: *created,
            changed,
            ignored,
            promo_code_matched: *promo_code_matched,
            name_outcome: outcomes.name,
            status_outcome: outcomes.status,
        }
    }
}

/// The status of the response to an upsert.
pub fn status_of(upserted: &Upserted) -> StatusCode {
    if upserted.created { StatusCode::CREATED } else { StatusCode::OK }
}

/// Create or change an account by its external record id
///
/// Finds the account by `imported_id` and changes only the fields you send. If there is no such account, it is
/// created. Safe to repeat: an unchanged status adds no history and fires no event. `name` is used only when the
/// account is created; on an existing account it is not changed and is listed under `ignored`, whatever it is, unless
/// `name_policy` is `update`. With `status_policy` `forward`, a status never moves an account backwards, so that a
/// nightly re-sync doesn't undo what activity did. A `promo_code` that doesn't match never fails the request. Unknown
/// members are ignored.
#[utoipa::path(
    post,
    path = "/api/accounts/upsert-by-imported-id/",
    tag = "Upsert and ingest",
    request_body = requests::UpsertRequest,
    responses(
        (status = 200, description = "The account existed. `changed` lists what changed.", body = UpsertReply),
        (status = 201, description = "The account was created.", body = UpsertReply),
        (status = 403, description = "`project` is not the token's company, or the token only reads."),
    ),
    security(("token" = ["work"])),
)]
async fn upsert_by_imported_id(
    State(api): State<Api>,
    Call { caller, body }: Call,
) -> Result<Response, Problem> {
    let request = match body.map(|object| (account::Upsert::parse(&object.members), object)) {
        Ok((Ok(request), _)) => Ok(Upsert(request)),
        Ok((Err(invalid), object)) => return Err(faulty(&api, &caller, invalid, &object).await),
        Err(problem) => Err(problem),
    };
    api.act(&caller, request, |upserted| render(&upserted)).await
}

/// The response to an invalid request. A `project` of another company takes precedence over any other error. A text
/// with a NUL character is not a project name.
pub async fn faulty(api: &Api, caller: &Caller, invalid: Invalid, object: &Object) -> Problem {
    let company = match api.verify(caller, WORK).await {
        Ok(company) => company,
        Err(refused) => return refused,
    };
    match object.members.get("project").and_then(Value::as_str) {
        Some(project) if project != company.slug.as_str() && !project.contains('\0') => {
            Problem::of(foreign_project(), caller.scheme)
        }
        _ => invalid.into(),
    }
}

fn render(upserted: &Upserted) -> Rendered {
    json::render(status_of(upserted), &UpsertReply::of(upserted))
}
