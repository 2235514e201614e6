//! The moves of all accounts, newest first.

use askama::Template;
use axum::response::Response;
use rapport_app::read::pipeline::{self, NamedMove};
use rapport_app::read::{DEFAULT_LIMIT, Page};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::pipeline::{Source, Status};

use crate::pages::READ;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;

#[derive(Template)]
#[template(path = "pipeline/moves.html")]
struct MovesPage {
    frame: Frame,
    moves: Page<NamedMove>,
    /// Not the first page.
    is_later: bool,
}
framed!("pipeline": MovesPage);

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let before = visit.query.text("before").parse().ok();
    let read = visit.read(READ, move |snapshot, _| pipeline::moves(snapshot, before, DEFAULT_LIMIT));
    let Shown { frame, reply: moves } = read.await?;
    Ok(MovesPage { frame, moves, is_later: before.is_some() }.respond())
}

/// The stage before the move. Every move has one.
fn from(entry: &HistoryEntry) -> Status {
    entry.from.unwrap_or(entry.to)
}

/// Who or what moved the account.
fn by(entry: &HistoryEntry) -> String {
    match (&entry.actor, entry.source) {
        (Actor::Person { name, .. }, _) => name.clone(),
        (_, Source::Automation) => "Product activity".to_owned(),
        (_, Source::Import) => "Import".to_owned(),
        (Actor::Token { name, .. }, _) => format!("{name} (API)"),
        (Actor::CommandLine, _) => "Command line".to_owned(),
        (_, Source::Inbound) => "Inbound mail".to_owned(),
        (_, Source::Operator | Source::Upsert | Source::Lookup) => "API".to_owned(),
    }
}
