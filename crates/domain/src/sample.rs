//! Sample data: a few dozen made-up accounts that show a new company what its pages will look like. It is offered
//! while the company has no accounts of its own, and removed again in one click.
//!
//! Here is what the data consists of. Its accounts are marked (`Account::sample`): nothing about them is told to other
//! systems, and no other account is ever removed with them.

mod table;
mod words;

use jiff::tz::TimeZone;

use crate::account::{Account, Mover};
use crate::activity::PULSE_DAYS;
use crate::channel::{Attribution, PromoCode};
use crate::company::Settings;
use crate::contact::Kind;
use crate::conversation::Direction;
use crate::custom_fields::{CustomFields, FieldChange};
use crate::id::AccountId;
use crate::member::Email;
use crate::money::{Amount, Money};
use crate::pipeline::{Status, Trigger};
use crate::time::{Day, Time};
use table::{Care, Line, Usage};

/// How many accounts there are.
pub const COUNT: usize = table::COUNT;
/// Sample contacts happen in working hours, in seconds since midnight.
const OPENS: i64 = 9 * 3600;
const WORKING_MINUTES: i64 = 7 * 60;
/// A client entered its stage at least this many days before an overdue contact.
const LEAD_DAYS: i64 = 3;

/// A sample channel and its promo code.
pub struct SampleChannel {
    pub name: &'static str,
    pub code: &'static str,
}

pub const CHANNELS: [SampleChannel; 3] = [
    SampleChannel { name: "Partner referrals (sample)", code: "SAMPLE-PARTNER" },
    SampleChannel { name: "Webinars (sample)", code: "SAMPLE-WEBINAR" },
    SampleChannel { name: "Trade fair (sample)", code: "SAMPLE-FAIR" },
];

impl SampleChannel {
    pub fn promo_code(&self) -> PromoCode {
        PromoCode::from_stored(self.code.to_owned())
    }
}

/// Everything about one sample account but its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    line: &'static Line,
    pub created_at: Time,
    pub moves: Vec<SampleMove>,
    pub contacts: Vec<SampleContact>,
    /// The messages of its conversation, in order. Empty without one.
    pub messages: Vec<SampleMessage>,
    pub note: Option<SampleNote>,
    /// One entry for each day with activity, in order.
    pub usage: Vec<SampleUsage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleMove {
    pub from: Status,
    pub to: Status,
    pub at: Time,
    pub note: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleContact {
    pub kind: Kind,
    pub note: &'static str,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleMessage {
    pub direction: Direction,
    pub body: &'static str,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleNote {
    pub text: &'static str,
    pub pinned: bool,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleUsage {
    pub day: Day,
    pub feature: &'static str,
    pub count: i64,
    pub last_at: Time,
}

/// The sample accounts as of `now`, with some of them overdue by the company's cadence.
pub fn all(settings: &Settings, now: Time) -> Vec<Sample> {
    let calendar = Calendar { now, zone: &settings.time_zone };
    table::LINES
        .iter()
        .enumerate()
        .map(|(place, line)| Sample::new(place, line, settings, calendar))
        .collect()
}

/// Finds times in the past.
#[derive(Clone, Copy)]
struct Calendar<'a> {
    now: Time,
    zone: &'a TimeZone,
}

impl Calendar<'_> {
    fn day(self, days_ago: i64) -> Day {
        self.now.day_in(self.zone).minus_days(days_ago)
    }

    /// A time in working hours of an earlier day. `spread` is any number; it makes the times differ.
    fn at(self, days_ago: i64, spread: usize) -> Time {
        let minute = i64::try_from(spread).unwrap_or(0) * 37 % WORKING_MINUTES;
        Time::start_of_day(self.day(days_ago.max(1)).date(), self.zone).plus_seconds(OPENS + minute * 60)
    }
}

impl Sample {
    fn new(place: usize, line: &'static Line, settings: &Settings, calendar: Calendar) -> Self {
        let cadence = line.cadence.unwrap_or(settings.cadence_days);
        let contacted = match line.care {
            Care::Nobody => None,
            Care::Ago(days) => Some(days),
            Care::Overdue(days) => Some(cadence + days),
        };
        // With a long cadence, a client who is overdue has been there for longer.
        let shift = match line.care {
            Care::Overdue(days) => (cadence + days + LEAD_DAYS - line.entered).max(0),
            Care::Nobody | Care::Ago(_) => 0,
        };
        let (created, entered) = (line.created + shift, line.entered + shift);
        let moves = moves(place, line, (created, entered), calendar);
        let contacts = contacts(place, line, contacted, calendar);
        let messages =
            messages(place, moves.first().map(|step| step.at), contacts.last().map(|last| last.at));
        let note = words::NOTES.get(place % (words::NOTES.len() * 3)).map(|text| SampleNote {
            text,
            pinned: place.is_multiple_of(2),
            at: calendar.at(entered, place + 5),
        });
        Self {
            line,
            created_at: calendar.at(created, place),
            moves,
            contacts,
            messages,
            note,
            usage: usage(place, line.usage, entered, calendar),
        }
    }

    /// The index of its channel in [`CHANNELS`].
    pub fn channel(&self) -> Option<usize> {
        self.line.channel
    }

