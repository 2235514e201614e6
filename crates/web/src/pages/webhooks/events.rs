//! The event catalogue: every kind of event, when it is sent, and what is in its payload.

use askama::Template;
use axum::response::Response;

use crate::pages::WEBHOOKS;
use crate::pages::kit::frame::{Frame, Page as _, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::shared::catalogue::{self, Entry};

#[derive(Template)]
#[template(path = "webhooks/events.html")]
struct EventsPage {
    frame: Frame,
    events: &'static [Entry],
}
framed!("webhooks": EventsPage);

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let frame = visit.frame(WEBHOOKS).await?;
    Ok(EventsPage { frame, events: catalogue::entries() }.respond())
}
