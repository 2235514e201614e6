//! The dashboard: what needs somebody today.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

use crate::pages::frame::{Frame, Page as _, Shown, framed};
use crate::pages::refusal::Refusal;
use crate::pages::visitor::Visitor;
use crate::pages::{MEMBER, Pages};

pub fn routes() -> Router<Pages> {
    Router::new().route("/", get(show))
}

#[derive(Template)]
#[template(path = "dashboard.html")]
struct DashboardPage {
    frame: Frame,
}
framed!("dashboard": DashboardPage);

async fn show(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let Shown { frame, .. } = pages.show(&visitor, MEMBER, |_| Ok(())).await?;
    Ok(DashboardPage { frame }.respond())
}