    pub fn subject(&self) -> &'static str {
        words::SUBJECTS[self.line.name.len() % words::SUBJECTS.len()]
    }

    /// The address of somebody there, at a domain that exists only in examples.
    pub fn address(&self) -> Email {
        Email::from_stored(format!("{}@{}.example", self.line.person, self.line.site))
    }

    /// The account with all that happened to it, written at `now`.
    pub fn account(
        &self,
        id: AccountId,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Account {
        let line = self.line;
        let mut account = Account::new(id, line.name.to_owned(), Status::Prospect, self.created_at);
        account.sample = true;
        for step in &self.moves {
            account.trigger(Trigger::Set(step.to), Mover::Operator, settings, step.at);
        }
        for at in self.contact_times() {
            account.contact(at, now);
        }
        account.custom_fields = fields(line);
        account.value = line.value.map(|value| Money {
            amount: Amount::from_ten_thousandths(value * 10_000),
            currency: settings.default_currency,
        });
        if let Some(attribution) = attribution {
            account.attribute(attribution, self.created_at, &mut crate::account::Change::default());
        }
        account.cadence_override = line.cadence;
        account.snoozed_until =
            line.snoozed_for.map(|days| now.day_in(&settings.time_zone).minus_days(-days).date());
        for used in &self.usage {
            account.see(used.last_at);
        }
        // Readers that follow accounts expect later changes to have later times.
        account.updated_at = now;
        account
    }

    /// Contacts, and messages that count as contact.
    fn contact_times(&self) -> impl Iterator<Item = Time> {
        let written = self.messages.iter().filter(|message| message.direction == Direction::Outbound);
        written.map(|message| message.at).chain(self.contacts.iter().map(|contact| contact.at))
    }
}

/// The stages that an account went through, without the first.
fn path(status: Status) -> &'static [Status] {
    use Status::{Contacted, Customer, DoNotContact, InNegotiation, InTrial, Lost, Prospect};
    match status {
        Prospect => &[],
        Contacted => &[Contacted],
        InNegotiation => &[Contacted, InNegotiation],
        InTrial => &[Contacted, InNegotiation, InTrial],
        Customer => &[Contacted, InNegotiation, InTrial, Customer],
        Lost => &[Contacted, InNegotiation, Lost],
        DoNotContact => &[Contacted, DoNotContact],
    }
}

/// The moves, spread evenly between the day it was created and the day it entered its stage.
fn moves(place: usize, line: &Line, (created, entered): (i64, i64), calendar: Calendar) -> Vec<SampleMove> {
    let path = path(line.status);
    let steps = i64::try_from(path.len()).unwrap_or(1);
    let mut from = Status::Prospect;
    let mut moves = Vec::with_capacity(path.len());
    for (number, to) in path.iter().copied().enumerate() {
        let passed = i64::try_from(number).unwrap_or(0) + 1;
        let days_ago = created - (created - entered) * passed / steps;
        let note = (passed == steps).then(|| words::reason(line.status, place)).flatten();
        moves.push(SampleMove { from, to, at: calendar.at(days_ago, place + number + 1), note });
        from = to;
    }
    moves
}

/// The last contact, and earlier ones with customers.
fn contacts(place: usize, line: &Line, last: Option<i64>, calendar: Calendar) -> Vec<SampleContact> {
    let Some(last) = last else { return Vec::new() };
    let earlier = if line.status == Status::Customer { 2 } else { 0 };
    let contact = |back: i64| {
        let (kind, note) =
            words::CONTACTS[(place + usize::try_from(back).unwrap_or(0)) % words::CONTACTS.len()];
        SampleContact { kind, note, at: calendar.at(last + back * 25, place + 3) }
    };
    (0..=earlier).rev().map(contact).collect()
}

/// A first message and its answer, as far as they are older than the last contact.
fn messages(place: usize, begun: Option<Time>, last_contact: Option<Time>) -> Vec<SampleMessage> {
    let Some(begun) = begun else { return Vec::new() };
    let opening = words::OPENINGS[place % words::OPENINGS.len()];
    let mut messages = vec![SampleMessage { direction: Direction::Outbound, body: opening, at: begun }];
    let answered = begun.plus_seconds(20 * 3600);
    if !place.is_multiple_of(3) && last_contact.is_some_and(|last| answered < last) {
        let body = words::REPLIES[place % words::REPLIES.len()];
        messages.push(SampleMessage { direction: Direction::Inbound, body, at: answered });
    }
    messages
}

/// The days with activity since the account entered its stage, fewer at weekends.
fn usage(place: usize, usage: Usage, entered: i64, calendar: Calendar) -> Vec<SampleUsage> {
    let (level, until) = match usage {
        Usage::Nothing => return Vec::new(),
        Usage::Daily(level) => (level, 1),
        Usage::Stopped(days_ago) => (2, days_ago),
    };
    let used = |days_ago: i64| {
        let day = calendar.day(days_ago);
        let spread = place * 31 + usize::try_from(days_ago).unwrap_or(0) * 17;
        let is_weekend = day.date().weekday().to_monday_zero_offset() >= 5;
        let count = i64::try_from(spread % 7).unwrap_or(0) * level / if is_weekend { 4 } else { 1 };
        (count > 0).then(|| SampleUsage {
            day,
            feature: words::FEATURES[spread % words::FEATURES.len()],
            count,
            last_at: calendar.at(days_ago, spread),
        })
    };
    (until..entered.min(PULSE_DAYS)).rev().filter_map(used).collect()
}

fn fields(line: &Line) -> CustomFields {
    let fields = serde_json::json!({
        "industry": line.industry, "country": line.country, "employees": line.employees,
    });
    let change = fields.as_object().and_then(|fields| FieldChange::parse(fields).ok());
    change.and_then(|change| CustomFields::default().merged(&change).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
