//! What happens to each account over the two years: a plan of requests, each with its time.

use rapport_domain::time::Time;
use serde_json::{Value, json};

use super::chance::Chance;
use super::story;

const SEED: u64 = 20;
/// Working hours, in milliseconds since midnight.
const OPENS: i64 = 7 * 3_600_000;
const CLOSES: i64 = 16 * 3_600_000;
/// Usage is daily for the days that the pulse shows; before that, one day stands for a week.
const DAILY_USAGE_DAYS: i64 = 90;
const MOST_EVENTS_A_BATCH: usize = 100;
const CADENCE: (i64, i64) = (24, 40);

/// A request to the service, as a caller would make it.
pub enum Deed {
    /// Made by the company's own system.
    Upsert(Value),
    /// Made by a seller.
    Create(Value),
    Move(Value),
    Patch(Value),
    Contact(Value),
    /// Starts the account's conversation.
    Begin(Value),
    /// Logs a message in that conversation.
    Say(Value),
    /// Made by the company's own product, for all accounts together.
    Ingest(Vec<Value>),
}

pub struct Step {
    pub at: Time,
    /// The index in the list of accounts.
    pub account: usize,
    pub deed: Deed,
}

/// Everything that happens before `now`, in order.
pub fn plan(now: Time) -> Vec<Step> {
    let mut plan = Plan { now, chance: Chance::new(SEED), steps: Vec::new(), users: Vec::new() };
    for account in 0..story::ACCOUNTS {
        plan.account(account);
    }
    plan.usage();
    plan.steps.sort_by_key(|step| step.at);
    plan.steps
}

/// Where an account ends up, if there is time for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Untouched,
    Contacted,
    Negotiating,
    Lost,
    Refused,
    Customer,
    Churned,
}

