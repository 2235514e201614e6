//! Clients by contact date: overdue, due soon, snoozed, and all tracked ones.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rapport_app::read::CappedCount;
use rapport_app::read::clients::{Client, Listed, Tab, list};
use rapport_domain::account::AccountView;
use rapport_domain::caps;
use rapport_domain::company::Settings;
use rapport_domain::time::Time;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::call::Caller;
use crate::api::{Api, READ, requests};
use crate::edge::json;
use crate::edge::problem::Problem;
use crate::shared::client_list::{question, write_place};
use crate::shared::parameters::Parameters;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list_clients))
}

/// A page of clients, and the number of clients in each tab.
#[derive(Serialize, ToSchema)]
#[schema(as = ClientPage)]
struct ClientPageView<'a> {
    items: Vec<ClientView<'a>>,
    /// Send it as `cursor` to get the next page. Null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
    counts: Counts,
}

/// A tracked account.
#[derive(Serialize, ToSchema)]
#[schema(as = Client)]
struct ClientView<'a> {
    account: AccountView<'a>,
    /// When contact is due, ignoring any snooze.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// Whole days of 24 hours since the due date. Zero unless the account is overdue.
    days_overdue: i64,
    /// Explains the due date.
    #[schema(example = "last contact: call by a colleague, 12 May 2026; every 42 days")]
    why: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ClientCounts)]
struct Counts {
    overdue: Count,
    due_soon: Count,
    snoozed: Count,
    tracked: Count,
}

/// Exact up to 10,000.
#[derive(Serialize, ToSchema)]
#[schema(as = CappedCount)]
struct Count {
    count: i64,
    /// True if there are more than `count`.
    capped: bool,
}

impl From<CappedCount> for Count {
    fn from(CappedCount { count, capped }: CappedCount) -> Self {
        Self { count, capped }
    }
}

impl Counts {
    /// In the order of the tabs.
    fn new(counts: [(Tab, CappedCount); 4]) -> Self {
        let [overdue, due_soon, snoozed, tracked] = counts.map(|(_, count)| Count::from(count));
        Self { overdue, due_soon, snoozed, tracked }
    }
}

impl<'a> ClientView<'a> {
    fn new(client: &'a Client, settings: &Settings, now: Time) -> Self {
        let Client { account, due, why } = client;
        Self { account: account.view(settings, now), due_at: due.due_at, days_overdue: due.days_overdue, why }
    }
}

/// List clients
///
/// Accounts in the company's tracked stages, each with its due date and an explanation of it, and the number of
/// clients in each tab.
#[utoipa::path(
    get,
    path = "/api/clients/",
    tag = "Clients",
    params(requests::ClientParameters, requests::PageParameters),
    responses((status = 200, description = "A page of clients.", body = ClientPageView)),
    security(("token" = ["read"])),
)]
async fn list_clients(
    State(api): State<Api>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let question = question(api.app(), parameters);
    let tab = question.as_ref().map_or(Tab::Overdue, |list| list.tab);
    let found =
        api.read(&caller, READ, question, |snapshot, _, question| list(snapshot, &question, caps::IN_A_LIST));
    let found = found.await?;
    let Listed { page, counts } = found.reply;
    let settings = &found.company.settings;
    let page = ClientPageView {
        items: page.items.iter().map(|client| ClientView::new(client, settings, found.now)).collect(),
        next_cursor: page.next.map(|place| write_place(tab, place)),
        counts: Counts::new(counts),
    };
    Ok(json::respond(StatusCode::OK, &page))
}
