//! Webhooks with their deliveries: held, failed and per day.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rapport_domain::caps;
use rapport_domain::channel::Channel;
use rapport_domain::delivery_list::Filter;
use rapport_domain::event::Kind;
use rapport_domain::event_filter::{EventFilter, Judgement, judge};
use rapport_domain::id::{AccountId, WebhookId};
use rapport_domain::time::{Day, Time};
use rapport_domain::webhook::{Selection, Switch, Webhook};
use rapport_store::delivery_list::{self, Bounds};
use rapport_store::{
    Error, Snapshot, account_field, channel, delivery, delivery_health, event, webhook, webhook_choice,
};

use crate::read::campaign::NAMES;
use crate::read::delivery::{Named, named};
use crate::read::{CappedCount, Viewer};

pub use rapport_store::delivery_health::{LastFailure, Tally};
pub use rapport_store::webhook::{get as one, list as all};
pub use rapport_store::webhook_choice::Choice;

/// How many webhooks a page lists.
const LISTED: usize = 50;
/// How many deliveries the success rate covers, and of how many days.
pub const RATED: i64 = 100;
pub const RATED_DAYS: i64 = 7;
/// How many deliveries a webhook's page lists. The log has the others.
const LATEST: i64 = 20;
/// The days of the chart, and how many deliveries of each it counts.
pub const CHART_DAYS: i64 = 14;
pub const PER_DAY: i64 = 300;
/// How many of the company's latest events a preview judges.
pub const PREVIEWED: i64 = 20;

/// A page of webhooks, each with its recent deliveries, and where the next page begins.
pub struct Rated {
    pub webhooks: Vec<(Webhook, Tally)>,
    pub next: Option<WebhookId>,
}

pub fn rated(snapshot: &mut Snapshot, viewer: &Viewer, after: Option<WebhookId>) -> Result<Rated, Error> {
    let now = viewer.now;
    let (since, until) = (now.plus_days(-RATED_DAYS), now.plus_days(1));
    let is_next = |webhook: &Webhook| after.is_none_or(|after| webhook.id < after);
    let mut shown: Vec<Webhook> = all(snapshot)?.into_iter().filter(is_next).collect();
    let has_more = shown.len() > LISTED;
    shown.truncate(LISTED);
    let next = shown.last().filter(|_| has_more).map(|webhook| webhook.id);
    let mut webhooks = Vec::with_capacity(shown.len());
    for webhook in shown {
        let tally = delivery_health::tally(snapshot, webhook.id, since, until, RATED)?;
        webhooks.push((webhook, tally));
    }
    Ok(Rated { webhooks, next })
}

/// A webhook as the API shows it.
pub struct Described {
    pub webhook: Webhook,
    pub held: CappedCount,
    /// The beginning of its secret.
    pub secret_shown: String,
    pub choice: Choice,
}

