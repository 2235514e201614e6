//! The figures on the dashboard. Each is a bounded index read.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use rapport_domain::caps;
use rapport_domain::exchange_rate::total::Rates;
use rapport_domain::time::{Day, Time};
use rapport_domain::webhook::Webhook;
use rapport_store::clients::{self, Client, ListClients, Tab};
use rapport_store::stage_totals::{self, Stage};
use rapport_store::{Error, Query as _, Snapshot, activity_day, recent, webhook};

use crate::read::first_steps::{self, FirstSteps};
use crate::read::pipeline::rates_of;
use crate::read::{CappedCount, Viewer};
use crate::sample::sample_accounts;

pub use rapport_store::recent::Delivered;

/// How many of the most overdue clients are listed.
const WORST: i64 = 5;
/// How many days deliveries and mails count as recent, including today.
const RECENT_DAYS: i64 = 7;

pub struct Figures {
    pub stages: Vec<Stage>,
    /// For the values of the stages.
    pub rates: Rates,
    pub overdue: CappedCount,
    pub worst: Vec<Client>,
    /// New accounts this week.
    pub new_accounts: CappedCount,
    /// The Monday on which this week began.
    pub week: Date,
    /// Moves this week.
    pub moves: CappedCount,
    pub days: Vec<(Day, i64)>,
    pub webhooks: Vec<Webhook>,
    pub delivered: Delivered,
    pub failed_mails: i64,
    /// The first day of the recent deliveries and mails.
    pub lately: Day,
    pub first_steps: FirstSteps,
}

pub fn figures(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Figures, Error> {
    let (now, zone) = (viewer.now, viewer.zone());
    let (monday, lately) = (monday(now, zone), viewer.today().minus_days(RECENT_DAYS - 1));
    let week = Time::start_of_day(monday, zone);
    let since = Time::start_of_day(lately.date(), zone);
    let worst = ListClients { tab: Tab::Overdue, after: None, limit: WORST, now };
    let stages = stage_totals::stages(snapshot)?;
    let samples = sample_accounts(snapshot, &viewer.caller.company)?;
    let accounts: i64 = stages.iter().map(|stage| stage.accounts.count).sum();
    let has_accounts = accounts > i64::try_from(samples.len()).unwrap_or(0);
    Ok(Figures {
        rates: rates_of(snapshot, viewer, &stages)?,
        stages,
        overdue: clients::count_up_to(snapshot, Tab::Overdue, now, caps::ON_A_PAGE)?,
        worst: worst.run(snapshot)?.items,
        new_accounts: recent::new_accounts(snapshot, week)?,
        week: monday,
        moves: recent::count_moves(snapshot, week)?,
        days: activity_day::days(snapshot, viewer.today())?,
        webhooks: webhook::list(snapshot)?,
        delivered: recent::deliveries(snapshot, since)?,
        failed_mails: recent::failed_mails(snapshot, since)?,
        lately,
        first_steps: first_steps::taken(snapshot, viewer, has_accounts)?,
    })
}

impl Figures {
    /// When the large stages were last counted in the background.
    pub fn as_of(&self) -> Option<Time> {
        self.stages.iter().filter_map(|stage| stage.as_of).min()
    }
}

/// The first day of the week in the zone. Weeks start on Monday.
fn monday(now: Time, zone: &TimeZone) -> Date {
    let today: Date = now.day_in(zone).date();
    let since = today.weekday().since(Weekday::Monday);
    today.saturating_sub(i64::from(since).days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday_in_the_zone_of_the_company() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let table = [
            ("2026-11-15T12:00:00Z", "2026-11-08T23:00:00Z"),
            ("2026-11-15T23:30:00Z", "2026-11-15T23:00:00Z"),
            ("2026-11-16T00:30:00Z", "2026-11-15T23:00:00Z"),
        ];
        for (now, start) in table {
            let monday = monday(Time::parse(now).unwrap(), &zone);
            assert_eq!(Time::start_of_day(monday, &zone), Time::parse(start).unwrap(), "{now}");
        }
    }
}
