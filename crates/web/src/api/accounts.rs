//! The list of accounts, and accounts created by hand.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::account::CreateAccount;
use rapport_app::export::{Exported, RecordExport};
use rapport_app::read::accounts::{Cursor, ListAccounts, Sort, list};
use rapport_app::read::export::begin;
use rapport_app::{Answer, App};
use rapport_domain::account::{self, Account, AccountView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::account_changes::{self, AccountList};
use crate::api::call::{Call, Caller};
use crate::api::{Api, EXPORT, READ, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::parameters::Parameters;
use crate::shared::{account_filter, export};

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_accounts, create_account)).routes(routes!(export_accounts))
}

/// List accounts
///
/// Accounts must match all filters. Repeat `status` and `channel` or separate values with commas. With
/// `sort=updated_at` you can follow the accounts: send the last `next_cursor` whenever you like, and you get every account
/// that was created or changed since.
#[utoipa::path(
    get,
    path = "/api/accounts/",
    tag = "Accounts",
    params(requests::AccountFilterParameters, requests::AccountListParameters, requests::PageParameters),
    responses((status = 200, description = "A page of accounts.", body = AccountList)),
    security(("token" = ["read"])),
)]
async fn list_accounts(
    State(api): State<Api>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    if account_changes::are_asked_for(&parameters) {
        return account_changes::respond(&api, &caller, parameters).await;
    }
    let question = question(api.app(), parameters);
    let found = api.read(&caller, READ, question, |snapshot, _, question| list(snapshot, &question)).await?;
    let settings = &found.company.settings;
    let page = AccountList {
        items: found.reply.items.iter().map(|account| account.view(settings, found.now)).collect(),
        next_cursor: found.reply.next.map(|cursor| cursor.to_string()),
        has_more: None,
        deleted: None,
    };
    Ok(json::respond(StatusCode::OK, &page))
}

fn question(app: &App, mut parameters: Parameters) -> Result<ListAccounts, Problem> {
    let filter = account_filter::read(&mut parameters);
    let sort = parameters.optional("sort", Sort::parse).unwrap_or_default();
    account_changes::refuse_others(&mut parameters);
    let cursor = parameters.cursor(|text| Cursor::parse(text, sort).ok());
    let limit = parameters.limit();
    parameters.finish()?;
    Ok(ListAccounts { filter, sort, cursor, limit, now: app.now() })
}

/// Export accounts
///
/// Returns the accounts that match the filters as CSV, oldest first, with a column for every custom field in use.
/// Each account appears once. Cells that a spreadsheet would treat as a formula begin with an apostrophe. The audit log
/// records the export.
#[utoipa::path(
    get,
    path = "/api/accounts/export/",
    tag = "Accounts",
    params(requests::AccountFilterParameters),
    responses((status = 200, description = "The accounts.", body = String, content_type = "text/csv")),
    security(("token" = ["export"])),
)]
async fn export_accounts(
    State(api): State<Api>,
    caller: Caller,
    RawQuery(query): RawQuery,
    mut parameters: Parameters,
) -> Result<Response, Problem> {
    let filter = account_filter::read(&mut parameters);
    let question = parameters.finish().map(|()| Some(filter));
    let Answer { reply, company, now } = api.read(&caller, EXPORT, question, begin).await?;
    let filter = query.unwrap_or_default();
    api.write(&caller, Ok(RecordExport { what: Exported::Accounts, format: "csv", filter })).await?;
    let begun = Answer { reply: reply.into(), company, now };
    Ok(export::respond(api.app(), caller.access(), "accounts", begun))
}

/// Create an account
///
/// Fires `account.created`. Unlike in an upsert, `promo_code` must be an active code of the company.
#[utoipa::path(
    post,
    path = "/api/accounts/",
    tag = "Accounts",
    request_body = requests::AccountCreate,
    responses(
        (status = 201, description = "The account.", body = AccountView),
        (status = 409, description = "Another account has this imported_id."),
    ),
    security(("token" = ["work"])),
)]
async fn create_account(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, command) = call.parse(|members| account::Create::parse(members).map(CreateAccount));
    api.act(&caller, command, |created| render(StatusCode::CREATED, &created)).await
}

/// An account as a response.
pub fn render(status: StatusCode, answer: &Answer<Account>) -> Rendered {
    json::render(status, &answer.reply.view(&answer.company.settings, answer.now))
}
