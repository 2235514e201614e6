//! The list of accounts, and accounts made by hand.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::App;
use rapport_app::account::CreateAccount;
use rapport_domain::account::{self, Account};
use rapport_domain::id::ChannelId;
use rapport_domain::invalid::Fault;
use rapport_domain::pipeline::Status;
use rapport_store::Query;
use rapport_store::account_list::{AccountFilter, Cursor, ListAccounts, Sort};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::{Call, Caller};
use crate::api::paging::Page;
use crate::api::parameters::Parameters;
use crate::api::{Api, MEMBER, schema};
use crate::json;
use crate::problem::Problem;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_accounts, create_account))
}

/// List accounts
///
/// Filters that are given must all hold. `status` may be repeated or joined by commas.
#[utoipa::path(
    get,
    path = "/api/accounts/",
    tag = "Accounts",
    params(schema::AccountListParameters, schema::PageParameters),
    responses((status = 200, description = "A page of accounts.", body = Page<schema::Account>)),
    security(("token" = [])),
)]
async fn list_accounts(
    State(api): State<Api>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let question = question(api.app(), parameters);
    let found = api.read(&caller, MEMBER, question, |snapshot, list| list.run(snapshot)).await?;
    let settings = &found.company.settings;
    let page = Page {
        items: found.reply.items.iter().map(|account| account.view(settings, found.now)).collect(),
        next_cursor: found.reply.next.map(|cursor| cursor.to_string()),
    };
    Ok(json::respond(StatusCode::OK, &page))
}

fn question(app: &App, mut parameters: Parameters) -> Result<ListAccounts, Problem> {
    let channel = |text: &str| {
        text.parse::<ChannelId>().map_err(|_| Fault::new("malformed", "must be the id of a channel"))
    };
    let filter = AccountFilter {
        q: parameters.text("q"),
        statuses: parameters.several("status", Status::parse),
        channel: parameters.optional("channel", channel),
        imported_id: parameters.text("imported_id"),
        tracked: parameters.boolean("tracked"),
        overdue: parameters.boolean("overdue"),
        seen_before: parameters.time("seen_before"),
        seen_after: parameters.time("seen_after"),
    };
    let sort = parameters.optional("sort", Sort::parse).unwrap_or_default();
    let cursor = parameters.cursor(|text| Cursor::parse(text, sort).ok());
    let limit = parameters.limit();
    parameters.finish()?;
    Ok(ListAccounts { filter, sort, cursor, limit, now: app.now() })
}

/// Create an account
///
/// Fires `account.created`. Unlike in an upsert, a `promo_code` must be a live one of the company.
#[utoipa::path(
    post,
    path = "/api/accounts/",
    tag = "Accounts",
    request_body = schema::AccountCreate,
    responses(
        (status = 201, description = "The account.", body = schema::Account),
        (status = 409, description = "Another account has this imported_id.", body = schema::Problem),
    ),
    security(("token" = [])),
)]
async fn create_account(State(api): State<Api>, call: Call) -> Result<Response, Problem> {
    let (caller, command) = call.parse(|members| account::Create::parse(members).map(CreateAccount));
    let created = api.write(&caller, command).await?;
    Ok(render(StatusCode::CREATED, &created))
}

/// An account as an answer.
pub fn render(status: StatusCode, answer: &rapport_app::Answer<Account>) -> Response {
    json::respond(status, &answer.reply.view(&answer.company.settings, answer.now))
}
