//! A webhook: its state and actions, a chart of its deliveries, and the latest ones.

use askama::Template;
use rapport_app::read::CappedCount;
use rapport_app::read::webhook::{self as read, CHART_DAYS, LastFailure, PER_DAY, PREVIEWED};
use rapport_domain::delivery::HISTORY_DAYS;
use rapport_domain::delivery_list::Shown as DeliveryState;
use rapport_domain::id::WebhookId;
use rapport_domain::time::Time;
use rapport_domain::webhook::{MAX_STREAK, Switch, Webhook};
use rapport_domain::webhook_header::Header;

use crate::pages::WEBHOOKS;
use crate::pages::chart::success::{Bar, SuccessChart};
use crate::pages::deliveries::filter::state_name;
use crate::pages::deliveries::row::{Row, without_code};
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::webhooks::preview::{Line, filter_words, lines};
use crate::pages::webhooks::{badge, meaning, place};
use crate::pages::words::number::{capped, counted};

#[derive(Template)]
#[template(path = "webhooks/one.html")]
pub struct WebhookPage {
    frame: Frame,
    webhook: Webhook,
    secret_shown: String,
    held: CappedCount,
    last_failure: Option<LastFailure>,
    chart: SuccessChart,
    rows: Vec<Row>,
    has_more: bool,
    filters: Vec<(&'static str, String)>,
    /// Its own headers, secrets masked.
    headers: Vec<String>,
    preview: Vec<Line>,
}
framed!("webhooks": WebhookPage);

impl WebhookPage {
    /// The error without the response code, which is shown before it.
    #[expect(clippy::unused_self, reason = "templates call methods only")]
    fn reason<'a>(&self, failure: &'a LastFailure) -> &'a str {
        without_code(failure.response_code, failure.error.as_deref().unwrap_or_default())
    }

    fn place(&self) -> &str {
        place(&self.webhook)
    }

    fn badge(&self) -> (&'static str, &'static str) {
        badge(&self.webhook.switch)
    }

    fn is_enabled(&self) -> bool {
        self.webhook.switch.is_enabled()
    }

    fn auto_disabled_at(&self) -> Option<Time> {
        match self.webhook.switch {
            Switch::AutoDisabled { at } => Some(at),
            Switch::Enabled | Switch::DisabledByHand => None,
        }
    }

    /// Asks the domain rule without changing anything.
    fn can_be_enabled(&self) -> bool {
        self.webhook.clone().enable(self.frame.now).is_ok()
    }

    fn held_words(&self) -> String {
        match self.held {
            CappedCount { capped: true, .. } => format!("{} deliveries", self.held_count()),
            CappedCount { count, .. } => counted(count, "delivery", "deliveries"),
        }
    }

    fn held_count(&self) -> String {
        capped(&self.held)
    }

    fn kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.webhook.events.kinds().iter().map(|kind| (kind.as_str(), meaning(*kind))).collect()
    }

    #[expect(clippy::unused_self, reason = "templates call it on the page")]
    fn states(&self) -> [(&'static str, &'static str); 4] {
        DeliveryState::ALL.map(|state| (state.as_str(), state_name(state)))
    }
}

impl Load<WebhookId> for WebhookPage {
    async fn load(visit: &Visit<WebhookId>) -> Result<Self, Refusal> {
        let id = visit.id;
        let found = visit.read(WEBHOOKS, move |snapshot, viewer| read::page(snapshot, viewer, id));
        let Shown { frame, reply } = found.await?;
        let reply = reply.ok_or_else(|| Refusal::not_found("webhook"))?;
        let filters = filter_words(&reply.choice.filter, &reply.channels);
        let headers = reply.choice.headers.iter().map(Header::masked).collect();
        let preview = lines(reply.preview);
        let read::WebhookPage { webhook, secret_shown, held, last_failure, days, latest, has_more, .. } =
            reply;
        let chart = SuccessChart(days.into_iter().map(|(day, tally)| Bar { day, tally }).collect());
        let rows = latest.into_iter().map(Row::from).collect();
        Ok(Self {
            frame,
            webhook,
            secret_shown,
            held,
            last_failure,
            chart,
            rows,
            has_more,
            filters,
            headers,
            preview,
        })
    }
}
