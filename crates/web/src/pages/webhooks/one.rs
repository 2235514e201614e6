//! A webhook: its state and actions, a chart of its deliveries, and the latest ones.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use jiff::tz::TimeZone;
use rapport_domain::delivery::HISTORY_DAYS;
use rapport_domain::delivery_list::{Filter, Shown as DeliveryState};
use rapport_domain::id::WebhookId;
use rapport_domain::time::Time;
use rapport_domain::webhook::{MAX_STREAK, Switch, Webhook};
use rapport_store::delivery_health::{self, LastFailure};
use rapport_store::delivery_list::{self, Bounds};
use rapport_store::{Error, Snapshot, delivery, webhook};

use crate::pages::chart::success::{Bar, SuccessChart};
use crate::pages::deliveries::filter::state_name;
use crate::pages::deliveries::row::{Row, rows, without_code};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::webhooks::{badge, meaning, named, place};
use crate::pages::words::number::{capped_at, counted};
use crate::pages::{ADMIN, Pages};

/// How many deliveries are listed. The log has the others.
const LIMIT: i64 = 20;
/// Held deliveries are counted up to this number.
const MAX_HELD: i64 = 10_000;
/// The days of the chart, and how many deliveries of each it counts.
const DAYS: i64 = 14;
const PER_DAY: i64 = 300;

#[derive(Template)]
#[template(path = "webhooks/one.html")]
struct WebhookPage {
    frame: Frame,
    webhook: Webhook,
    secret_shown: String,
    held: i64,
    last_failure: Option<LastFailure>,
    chart: SuccessChart,
    rows: Vec<Row>,
    has_more: bool,
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
        if self.held >= MAX_HELD {
            return format!("{} deliveries", capped_at(self.held, true));
        }
        counted(self.held, "delivery", "deliveries")
    }

    fn held_count(&self) -> String {
        capped_at(self.held, self.held >= MAX_HELD)
    }

    fn kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.webhook.events.kinds().iter().map(|kind| (kind.as_str(), meaning(*kind))).collect()
    }

    #[expect(clippy::unused_self, reason = "templates call it on the page")]
    fn states(&self) -> [(&'static str, &'static str); 4] {
        DeliveryState::ALL.map(|state| (state.as_str(), state_name(state)))
    }
}

struct Read {
    webhook: Webhook,
    secret_shown: String,
    held: i64,
    last_failure: Option<LastFailure>,
    bars: Vec<Bar>,
    rows: Vec<Row>,
    has_more: bool,
}

pub async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let (id, now) = (named(&id, "webhook")?, pages.app().now());
    let found = pages.show(&visitor, ADMIN, move |snapshot, _| read(snapshot, id, now));
    let Shown { frame, reply } = found.await?;
    let Read { webhook, secret_shown, held, last_failure, bars, rows, has_more } =
        reply.ok_or_else(|| Refusal::not_found("webhook"))?;
    let chart = SuccessChart(bars);
    let page = WebhookPage { frame, webhook, secret_shown, held, last_failure, chart, rows, has_more };
    Ok(page.respond())
}

fn read(snapshot: &mut Snapshot, id: WebhookId, now: Time) -> Result<Option<Read>, Error> {
    let Some(found) = webhook::get(snapshot, id)? else { return Ok(None) };
    let company = rapport_store::company::get(snapshot)?;
    let zone = company.map_or(TimeZone::UTC, |company| company.settings.time_zone);
    let held = match webhook::state(snapshot, id)? {
        Some(state) if !state.enabled => {
            delivery::waiting_count(snapshot, id, state.dropped_before, MAX_HELD)?
        }
        _ => 0,
    };
    let last_failure = match found.switch {
        Switch::AutoDisabled { at } => delivery_health::last_failure(snapshot, id, at)?,
        Switch::Enabled | Switch::DisabledByHand => None,
    };
    let filter = Filter { webhook: Some(id), ..Filter::default() };
    let scan = delivery_list::scan(snapshot, &filter, None, Bounds::page(LIMIT))?;
    let has_more = scan.next.is_some();
    Ok(Some(Read {
        secret_shown: webhook::secret_shown(snapshot, id)?.unwrap_or_default(),
        held,
        last_failure,
        bars: bars(snapshot, id, &zone, now)?,
        rows: rows(snapshot, scan.found)?,
        has_more,
        webhook: found,
    }))
}

/// The deliveries of each day. The day is that of the event, in the company's zone.
fn bars(snapshot: &mut Snapshot, id: WebhookId, zone: &TimeZone, now: Time) -> Result<Vec<Bar>, Error> {
    let today = now.day_in(zone);
    let mut bars = Vec::new();
    for ago in (0..DAYS).rev() {
        let day = today.minus_days(ago);
        let since = Time::start_of_day(day.date(), zone);
        let until = Time::start_of_day(day.minus_days(-1).date(), zone);
        let tally = delivery_health::tally(snapshot, id, since, until, PER_DAY)?;
        bars.push(Bar { day: day.date(), tally });
    }
    Ok(bars)
}