pub fn described(snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<Described>, Error> {
    one(snapshot, id)?.map(|webhook| describe(snapshot, webhook)).transpose()
}

pub fn describe(snapshot: &mut Snapshot, webhook: Webhook) -> Result<Described, Error> {
    Ok(Described {
        held: held(snapshot, webhook.id, caps::IN_BULK)?,
        secret_shown: webhook::secret_shown(snapshot, webhook.id)?.unwrap_or_default(),
        choice: webhook_choice::get(snapshot, webhook.id)?,
        webhook,
    })
}

/// A past event, and whether a webhook would receive it now.
pub struct Previewed {
    pub kind: Kind,
    pub at: Time,
    /// The account, and its name unless it was deleted.
    pub account: Option<(AccountId, Option<String>)>,
    pub judgement: Judgement,
}

/// Judges the company's latest events, newest first. Tests are left out: they go to their own webhook, whatever it selects.
pub fn preview(
    snapshot: &mut Snapshot,
    selection: &Selection,
    filter: &EventFilter,
) -> Result<Vec<Previewed>, Error> {
    let mut events = event::latest(snapshot, PREVIEWED)?;
    events.retain(|event| event.kind != Kind::WebhookTest);
    let names = delivery_list::account_names(snapshot, events.iter().filter_map(|event| event.account))?;
    let judged = events.into_iter().map(|event| Previewed {
        kind: event.kind,
        at: event.created_at,
        account: event.account.map(|id| (id, names.get(&id).cloned())),
        judgement: judge(selection, filter, event.kind, &event.payload),
    });
    Ok(judged.collect())
}

/// What the form of a webhook offers.
pub struct Form {
    /// The webhook that is edited, and its choice. None for a new one.
    pub existing: Option<(Webhook, Choice)>,
    pub channels: Vec<Channel>,
    /// Names of custom fields.
    pub names: Vec<String>,
}

pub fn form(snapshot: &mut Snapshot, id: Option<WebhookId>) -> Result<Option<Form>, Error> {
    let existing = match id {
        Some(id) => match one(snapshot, id)? {
            Some(webhook) => Some((webhook, webhook_choice::get(snapshot, id)?)),
            None => return Ok(None),
        },
        None => None,
    };
    let (channels, names) = (channel::list(snapshot)?, account_field::names(snapshot, None, NAMES)?.items);
    Ok(Some(Form { existing, channels, names }))
}

/// Everything a webhook's page shows.
pub struct WebhookPage {
    pub webhook: Webhook,
    /// The beginning of its secret.
    pub secret_shown: String,
    pub held: CappedCount,
    /// The failure that disabled it, if it was disabled automatically.
    pub last_failure: Option<LastFailure>,
    /// Its deliveries per day, from the oldest day to today.
    pub days: Vec<(Date, Tally)>,
    pub latest: Vec<Named>,
    /// There are more deliveries than `latest`.
    pub has_more: bool,
    pub choice: Choice,
    /// The channels that its filter names.
    pub channels: Vec<Channel>,
    pub preview: Vec<Previewed>,
}

pub fn page(snapshot: &mut Snapshot, viewer: &Viewer, id: WebhookId) -> Result<Option<WebhookPage>, Error> {
    let Some(webhook) = one(snapshot, id)? else { return Ok(None) };
    let last_failure = match webhook.switch {
        Switch::AutoDisabled { at } => delivery_health::last_failure(snapshot, id, at)?,
        Switch::Enabled | Switch::DisabledByHand => None,
    };
    let filter = Filter { webhook: Some(id), ..Filter::default() };
    let scan = delivery_list::scan(snapshot, &filter, None, Bounds::page(LATEST))?;
    let choice = webhook_choice::get(snapshot, id)?;
    let channels = if choice.filter.channels.is_empty() { Vec::new() } else { channel::list(snapshot)? };
    Ok(Some(WebhookPage {
        preview: preview(snapshot, &webhook.events, &choice.filter)?,
        choice,
        channels,
        secret_shown: webhook::secret_shown(snapshot, id)?.unwrap_or_default(),
        held: held(snapshot, id, caps::IN_A_LIST)?,
        last_failure,
        days: per_day(snapshot, viewer, id)?,
        has_more: scan.next.is_some(),
        latest: named(snapshot, scan.found)?,
        webhook,
    }))
}

/// Counts the deliveries that wait until a disabled webhook is enabled, up to `cap`.
fn held(snapshot: &mut Snapshot, id: WebhookId, cap: i64) -> Result<CappedCount, Error> {
    let count = match webhook::state(snapshot, id)? {
        Some(state) if !state.enabled => delivery::waiting_count(snapshot, id, state.dropped_before, cap)?,
        _ => 0,
    };
    Ok(CappedCount { count, capped: count >= cap })
}

/// The deliveries of each day of the chart. The day is that of the event, in the company's zone.
fn per_day(snapshot: &mut Snapshot, viewer: &Viewer, id: WebhookId) -> Result<Vec<(Date, Tally)>, Error> {
    let mut days = Vec::new();
    for ago in (0..CHART_DAYS).rev() {
        let day = viewer.today().minus_days(ago);
        let (since, until) = bounds(day, viewer.zone());
        days.push((day.date(), delivery_health::tally(snapshot, id, since, until, PER_DAY)?));
    }
    Ok(days)
}

/// The start of a day, and of the next one.
fn bounds(day: Day, zone: &TimeZone) -> (Time, Time) {
    (Time::start_of_day(day.date(), zone), Time::start_of_day(day.minus_days(-1).date(), zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_the_chart_is_as_long_as_the_companys() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let table = [
            ("2026-11-15", "2026-11-14T23:00:00Z", "2026-11-15T23:00:00Z"),
            ("2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            ("2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        ];
        for (day, since, until) in table {
            let expected = (Time::parse(since).unwrap(), Time::parse(until).unwrap());
            assert_eq!(bounds(Day::of(day.parse().unwrap()), &zone), expected, "{day}");
        }
    }
}
