//! The audit log: who changed what, when and from where.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use rapport_app::read::Page;
use rapport_app::read::audit::page;
use rapport_domain::id::AuditId;

use super::audit_words::Line;
use super::tabbed;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::{ADMIN, Pages};

const PATH: &str = "/settings/audit";

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show))
}

#[derive(Template)]
#[template(path = "settings/audit.html")]
struct AuditPage {
    frame: Frame,
    lines: Vec<Line>,
    older: Option<AuditId>,
    is_first: bool,
}
framed!("settings": AuditPage);
tabbed!("audit": AuditPage);

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let before: Option<AuditId> = visit.query.text("before").parse().ok();
    let found = visit.read(ADMIN, move |snapshot, _| page(snapshot, before));
    let Shown { frame, reply: (Page { items, more }, members) } = found.await?;
    let older = items.last().filter(|_| more).map(|last| last.id);
    let lines = items.into_iter().map(|entry| Line::of(entry, &members)).collect();
    Ok(AuditPage { frame, lines, older, is_first: before.is_none() }.respond())
}
