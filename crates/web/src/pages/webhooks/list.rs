//! The list of webhooks with their state and success rate.

use askama::Template;
use axum::response::Response;
use rapport_app::read::webhook::{RATED, RATED_DAYS, Rated, Tally, rated};
use rapport_domain::event::Kind;
use rapport_domain::id::WebhookId;
use rapport_domain::webhook::{MAX_STREAK, Switch, Webhook};

use crate::pages::WEBHOOKS;
use crate::pages::chart::success::share;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::webhooks::{badge, place};
use crate::pages::words::number::capped_at;

#[derive(Template)]
#[template(path = "webhooks/list.html")]
struct ListPage {
    frame: Frame,
    lines: Vec<Line>,
    next: Option<WebhookId>,
    is_first: bool,
}
framed!("webhooks": ListPage);

struct Line {
    webhook: Webhook,
    tally: Tally,
}

impl Line {
    fn place(&self) -> &str {
        place(&self.webhook)
    }

    fn badge(&self) -> (&'static str, &'static str) {
        badge(&self.webhook.switch)
    }

    fn events(&self) -> String {
        let events = &self.webhook.events;
        let is_named = |kind: &&Kind| !events.is_all() || Kind::OPT_IN.contains(*kind);
        let named = events.kinds().iter().filter(is_named).map(|kind| kind.as_str());
        events.is_all().then_some("All events").into_iter().chain(named).collect::<Vec<_>>().join(", ")
    }

    /// The share that succeeded in percent, and of how many.
    fn share(&self) -> Option<(i64, String)> {
        let Tally { succeeded, failed, capped, .. } = self.tally;
        share(succeeded, failed).map(|share| (share, capped_at(succeeded + failed, capped)))
    }
}

pub async fn show(visit: Visit) -> Result<Response, Refusal> {
    let after: Option<WebhookId> = visit.query.text("after").parse().ok();
    let found = visit.read(WEBHOOKS, move |snapshot, viewer| rated(snapshot, viewer, after));
    let Shown { frame, reply: Rated { webhooks, next } } = found.await?;
    let lines = webhooks.into_iter().map(|(webhook, tally)| Line { webhook, tally }).collect();
    Ok(ListPage { frame, lines, next, is_first: after.is_none() }.respond())
}
