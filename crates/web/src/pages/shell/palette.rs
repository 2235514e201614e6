//! The results of the command palette: accounts, pages and actions. Only the script uses it; without scripts there is the
//! search on the accounts page.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rapport_app::read::accounts::search;
use rapport_domain::member::Role;
use serde::Serialize;

use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::{MEMBER, Pages};

pub fn routes() -> Router<Pages> {
    Router::new().route("/palette", get(find))
}

#[derive(Serialize)]
struct Hit {
    title: String,
    hint: String,
    href: String,
}

/// The pages and actions, with the role that each needs.
const PLACES: [(&str, &str, &str, Role); 24] = [
    ("Dashboard", "Page", "/", Role::Member),
    ("Pipeline", "Page", "/pipeline", Role::Member),
    ("Accounts", "Page", "/accounts", Role::Member),
    ("New account", "Action", "/accounts/new", Role::Member),
    ("Look up a company by its domain", "Action", "/accounts/lookup", Role::Member),
    ("Clients", "Page", "/clients", Role::Member),
    ("Campaigns", "Page", "/campaigns", Role::Member),
    ("New campaign", "Action", "/campaigns/new", Role::Member),
    ("Channels", "Page", "/channels", Role::Member),
    ("Import accounts", "Action", "/imports", Role::Admin),
    ("Webhooks", "Page", "/webhooks", Role::Admin),
    ("New webhook", "Action", "/webhooks/new", Role::Admin),
    ("Deliveries", "Page", "/deliveries", Role::Admin),
    ("Ingest key", "Page", "/settings/ingest", Role::Admin),
    ("API documentation", "Page", "/api/docs", Role::Member),
    ("API tokens", "Page", "/settings/tokens", Role::Admin),
    ("Company settings", "Page", "/settings", Role::Admin),
    ("Cadence settings", "Page", "/settings/cadence", Role::Admin),
    ("Weekly digest", "Page", "/settings/digest", Role::Admin),
    ("Members", "Page", "/settings/members", Role::Admin),
    ("Mail", "Page", "/settings/mail", Role::Admin),
    ("Audit log", "Page", "/settings/audit", Role::Admin),
    ("System", "Page", "/settings/system", Role::Admin),
    ("Your profile", "Page", "/profile", Role::Member),
];

async fn find(visit: Visit) -> Result<Response, Refusal> {
    let typed = visit.query.text("q").trim().to_lowercase();
    let (text, access) = (typed.clone(), visit.visitor.access());
    let found =
        visit.pages.app().find(&access, MEMBER, move |snapshot, viewer| search(snapshot, viewer, text));
    let found = found.await.map_err(|error| visit.visitor.refused(error))?;
    let places = PLACES.iter().filter(|(.., role)| found.viewer.caller.role >= *role);
    let places = places.filter(|(title, ..)| title.to_lowercase().contains(&typed));
    let places = places.map(|(title, hint, href, _)| Hit {
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