/// How well a client is looked after: the range of days ago until which somebody made contact.
const CARE: [(i64, i64); 10] =
    [(0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (32, 42), (45, 75), (60, 110), (120, 260)];
const COURSES: [Course; 20] = [
    Course::Untouched,
    Course::Untouched,
    Course::Untouched,
    Course::Contacted,
    Course::Contacted,
    Course::Contacted,
    Course::Negotiating,
    Course::Negotiating,
    Course::Lost,
    Course::Lost,
    Course::Refused,
    Course::Customer,
    Course::Customer,
    Course::Customer,
    Course::Customer,
    Course::Customer,
    Course::Customer,
    Course::Customer,
    Course::Churned,
    Course::Churned,
];

/// An account that uses the product, from and until so many days ago.
struct User {
    account: usize,
    from: i64,
    until: i64,
    eager: i64,
}

struct Plan {
    now: Time,
    chance: Chance,
    steps: Vec<Step>,
    users: Vec<User>,
}

impl Plan {
    /// Adds a step `days` ago, in working hours. Steps in the future are left out; returns whether it was added.
    fn add(&mut self, account: usize, days: i64, deed: Deed) -> bool {
        if days < 1 {
            return false;
        }
        let at = midnight(self.now).plus_days(-days).plus_millis(self.chance.between(OPENS, CLOSES));
        self.steps.push(Step { at, account, deed });
        true
    }

    fn account(&mut self, account: usize) {
        let course = *self.chance.one_of(&COURSES);
        // The company grows: take the later of two random days.
        let draws = [(); 2].map(|()| self.chance.between(3, story::DAYS - 5));
        let created = draws[0].min(draws[1]);
        let (country, currency) = *self.chance.one_of(&story::COUNTRIES);
        self.create(account, created, country);
        if course == Course::Untouched {
            return;
        }
        let contacted = created - self.chance.between(2, 20);
        self.first_contact(account, contacted);
        let end = match course {
            Course::Contacted => return,
            Course::Lost => Some("lost"),
            Course::Refused => Some("do_not_contact"),
            _ => None,
        };
        let talks = contacted - self.chance.between(5, 35);
        if let Some(status) = end {
            let note =
                if status == "lost" { *self.chance.one_of(&story::LOST_NOTES) } else { "Asked us to stop." };
            self.add(account, talks, Deed::Move(json!({"status": status, "note": note})));
            return;
        }
        self.add(account, talks, Deed::Move(json!({"status": "in_negotiation"})));
        if course == Course::Negotiating {
            return;
        }
        let trial = talks - self.chance.between(3, 20);
        self.add(account, trial, Deed::Ingest(vec![event(account, "trial_started")]));
        let bought = trial - self.chance.between(14, 35);
        let ended = if course == Course::Churned { bought - self.chance.between(60, 300) } else { 0 };
        self.buy(account, bought, currency);
        self.add(account, ended, Deed::Ingest(vec![event(account, "churned")]));
        self.client(account, trial, ended.max(0));
    }

    fn create(&mut self, account: usize, days: i64, country: &str) {
        let (place, trade) = (account % story::PLACES.len(), account / story::PLACES.len());
        // Each place has each trade once; the step spreads the trades over the list.
        let (word, industry) = story::TRADES[(trade * 2 + place * 5) % story::TRADES.len()];
        let name = format!("{} {word}", story::PLACES[place]);
        let mut body = json!({
            "imported_id": imported_id(account),
            "name": name,
            "custom_fields": {
                "country": country, "industry": industry, "employees": self.chance.between(2, 90) * 10,
            },
        });
        if self.chance.percent(35) {
            let (_, codes) = self.chance.one_of(&story::CHANNELS);
            body["promo_code"] = json!(self.chance.one_of(codes));
        }
        let by_hand = self.chance.percent(15);
        if !by_hand {
            body["project"] = json!(story::PROJECT);
        }
        self.add(account, days, if by_hand { Deed::Create(body) } else { Deed::Upsert(body) });
    }

    fn first_contact(&mut self, account: usize, days: i64) {
        let subject = *self.chance.one_of(&story::SUBJECTS);
        let opening = *self.chance.one_of(&story::OPENINGS);
        if !self.add(account, days, Deed::Begin(json!({"subject": subject}))) {
            return;
        }
        // The conversation starts at some hour of the day, so its messages follow a day later.
        self.add(account, days - 1, Deed::Say(json!({"direction": "outbound", "body": opening})));
        self.add(account, days - 1, Deed::Move(json!({"status": "contacted"})));
        let answered = days - self.chance.between(2, 6);
        if self.chance.percent(55) {
            self.reply(account, answered);
        }
    }

    fn reply(&mut self, account: usize, days: i64) {
        let reply = *self.chance.one_of(&story::REPLIES);
        self.add(account, days, Deed::Say(json!({"direction": "inbound", "body": reply})));
    }

    fn buy(&mut self, account: usize, days: i64, currency: &str) {
        let (plan, least, most, price) = *self.chance.one_of(&story::PLANS);
        let seats = self.chance.between(least, most);
        let value = (seats * price).to_string();
        let mut became = event(account, "became_customer");
        became["metadata"] = json!({"captured_value": value, "captured_value_currency": currency});
        self.add(account, days, Deed::Ingest(vec![became]));
        let fields = json!({
            "project": story::PROJECT, "imported_id": imported_id(account),
            "custom_fields": {"plan": plan, "seats": seats},
        });
        self.add(account, days - 1, Deed::Upsert(fields));
    }

    /// Contact with a client, its usage, and sometimes its own cadence or a snooze.
    fn client(&mut self, account: usize, since: i64, until: i64) {
        let eager = self.chance.between(10, 70);
        self.users.push(User { account, from: since, until, eager });
        let (least, most) = *self.chance.one_of(&CARE);
        let cared_until = self.chance.between(least, most).max(until);
        let mut days = since - self.chance.between(3, 10);
        while days > cared_until {
            self.contact(account, days);
            days -= self.chance.between(CADENCE.0, CADENCE.1);
        }
        if until > 0 {
            return;
        }
        if self.chance.percent(10) {
            let cadence = *self.chance.one_of(&[14, 21, 60, 90]);
            self.add(account, since.min(40), Deed::Patch(json!({"cadence_days": cadence})));
        }
        if self.chance.percent(8) {
            let until = self.now.plus_days(self.chance.between(8, 40)).to_string();
            self.add(account, since.min(6), Deed::Patch(json!({"snoozed_until": until[..10]})));
        }
    }

    fn contact(&mut self, account: usize, days: i64) {
        if self.chance.percent(50) {
            let (kind, note) = *self.chance.one_of(&story::CONTACTS);
            self.add(account, days, Deed::Contact(json!({"kind": kind, "note": note})));
            return;
        }
        let text = *self.chance.one_of(&story::CHECK_INS);
        self.add(account, days, Deed::Say(json!({"direction": "outbound", "body": text})));
        let answered = days - self.chance.between(1, 4);
        if self.chance.percent(40) {
            self.reply(account, answered);
        }
    }

    /// One batch of all accounts' usage per day, or per week if it is long ago.
    fn usage(&mut self) {
        let users = std::mem::take(&mut self.users);
        for days in (1..story::DAYS).rev().filter(|days| *days <= DAILY_USAGE_DAYS || days % 7 == 0) {
            let mut events = Vec::new();
            for user in users.iter().filter(|user| user.from - 1 > days && user.until < days) {
                if !self.chance.percent(user.eager) {
                    continue;
                }
                events.push(event(user.account, "app_opened"));
                let mut used = event(user.account, "feature_used");
                used["feature"] = json!(self.chance.one_of(&story::FEATURES));
                events.push(used);
            }
            for batch in events.chunks(MOST_EVENTS_A_BATCH) {
                self.add(0, days, Deed::Ingest(batch.to_vec()));
            }
        }
    }
}

/// When the day began, in UTC.
pub fn midnight(now: Time) -> Time {
    let micros = now.as_micros();
    Time::from_micros(micros - micros.rem_euclid(24 * 3_600_000_000))
}

fn event(account: usize, kind: &str) -> Value {
    json!({"imported_id": imported_id(account), "kind": kind})
}

fn imported_id(account: usize) -> String {
    format!("crm-{:05}", account + 1)
}
