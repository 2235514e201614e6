//! The results of the command palette: accounts, pages and actions. Only the script uses it; without scripts there is the
//! search on the accounts page.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rapport_app::read::accounts::search;
use serde::Serialize;

use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::rules::{Rule, rule_of_page};
use crate::pages::{Pages, READ};

pub fn routes() -> Router<Pages> {
    Router::new().route("/palette", get(find))
}

#[derive(Serialize)]
struct Hit {
    title: String,
    hint: String,
    href: String,
}

/// The pages and actions. Those that the visitor may not see are left out.
const PLACES: [(&str, &str, &str); 26] = [
    ("Dashboard", "Page", "/"),
    ("Pipeline", "Page", "/pipeline"),
    ("Accounts", "Page", "/accounts"),
    ("New account", "Action", "/accounts/new"),
    ("Look up a company by its domain", "Action", "/accounts/lookup"),
    ("Clients", "Page", "/clients"),
    ("Campaigns", "Page", "/campaigns"),
    ("New campaign", "Action", "/campaigns/new"),
    ("Channels", "Page", "/channels"),
    ("Import accounts", "Action", "/imports"),
    ("Webhooks", "Page", "/webhooks"),
    ("New webhook", "Action", "/webhooks/new"),
    ("Deliveries", "Page", "/deliveries"),
    ("Ingest key", "Page", "/settings/ingest"),
    ("API documentation", "Page", "/api/docs"),
    ("API tokens", "Page", "/settings/tokens"),
    ("Company settings", "Page", "/settings"),
    ("Currencies and exchange rates", "Page", "/settings/currencies"),
    ("Cadence settings", "Page", "/settings/cadence"),
    ("Weekly digest", "Page", "/settings/digest"),
    ("Members", "Page", "/settings/members"),
    ("Security", "Page", "/settings/security"),
    ("Mail", "Page", "/settings/mail"),
    ("Audit log", "Page", "/settings/audit"),
    ("System", "Page", "/settings/system"),
    ("Your profile", "Page", "/profile"),
];

async fn find(visit: Visit) -> Result<Response, Refusal> {
    let typed = visit.query.text("q").trim().to_lowercase();
    let (text, access) = (typed.clone(), visit.visitor.access());
    let found = visit.pages.app().find(&access, READ, move |snapshot, viewer| search(snapshot, viewer, text));
    let found = found.await.map_err(|error| visit.visitor.refused(error))?;
    let caller = &found.viewer.caller;
    let is_allowed = |path: &str| match rule_of_page(path) {
        Some(Rule::Right(right)) => caller.may(right),
        Some(Rule::Open | Rule::Login) | None => true,
    };
    let places = PLACES.iter().filter(|(.., href)| is_allowed(href));
    let places = places.filter(|(title, ..)| title.to_lowercase().contains(&typed));
    let places = places.map(|(title, hint, href)| Hit {
        title: (*title).to_owned(),
        hint: (*hint).to_owned(),
        href: (*href).to_owned(),
    });
    let accounts = found.reply.iter().map(|account| Hit {
        title: account.name.clone(),
        hint: account.status.label().to_owned(),
        href: format!("/accounts/{}", account.id),
    });
    let hits: Vec<Hit> = accounts.chain(places).collect();
    Ok(axum::Json(hits).into_response())
}
