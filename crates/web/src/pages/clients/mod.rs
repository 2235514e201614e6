//! The Clients page: overdue clients, most overdue first, and tabs for due soon, snoozed and all tracked clients.
//!
//! Its forms are handled by the account's routes, which lead back here.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use jiff::civil::Date;
use rapport_app::read::clients::{Client, ListClients, Listed, Tab, list};
use rapport_app::read::{CappedCount, DEFAULT_LIMIT};
use rapport_domain::cadence::{DUE_SOON_DAYS, is_snoozed};
use rapport_domain::caps;

use crate::pages::account::snoozes;
use crate::pages::account::words;
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::words::{money, number};
use crate::pages::{Pages, READ};
use crate::shared::client_list::{question, write_place};
use crate::shared::parameters::Parameters;

const PATH: &str = "/clients";

pub fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show))
}

#[derive(Template)]
#[template(path = "clients/list.html")]
struct ClientsPage {
    frame: Frame,
    tab: Tab,
    counts: [(Tab, CappedCount); 4],
    clients: Vec<Client>,
    /// The address of this page, which its forms lead back to.
    here_path: String,
    next: Option<String>,
    is_first: bool,
}
framed!("clients": ClientsPage);

async fn show(visit: Visit) -> Result<Response, Refusal> {
    let query = &visit.query;
    let pairs = query.fields().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let asked = question(visit.pages.app(), Parameters::of(pairs.collect())).map_err(Refusal::Page)?;
    let (tab, after) = (asked.tab, asked.after);
    let asked = ListClients { limit: DEFAULT_LIMIT, ..asked };
    let found = visit.read(READ, move |snapshot, _| list(snapshot, &asked, caps::ON_A_PAGE));
    let Shown { frame, reply: Listed { page, counts } } = found.await?;
    let next = page.next.map(|place| format!("{}&cursor={}", path_of(&tab), write_place(tab, place)));
    let cursor = after.map(|place| format!("&cursor={}", write_place(tab, place)));
    let here_path = format!("{}{}", path_of(&tab), cursor.unwrap_or_default());
    let is_first = after.is_none();
    Ok(ClientsPage { frame, tab, counts, clients: page.items, here_path, next, is_first }.respond())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
fn path_of(tab: &Tab) -> String {
    format!("{PATH}?tab={}", tab.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
const fn label(tab: &Tab) -> &'static str {
    match tab {
        Tab::Overdue => "Overdue",
        Tab::DueSoon => "Due soon",
        Tab::Snoozed => "Snoozed",
        Tab::Tracked => "All tracked",
    }
}

impl ClientsPage {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn is_here(&self, tab: &Tab) -> bool {
        self.tab == *tab
    }

    /// Whether the company has no clients at all.
    fn is_without_clients(&self) -> bool {
        self.counts.iter().all(|(_, count)| count.count == 0)
    }

    /// The heading of the date column.
    fn when_label(&self) -> &'static str {
        match self.tab {
            Tab::Overdue => "Overdue",
            Tab::Snoozed => "Snoozed",
            Tab::DueSoon | Tab::Tracked => "Due",
        }
    }

    /// The query that exports the listed accounts. Two of the tabs cannot be expressed as a filter of accounts.
    fn export_query(&self) -> Option<&'static str> {
        match self.tab {
            Tab::Overdue => Some("overdue=true"),
            Tab::Tracked => Some("tracked=true"),
            Tab::DueSoon | Tab::Snoozed => None,
        }
    }

    fn tracked_stages(&self) -> String {
        words::stages(&self.frame.company.settings)
    }

    fn due_date(&self, client: &Client) -> Option<Date> {
        client.due.due_at.map(|at| at.day_in(self.frame.zone()).date())
    }

    /// The day a snooze ends, if the client is snoozed.
    fn snoozed_until(&self, client: &Client) -> Option<Date> {
        let until = client.account.snoozed_until;
        until.filter(|_| is_snoozed(until, self.frame.zone(), self.frame.now))
    }

    /// The date in a week, for a date field.
    fn a_week_on(&self) -> String {
        snoozes(&self.frame).first().map(|(_, date)| date.to_string()).unwrap_or_default()
    }

    fn zone_name(&self) -> &str {
        self.frame.zone().iana_name().unwrap_or("UTC")
    }
}
