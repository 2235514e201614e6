//! The bulk redelivery pages: count and confirm, progress, cancel, and the list.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
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
use crate::pages::kit::draft::sentence;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::webhooks::{named, place, settle};
use crate::pages::words::number::{capped_at, counted};
use crate::pages::{ADMIN, Pages};

const PATH: &str = "/redeliveries";
const WHAT: &str = "redelivery";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list).post(start))
        .route("/redeliveries/new", get(ask))
        .route("/redeliveries/{id}", get(show))
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
async fn ask(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let typed = filter::typed(&Form::of_query(query.as_deref()));
    let found = pages.show(&visitor, ADMIN, move |snapshot, viewer| {
        Ok(match delivery::filter(snapshot, viewer, typed)?.map(or_failed) {
            Ok(filter) => Ok((filter, names(snapshot, &filter)?)),
            Err(invalid) => Err(invalid),
        })
    });
    let Shown { frame, reply } = found.await?;
    let (filter, names) = reply.map_err(Refusal::from)?;
    let described = describe(&filter, names, frame.zone());
    let counted = redelivery::count(pages.app(), &visitor.access(), filter).await;
    let counted = counted.map_err(|error| visitor.refused(error))?;
    let (fields, query) = (filter::fields(&filter), filter::query(&filter, &[]));
    Ok(NewPage { frame, described, fields, query, counted }.respond())
}

/// Defaults to failed deliveries, because nobody wants to send everything again.
fn or_failed(filter: Filter) -> Filter {
    if filter == Filter::default() { Filter { state: Some(Listed::Failed), ..filter } } else { filter }
}

async fn start(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    // Check the role before the form.
    pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
    match try_start(&pages, &visitor, &form).await {
        Ok(started) => {
            let text =
                "The bulk redelivery has started. It continues in the background when you leave this page.";
            Ok(pages.done(&format!("{PATH}/{}", started.id), Flash::good(text)))
        }
        Err(Error::Conflict { detail, .. }) => Ok(pages.done(PATH, Flash::bad(sentence(&detail)))),
        Err(error) => Err(visitor.refused(error)),
    }
}

async fn try_start(pages: &Pages, visitor: &Visitor, form: &Form) -> Result<Redelivery, Error> {
    let members = ["webhook", "type", "state", "account", "since", "until"].map(|name| (name, As::Text));
    let Request { filter, .. } = Request::parse(&form.members(&members))?;
    let Counted { count, .. } = redelivery::count(pages.app(), &visitor.access(), filter).await?;
    pages.submit(visitor, form, StartRedelivery { filter, total: count }).await
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

async fn list(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let Shown { frame, reply } = pages.show(&visitor, ADMIN, |snapshot, _| recent(snapshot)).await?;
    let lines = reply.into_iter().map(|found| View::new(found, frame.zone())).collect();
    Ok(ListPage { frame, lines }.respond())
}

#[derive(Template)]
#[template(path = "redeliveries/one.html")]
struct ProgressPage {
    frame: Frame,
    view: View,
}

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let id: RedeliveryId = named(&id, WHAT)?;
    let Shown { frame, reply } = pages.show(&visitor, ADMIN, move |snapshot, _| one(snapshot, id)).await?;
    let view = View::new(reply.ok_or_else(|| Refusal::not_found(WHAT))?, frame.zone());
    Ok(ProgressPage { frame, view }.respond())
}

async fn cancel(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id: RedeliveryId = named(&id, WHAT)?;
    let cancelled = pages.submit(&visitor, &form, CancelRedelivery(id)).await;
    let text = "Cancelled. Requests already under way will finish.";
    settle(&pages, &visitor, &format!("{PATH}/{id}"), cancelled.map(|()| Flash::good(text)))
}

/// A webhook or an account that was deleted is shown by its id.
fn describe(filter: &Filter, Names { webhook, account }: Names, zone: &TimeZone) -> Described {
    let place = webhook.map(|webhook| place(&webhook).to_owned());
    let webhook = filter.webhook.map(|id| place.unwrap_or_else(|| id.to_string()));
    let account = filter.account.map(|id| account.unwrap_or_else(|| id.to_string()));
    let time = |time| filter::local(time, zone).replace('T', " ");
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
