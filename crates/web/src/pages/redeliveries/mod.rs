//! The bulk redelivery pages: count and confirm, progress, cancel, and the list.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use jiff::tz::TimeZone;
use rapport_app::Error;
use rapport_app::read::delivery;
use rapport_app::read::redelivery::{Names, names, one, recent};
use rapport_app::redelivery::{self, CancelRedelivery, Counted, Progress, StartRedelivery};
use rapport_domain::delivery_list::{Filter, Shown as Listed};
use rapport_domain::id::RedeliveryId;
use rapport_domain::redelivery::{Redelivery, Request, State as Stage};

use crate::pages::deliveries::filter::{self, state_name};
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::webhooks::place;
use crate::pages::words::number::{capped_at, counted};
use crate::pages::words::when::local;
use crate::pages::{Pages, WEBHOOKS};

const PATH: &str = "/redeliveries";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<ListPage, ()>).post(start))
        .route("/redeliveries/new", get(ask))
        .route("/redeliveries/{id}", get(show::<ProgressPage, RedeliveryId>))
        .route("/redeliveries/{id}/cancel", post(cancel))
}

/// A filter in words, as pairs of name and value.
type Described = Vec<(&'static str, String)>;

#[derive(Template)]
#[template(path = "redeliveries/new.html")]
struct NewPage {
    frame: Frame,
    described: Described,
    fields: Vec<(&'static str, String)>,
    query: String,
    counted: Counted,
}
framed!("webhooks": NewPage, ListPage, ProgressPage);

impl NewPage {
    fn count(&self) -> String {
        match self.counted {
            Counted { count, capped: true } => format!("{} deliveries", capped_at(count, true)),
            Counted { count, .. } => counted(count, "delivery", "deliveries"),
        }
    }
}

/// Shows the count and asks for confirmation.
async fn ask(visit: Visit) -> Result<Response, Refusal> {
    let typed = filter::typed(&visit.query);
    let found = visit.read(WEBHOOKS, move |snapshot, viewer| {
        Ok(match delivery::filter(snapshot, viewer, typed)?.map(or_failed) {
            Ok(filter) => Ok((filter, names(snapshot, &filter)?)),
            Err(invalid) => Err(invalid),
        })
    });
    let Shown { frame, reply } = found.await?;
    let (filter, names) = reply.map_err(Refusal::from)?;
    let described = describe(&filter, names, frame.zone());
    let counted = redelivery::count(visit.pages.app(), &visit.visitor.access(), filter).await;
    let counted = counted.map_err(|error| visit.visitor.refused(error))?;
    let (fields, query) = (filter::fields(&filter), filter::query(&filter, &[]));
    Ok(NewPage { frame, described, fields, query, counted }.respond())
}

/// Defaults to failed deliveries, because nobody wants to send everything again.
fn or_failed(filter: Filter) -> Filter {
    if filter == Filter::default() { Filter { state: Some(Listed::Failed), ..filter } } else { filter }
}

async fn start(action: Action) -> Result<Response, Refusal> {
    // Check the role before the form.
    action.frame(WEBHOOKS).await?;
    let started = try_start(&action).await;
    let started = action.settle(started, banner::<ListPage>).await?;
    let text = "The bulk redelivery has started. It continues in the background when you leave this page.";
    action.done(&format!("{PATH}/{}", started.id), text)
}

async fn try_start(action: &Action) -> Result<Redelivery, Error> {
    let members = ["webhook", "type", "state", "account", "since", "until"].map(|name| (name, As::Text));
    let Request { filter, .. } = Request::parse(&action.form.members(&members))?;
    let app = action.pages.app();
    let Counted { count, .. } = redelivery::count(app, &action.visitor.access(), filter).await?;
    action.submit(StartRedelivery { filter, total: count }).await
}

#[derive(Template)]
#[template(path = "redeliveries/list.html")]
struct ListPage {
    frame: Frame,
    lines: Vec<View>,
}

/// A bulk redelivery and its progress.
struct View {
    redelivery: Redelivery,
    unmade: i64,
    paused: bool,
    described: Described,
}

impl View {
    fn new((progress, names): (Progress, Names), zone: &TimeZone) -> Self {
        let Progress { redelivery, unmade, paused } = progress;
        let described = describe(&redelivery.filter, names, zone);
        Self { redelivery, unmade, paused, described }
    }

    fn is_running(&self) -> bool {
        self.redelivery.state() == Stage::Running
    }

    fn badge(&self) -> (&'static str, &'static str) {
        match self.redelivery.state() {
            Stage::Running if self.paused => ("warn", "Paused"),
            Stage::Running => ("", "Running"),
            Stage::Finished => ("good", "Finished"),
            Stage::Cancelled => ("warn", "Cancelled"),
        }
    }

    fn done(&self) -> i64 {
        (self.redelivery.queued - self.unmade).max(0)
    }

    /// The progress in thousandths, for the bar.
    fn permille(&self) -> i64 {
        let over = self.done() + self.redelivery.skipped;
        (over * 1_000 / self.redelivery.total.max(1)).clamp(0, 1_000)
    }

    fn ended_at(&self) -> Option<rapport_domain::time::Time> {
        self.redelivery.finished_at.or(self.redelivery.cancelled_at)
    }

    fn query(&self) -> String {
        filter::query(&self.redelivery.filter, &[])
    }
}

impl Load<()> for ListPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let Shown { frame, reply } = visit.read(WEBHOOKS, |snapshot, _| recent(snapshot)).await?;
        let lines = reply.into_iter().map(|found| View::new(found, frame.zone())).collect();
        Ok(Self { frame, lines })
    }
}

#[derive(Template)]
#[template(path = "redeliveries/one.html")]
struct ProgressPage {
    frame: Frame,
    view: View,
}

impl Load<RedeliveryId> for ProgressPage {
    async fn load(visit: &Visit<RedeliveryId>) -> Result<Self, Refusal> {
        let id = visit.id;
        let Shown { frame, reply } = visit.read(WEBHOOKS, move |snapshot, _| one(snapshot, id)).await?;
        let view = View::new(reply.ok_or_else(|| Refusal::not_found("redelivery"))?, frame.zone());
        Ok(Self { frame, view })
    }
}

async fn cancel(action: Action<RedeliveryId>) -> Result<Response, Refusal> {
    action.act::<ProgressPage, _>(CancelRedelivery(action.id)).await?;
    action.done(&format!("{PATH}/{}", action.id), "Cancelled. Requests already under way will finish.")
}

/// A webhook or an account that was deleted is shown by its id.
fn describe(filter: &Filter, Names { webhook, account }: Names, zone: &TimeZone) -> Described {
    let place = webhook.map(|webhook| place(&webhook).to_owned());
    let webhook = filter.webhook.map(|id| place.unwrap_or_else(|| id.to_string()));
    let account = filter.account.map(|id| account.unwrap_or_else(|| id.to_string()));
    let time = |time| local(time, zone).replace('T', " ");
    let parts = [
        ("Webhook", webhook),
        ("Event", filter.kind.map(|kind| kind.as_str().to_owned())),
        ("State", filter.state.map(|state| state_name(state).to_owned())),
        ("Account", account),
        ("From", filter.since.map(time)),
        ("To", filter.until.map(time)),
    ];
    parts.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}
