//! The rules again, written plainly over maps and lists in memory. The domain's parsers read requests and
//! `pipeline::apply` decides moves; all state, and what follows from it, is kept here.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rapport_domain::account::{Create, Patch, Upsert};
use rapport_domain::activity::{Activity, EventMark, parse_batch};
use rapport_domain::channel::PromoCode;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use rapport_domain::money::{Capture, Currency, Money};
use rapport_domain::pipeline::{self, Status, Trigger};
use rapport_domain::policy::{NamePolicy, StatusPolicy};
use rapport_domain::time::Time;
use rapport_testkit::TestClock;
use serde_json::{Map, Value, json};

use super::{Operation, Subject};
use crate::refusal;

type Refused = Value;

pub struct Plain {
    project: String,
    clock: TestClock,
    cadence_days: i64,
    tracked: Vec<&'static str>,
    zone: String,
    currency: Currency,
    accounts: Vec<Record>,
    channels: Vec<Option<String>>,
    /// Keyed by the code in lower case.
    codes: BTreeMap<String, Code>,
    marks: HashMap<EventMark, Time>,
}

struct Code {
    spelled: String,
    channel: usize,
    archived_at: Option<Time>,
    created_at: Time,
}

#[derive(Clone)]
struct Record {
    deleted: bool,
    imported_id: Option<String>,
    name: String,
    status: Status,
    fields: BTreeMap<String, Value>,
    value: Option<Money>,
    /// The code, its channel and when it was acquired.
    acquired: Option<(String, usize, Time)>,
    seen: Option<(Time, Time)>,
    cadence_days: Option<i64>,
    snoozed_until: Option<Date>,
    tracked_since: Option<Time>,
    last_contact: Option<Time>,
    /// The episodes already announced.
    announced: Vec<Option<Time>>,
    campaign_hold: bool,
    created_at: Time,
    updated_at: Time,
    history: Vec<Value>,
    events: Vec<Value>,
    /// When it occurred, and the rest as shown.
    activity: Vec<(Time, Value)>,
    /// By day and feature; the empty feature counts events that name none.
    counts: BTreeMap<(i64, String), (i64, Time)>,
}

/// The lists in the answer to an upsert.
#[derive(Default)]
struct Listed {
    changed: Vec<&'static str>,
    ignored: Vec<&'static str>,
}

impl Subject for Plain {
    fn run(&mut self, operation: &Operation) -> Value {
        self.answer(operation).unwrap_or_else(|refused| json!({ "refused": refused }))
    }

    fn everything(&self) -> Vec<Value> {
        let channels = self.channels.iter().enumerate().rev();
        let channels: Vec<Value> = channels
            .filter_map(|(n, name)| name.as_ref().map(|name| json!([format!("channel-{n}"), name])))
            .collect();
        let codes: Vec<Value> = self.codes.values().map(code).collect();
        let mut all = vec![self.settings(), json!([channels, codes]), self.clients()];
        all.extend((0..self.accounts.len()).map(|place| self.everything_of(place)));
        all
    }
}

fn may_be_tracked(status: Status) -> bool {
    matches!(status, Status::Customer | Status::InTrial | Status::InNegotiation)
}

impl Plain {
    pub fn new(project: &str, clock: TestClock) -> Self {
        Self {
            project: project.to_owned(),
            clock,
            cadence_days: 42,
            tracked: vec!["customer", "in_trial"],
            zone: "UTC".to_owned(),
            currency: Currency::USD,
            accounts: Vec::new(),
            channels: Vec::new(),
            codes: BTreeMap::new(),
            marks: HashMap::new(),
        }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn answer(&mut self, operation: &Operation) -> Result<Value, Refused> {
        match operation {
            Operation::Upsert(body) => self.upsert(body),
            Operation::Ingest(events) => {
                let ids: Vec<AccountId> = (0..self.accounts.len()).map(id).collect();
                let events: Vec<Value> = events.iter().map(|event| event.to_json(&ids, self.now())).collect();
                Ok(self.ingest(json!({ "events": events }).as_object().unwrap()))
            }
            Operation::Create(body) => self.create(body),
            Operation::Patch(place, body) => self.patch(*place, body),
            Operation::ChangeStatus(place, status, note) => {
                let mut record = self.live(*place)?.clone();
                let moved =
                    self.move_by(*place, &mut record, Trigger::Set(*status), "operator", note.as_deref());
                self.accounts[*place] = record;
                Ok(json!({ "moved": moved, "account": self.view(*place) }))
            }
            Operation::Delete(place) => {
                let record = self.live(*place)?;
                // Events stay: frozen payloads are still sent.
                let events = record.events.clone();
                let name = record.name.clone();
                let gone = Record { deleted: true, events, ..self.blank(name, Status::Prospect) };
                self.accounts[*place] = gone;
                Ok(json!(null))
            }
            Operation::Contact(place, ago) => {
                let (now, mut record) = (self.now(), self.live(*place)?.clone());
                let at = now.plus_seconds(-ago);
                if record.last_contact.is_none_or(|last| at > last) {
                    record.last_contact = Some(at);
                    record.updated_at = now;
                }
                self.accounts[*place] = record;
                Ok(json!(at))
            }
            Operation::Remind => Ok(json!(self.remind())),
            Operation::CreateChannel(name) => {
                self.free_name(name, None)?;
                self.channels.push(Some(name.clone()));
                Ok(json!(name))
            }
            Operation::RenameChannel(place, name) => {
                self.channel(*place)?;
                self.free_name(name, Some(*place))?;
                self.channels[*place] = Some(name.clone());
                Ok(json!(name))
            }
            Operation::DeleteChannel(place) => {
                self.channel(*place)?;
                let on_it = |record: &Record| {
                    record.acquired.as_ref().is_some_and(|(_, channel, _)| channel == place)
                };
                if self.accounts.iter().any(|record| !record.deleted && on_it(record)) {
                    return Err(json!("conflict channel_in_use"));
                }
                self.channels[*place] = None;
                self.codes.retain(|_, code| code.channel != *place);
                Ok(json!(null))
            }
            Operation::AddCode(place, text) => {
                self.channel(*place)?;
                if self.codes.contains_key(&text.to_lowercase()) {
                    return Err(json!("conflict code_taken"));
                }
                let spelled = text.clone();
                let added = Code { spelled, channel: *place, archived_at: None, created_at: self.now() };
                let shown = code(&added);
                self.codes.insert(text.to_lowercase(), added);
                Ok(shown)
            }
            Operation::ArchiveCode(place, text, archived) => {
                self.channel(*place)?;
                let now = self.now();
                let found = self.codes.get_mut(&text.to_lowercase()).filter(|code| code.channel == *place);
                let found = found.ok_or(json!("no such promo code"))?;
                found.archived_at = if *archived { found.archived_at.or(Some(now)) } else { None };
                Ok(code(found))
            }
            Operation::DeleteCode(place, text) => {
                let found = self.codes.get(&text.to_lowercase()).filter(|code| code.channel == *place);
                found.ok_or(json!("no such promo code"))?;
                self.codes.remove(&text.to_lowercase());
                Ok(json!(null))
            }
            Operation::Settings(body) => self.patch_settings(body),
            Operation::Advance(_) => Ok(json!(null)),
        }
    }

    fn live(&self, place: usize) -> Result<&Record, Refused> {
        self.accounts.get(place).filter(|record| !record.deleted).ok_or(json!("no such account"))
    }

    fn channel(&self, place: usize) -> Result<&str, Refused> {
        self.channels.get(place).and_then(Option::as_deref).ok_or(json!("no such channel"))
    }

    fn free_name(&self, name: &str, but: Option<usize>) -> Result<(), Refused> {
        let taken = self.channels.iter().enumerate().any(|(place, other)| {
            Some(place) != but && other.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(name))
        });
        if taken { Err(json!("conflict name_taken")) } else { Ok(()) }
    }

    fn place_of(&self, imported_id: &str) -> Option<usize> {
        self.accounts
            .iter()
            .position(|record| !record.deleted && record.imported_id.as_deref() == Some(imported_id))
    }

    fn is_tracked(&self, status: Status) -> bool {
        self.tracked.contains(&status.as_str())
    }

    fn blank(&self, name: String, status: Status) -> Record {
        let now = self.now();
        Record {
            deleted: false,
            imported_id: None,
            name,
            status,
            fields: BTreeMap::new(),
            value: None,
            acquired: None,
            seen: None,
            cadence_days: None,
            snoozed_until: None,
            tracked_since: may_be_tracked(status).then_some(now),
            last_contact: None,
            announced: Vec::new(),
            campaign_hold: false,
            created_at: now,
            updated_at: now,
            history: Vec::new(),
            events: Vec::new(),
            activity: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    fn upsert(&mut self, body: &Value) -> Result<Value, Refused> {
        let mut with_project = body.as_object().unwrap().clone();
        with_project.insert("project".to_owned(), json!(self.project));
        let request = Upsert::parse(&with_project).map_err(invalid)?;
        let code = self.live_code(request.promo_code.as_ref());
        let mut listed = Listed::default();
        let known = self.place_of(&request.imported_id);
        let place = if let Some(place) = known {
            let mut record = self.accounts[place].clone();
            let renames = request.name_policy == Some(NamePolicy::Update);
            match request.name {
                Some(Ok(name)) if renames && record.name == name => {}
                Some(Ok(name)) if renames => {
                    record.name = name;
                    record.updated_at = self.now();
                    listed.changed.push("name");
                }
                Some(_) => listed.ignored.push("name"),
                None => {}
            }
            let goal = request.status.unwrap_or(record.status);
            let is_resync = request.status_policy == Some(StatusPolicy::Forward);
            let trigger = if is_resync { Trigger::Forward(goal) } else { Trigger::Set(goal) };
            let moves = pipeline::apply(record.status, trigger).is_some();
            if record.status != goal {
                let list = if moves { &mut listed.changed } else { &mut listed.ignored };
                list.push("status");
            }
            // The event of the move shows everything that the request changed.
            self.take(&mut record, body, request.common.capture, code.as_ref(), &mut listed)?;
            self.move_by(place, &mut record, trigger, "upsert", None);
            self.accounts[place] = record;
            place
        } else {
            let name =
                request.name.transpose().map_err(|fault| json!(format!("invalid /name {}", fault.code)))?;
            let name = name.unwrap_or_else(|| request.imported_id.clone());
            let mut record = self.blank(name, request.status.unwrap_or(Status::Prospect));
            record.imported_id = Some(request.imported_id);
            listed.changed.extend(["imported_id", "name", "status"]);
            self.take(&mut record, body, request.common.capture, code.as_ref(), &mut listed)?;
            self.add(record, "upsert")
        };
        Ok(json!({
            "created": known.is_none(), "changed": listed.changed, "ignored": listed.ignored,
            "promo_code_matched": code.is_some(), "account": self.view(place),
        }))
    }

    fn create(&mut self, body: &Value) -> Result<Value, Refused> {
        let request = Create::parse(body.as_object().unwrap()).map_err(invalid)?;
        let code = self.demanded_code(request.promo_code.as_ref())?;
        let mut record = self.blank(request.name, request.status);
        record.imported_id.clone_from(&request.imported_id);
        record.cadence_days = request.cadence_days;
        record.snoozed_until = request.snoozed_until;
        self.take(&mut record, body, request.common.capture, code.as_ref(), &mut Listed::default())?;
        if request.imported_id.is_some_and(|imported_id| self.place_of(&imported_id).is_some()) {
            return Err(json!("conflict imported_id_taken"));
        }
        let place = self.add(record, "operator");
        Ok(self.view(place))
    }

    fn patch(&mut self, place: usize, body: &Value) -> Result<Value, Refused> {
        let (request, promo_code) = Patch::parse(body.as_object().unwrap()).map_err(invalid)?;
        let before = self.live(place)?.clone();
        let code = self.demanded_code(promo_code.as_ref())?;
        if let Some(Some(imported_id)) = &request.imported_id
            && self.place_of(imported_id).is_some_and(|other| other != place)
        {
            return Err(json!("conflict imported_id_taken"));
        }
        let mut record = before.clone();
        record.name = request.name.unwrap_or(record.name);
        record.imported_id = request.imported_id.unwrap_or(record.imported_id);
        record.cadence_days = request.cadence_days.unwrap_or(record.cadence_days);
        record.snoozed_until = request.snoozed_until.unwrap_or(record.snoozed_until);
        if request.clear_channel {
            record.acquired = None;
        }
        self.take(&mut record, body, request.common.capture, code.as_ref(), &mut Listed::default())?;
        let own = |record: &Record| {
            let Record { name, imported_id, cadence_days, snoozed_until, acquired, .. } = record;
            (name.clone(), imported_id.clone(), *cadence_days, *snoozed_until, acquired.clone())
        };
        if own(&record) != own(&before) {
            record.updated_at = self.now();
        }
        let goal = request.status.unwrap_or(record.status);
        self.move_by(place, &mut record, Trigger::Set(goal), "operator", None);
        self.accounts[place] = record;
        Ok(self.view(place))
    }

    /// The folded text of an active code.
    fn live_code(&self, code: Option<&PromoCode>) -> Option<(String, usize)> {
        let found = self.codes.get(&code?.as_str().to_lowercase())?;
        found.archived_at.is_none().then(|| (found.spelled.clone(), found.channel))
    }

    fn demanded_code(&self, code: Option<&PromoCode>) -> Result<Option<(String, usize)>, Refused> {
        match (code, self.live_code(code)) {
            (Some(_), None) => Err(json!("invalid /promo_code unknown_promo_code")),
            (_, found) => Ok(found),
        }
    }

    /// Applies the custom fields, value and promo code of any request.
    fn take(
        &self,
        record: &mut Record,
        body: &Value,
        capture: Capture,
        code: Option<&(String, usize)>,
        listed: &mut Listed,
    ) -> Result<(), Refused> {
        let before = listed.changed.len();
        let none = Map::new();
        let sent = body["custom_fields"].as_object().unwrap_or(&none);
        let mut fields = record.fields.clone();
        for (key, value) in sent {
            if value.is_null() {
                fields.remove(key)
            } else {
                fields.insert(key.clone(), value.clone())
            };
        }
        if !sent.is_empty() && json!(fields).to_string().len() > 65_536 {
            return Err(json!("invalid /custom_fields too_large"));
        }
        if fields != record.fields {
            listed.changed.push("custom_fields");
            record.fields = fields;
        }
        self.capture(record, capture, listed);
        if let Some((spelled, channel)) = code
            && record.acquired.as_ref().is_none_or(|(_, current, _)| current != channel)
        {
            record.acquired = Some((spelled.clone(), *channel, self.now()));
            listed.changed.extend(["promo_code", "channel", "acquired_at"]);
        }
        if listed.changed.len() > before {
            record.updated_at = self.now();
        }
        Ok(())
    }

    fn capture(&self, record: &mut Record, capture: Capture, listed: &mut Listed) {
        let before = record.value;
        match capture {
            Capture::Keep => {}
            Capture::Clear => record.value = None,
            Capture::Set { amount, currency } => {
                let kept = before.map_or(self.currency, |money| money.currency);
                record.value = Some(Money { amount, currency: currency.unwrap_or(kept) });
            }
            Capture::Denominate(currency) => match &mut record.value {
                Some(money) => money.currency = currency,
                None => listed.ignored.push("captured_value_currency"),
            },
        }
        if record.value.map(|money| money.amount) != before.map(|money| money.amount) {
            listed.changed.push("captured_value");
        }
        if record.value.map(|money| money.currency) != before.map(|money| money.currency) {
            listed.changed.push("captured_value_currency");
        }
    }

    fn add(&mut self, mut record: Record, source: &str) -> usize {
        let place = self.accounts.len();
        record.history.push(json!([null, record.status, source, "token", null, self.now()]));
        let data = json!({ "account": self.core(place, &record), "source": source });
        record.events.push(self.event("account.created", data));
        self.accounts.push(record);
        place
    }

    fn move_by(
        &self,
        place: usize,
        record: &mut Record,
        trigger: Trigger,
        source: &str,
        note: Option<&str>,
    ) -> bool {
        let Some(step) = pipeline::apply(record.status, trigger) else { return false };
        let now = self.now();
        record.status = step.to;
        if !may_be_tracked(step.to) {
            record.tracked_since = None;
        } else if !(self.is_tracked(step.from) && self.is_tracked(step.to)) {
            record.tracked_since = Some(now);
        }
        match source {
            "operator" => record.campaign_hold = false,
            "automation" if step.from == Status::DoNotContact => record.campaign_hold = true,
            _ => {}
        }
        record.updated_at = now;
        let actor = if source == "automation" { "ingest_key" } else { "token" };
        record.history.push(json!([step.from, step.to, source, actor, note, now]));
        let account = self.core(place, record);
        let data = json!({
            "account": account, "previous_status": step.from, "status": step.to, "source": source,
        });
        record.events.push(self.event("account.status_changed", data));
        true
    }

    fn event(&self, kind: &str, data: Value) -> Value {
        json!({ "type": kind, "created_at": self.now(), "project": self.project, "data": data })
    }

    fn ingest(&mut self, body: &Map<String, Value>) -> Value {
        let batch = parse_batch(body, self.now()).expect("a batch");
        let mut rejected: Vec<(usize, &str, &str)> =
            batch.rejected.iter().map(|one| (one.index, one.code, one.field)).collect();
        let (mut accepted, mut duplicates, mut unmatched) = (0, 0, Vec::new());
        for event in &batch.valid {
            let known = |place: Option<usize>| place.filter(|place| !self.accounts[*place].deleted);
            let by_imported_id = event.imported_id.as_deref().map(|imported_id| self.place_of(imported_id));
            let by_id =
                event.account_id.map(|sent| known((0..self.accounts.len()).find(|place| id(*place) == sent)));
            let place = match (by_imported_id, by_id) {
                (Some(Some(one)), Some(Some(other))) if one != other => {
                    rejected.push((event.index, "account_mismatch", "account_id"));
                    continue;
                }
                (Some(None), _) | (_, Some(None)) | (None, None) => {
                    unmatched.push(event.index);
                    continue;
                }
                (Some(Some(place)), _) | (None, Some(Some(place))) => place,
            };
            if self.is_duplicate(event) {
                duplicates += 1;
            } else {
                accepted += 1;
                self.happened(place, event);
            }
        }
        rejected.sort_unstable();
        json!({
            "received": batch.received, "accepted": accepted, "duplicates": duplicates, "unmatched": unmatched,
            "rejected": rejected,
        })
    }

    /// Takes the event's id, unless it was taken within 90 days.
    fn is_duplicate(&mut self, event: &Activity) -> bool {
        let Some(mark) = event.mark else { return false };
        let now = self.now();
        if self.marks.get(&mark).is_some_and(|taken| now < taken.plus_days(90)) {
            return true;
        }
        self.marks.insert(mark, now);
        false
    }

    fn happened(&mut self, place: usize, event: &Activity) {
        let (at, now) = (event.occurred_at, self.now());
        let zone = TimeZone::get(&self.zone).expect("a zone");
        let mut record = self.accounts[place].clone();
        let (first, last) = record.seen.unwrap_or((at, at));
        record.seen = Some((first.min(at), last.max(at)));
        let feature = event.feature.clone();
        let count = record.counts.entry((at.day_in(&zone).number(), feature.clone().unwrap_or_default()));
        let count = count.or_insert((0, at));
        *count = (count.0 + 1, count.1.max(at));
        record.activity.push((at, json!([at, now, event.kind.as_str(), feature, event.metadata])));
        let mut listed = Listed::default();
        self.capture(&mut record, event.capture, &mut listed);
        if !listed.changed.is_empty() {
            record.updated_at = now;
        }
        if let Some(trigger) = event.kind.trigger() {
            self.move_by(place, &mut record, trigger, "automation", None);
        }
        self.accounts[place] = record;
    }

    fn patch_settings(&mut self, body: &Value) -> Result<Value, Refused> {
        let mut faults = Vec::new();
        if body["cadence_days"] == json!(0) {
            faults.push("/cadence_days out_of_range");
        }
        if body["tracked_stages"] == json!([]) {
            faults.push("/tracked_stages empty");
        }
        if body["time_zone"] == json!("Mars") {
            faults.push("/time_zone unknown_time_zone");
        }
        if !faults.is_empty() {
            return Err(json!(format!("invalid {}", faults.join(", "))));
        }
        self.cadence_days = body["cadence_days"].as_i64().unwrap_or(self.cadence_days);
        if let Some(stages) = body["tracked_stages"].as_array() {
            let wanted = |word: &&'static str| stages.contains(&json!(word));
            self.tracked = ["customer", "in_trial", "in_negotiation"].into_iter().filter(wanted).collect();
        }
        if let Some(zone) = body["time_zone"].as_str() {
            zone.clone_into(&mut self.zone);
        }
        if let Some(currency) = body["default_currency"].as_str() {
            self.currency = Currency::parse(currency).expect("a currency");
        }
        Ok(self.settings())
    }

    fn settings(&self) -> Value {
        json!([self.cadence_days, self.tracked, self.zone, self.currency.code()])
    }

    /// The account as a payload shows it.
    fn core(&self, place: usize, record: &Record) -> Value {
        let channel = record.acquired.as_ref().map(
            |(_, channel, _)| json!({ "id": format!("channel-{channel}"), "name": self.channels[*channel] }),
        );
        json!({
            "id": format!("account-{place}"), "imported_id": record.imported_id, "name": record.name,
            "status": record.status, "custom_fields": record.fields,
            "captured_value": record.value.map(|money| money.amount_text()),
            "captured_value_currency": record.value.map(|money| money.currency.code()),
            "promo_code": record.acquired.as_ref().map(|(code, ..)| code), "channel": channel,
            "acquired_at": record.acquired.as_ref().map(|(.., at)| at), "last_contact_at": record.last_contact,
            "first_seen_at": record.seen.map(|(first, _)| first), "last_seen_at": record.seen.map(|(_, last)| last),
            "created_at": record.created_at, "updated_at": record.updated_at,
        })
    }

    /// The account as an answer shows it, with its cadence.
    fn view(&self, place: usize) -> Value {
        let record = &self.accounts[place];
        let tracked = self.is_tracked(record.status);
        let (due_at, overdue) = (self.due_at(record), self.is_overdue(record));
        let days_overdue = due_at.filter(|_| overdue).map_or(0, |due| self.now().whole_days_since(due));
        let mut view = self.core(place, record);
        let more = json!({
            "cadence_days": record.cadence_days, "tracked": tracked, "overdue": overdue, "due_at": due_at,
            "snoozed_until": record.snoozed_until.map(|date| date.to_string()), "days_overdue": days_overdue,
            "tracked_since": record.tracked_since, "campaign_hold": record.campaign_hold,
        });
        view.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        view
    }

    fn due_at(&self, record: &Record) -> Option<Time> {
        let interval = record.cadence_days.unwrap_or(self.cadence_days);
        let start = record.last_contact.or(record.tracked_since);
        start.filter(|_| self.is_tracked(record.status)).map(|start| start.plus_days(interval))
    }

    fn is_snoozed(&self, record: &Record) -> bool {
        let zone = TimeZone::get(&self.zone).expect("a zone");
        record.snoozed_until.is_some_and(|date| self.now() < Time::start_of_day(date, &zone))
    }

    fn is_overdue(&self, record: &Record) -> bool {
        self.due_at(record).is_some_and(|due| due <= self.now()) && !self.is_snoozed(record)
    }

    /// Announces everyone whose episode isn't announced yet; returns how many.
    fn remind(&mut self) -> usize {
        let due = |record: &Record| {
            !record.deleted && self.is_overdue(record) && !record.announced.contains(&record.last_contact)
        };
        let places: Vec<usize> =
            (0..self.accounts.len()).filter(|place| due(&self.accounts[*place])).collect();
        for place in &places {
            let record = &self.accounts[*place];
            let due_at = self.due_at(record).expect("a due date");
            let data = json!({
                "account": self.core(*place, record), "due_at": due_at,
                "days_overdue": self.now().whole_days_since(due_at),
                "cadence_days": record.cadence_days.unwrap_or(self.cadence_days),
            });
            let event = self.event("client.contact_due", data);
            let record = &mut self.accounts[*place];
            record.announced.push(record.last_contact);
            record.events.push(event);
        }
        places.len()
    }

    /// The tabs of the Clients page.
    fn clients(&self) -> Value {
        let now = self.now();
        let live = || {
            let live = self.accounts.iter().enumerate().filter(|(_, record)| !record.deleted);
            live.filter_map(|(place, record)| self.due_at(record).map(|due| (due, place, record)))
        };
        let shown = |mut found: Vec<(Time, usize, &Record)>| {
            found.sort_by_key(|(key, place, _)| (*key, *place));
            let line = |(_, place, record): &(Time, usize, &Record)| {
                json!([format!("account-{place}"), self.due_at(record)])
            };
            found.iter().map(line).collect::<Value>()
        };
        let soon = |due: &Time| *due > now && *due <= now.plus_days(7);
        let sleeping = live().filter(|(.., record)| self.is_snoozed(record)).map(|(_, place, record)| {
            let until = record.snoozed_until.expect("a snooze");
            (Time::start_of_day(until, &TimeZone::UTC), place, record)
        });
        let awake = live().filter(|(.., record)| !self.is_snoozed(record));
        json!([
            shown(live().filter(|(.., record)| self.is_overdue(record)).collect()),
            shown(awake.filter(|(due, ..)| soon(due)).collect()),
            shown(sleeping.collect()),
            shown(live().collect()),
        ])
    }

    fn everything_of(&self, place: usize) -> Value {
        let record = &self.accounts[place];
        let mut activity: Vec<_> = record.activity.iter().enumerate().collect();
        activity.sort_by_key(|(order, one)| std::cmp::Reverse((one.0, *order)));
        let activity: Vec<Value> = activity.into_iter().map(|(_, one)| one.1.clone()).collect();
        let zone = TimeZone::get(&self.zone).expect("a zone");
        let today = self.now().day_in(&zone);
        let mut days: BTreeMap<String, i64> = BTreeMap::new();
        let mut features: BTreeMap<&str, (i64, Time)> = BTreeMap::new();
        for ((day, feature), (count, last)) in &record.counts {
            if (today.number() - 89..=today.number()).contains(day) {
                *days.entry(rapport_domain::time::Day::from_number(*day).to_string()).or_default() += count;
            }
            if !feature.is_empty() {
                let used = features.entry(feature).or_insert((0, *last));
                *used = (used.0 + count, used.1.max(*last));
            }
        }
        let mut features: Vec<_> = features.into_iter().collect();
        features.sort_by_key(|(feature, (count, _))| (-count, *feature));
        features.truncate(20);
        let features: Vec<Value> =
            features.into_iter().map(|(feature, (count, last))| json!([feature, count, last])).collect();
        json!({
            "account": (!record.deleted).then(|| self.view(place)),
            "by_imported_id": record.imported_id.as_ref().map(|_| format!("account-{place}")),
            "seen": record.seen, "history": record.history, "events": record.events, "activity": activity,
            "days": days.into_iter().collect::<Vec<_>>(), "features": features,
        })
    }
}

/// The id of an account in the model: its number.
fn id(place: usize) -> AccountId {
    let mut bytes = [0xaa; 16];
    bytes[15] = u8::try_from(place).expect("few accounts");
    AccountId::from_bytes(bytes)
}

fn code(code: &Code) -> Value {
    json!([format!("channel-{}", code.channel), code.spelled, code.archived_at, code.created_at])
}

fn invalid(invalid: Invalid) -> Refused {
    json!(refusal(Err::<(), _>(rapport_app::Error::Invalid(invalid))))
}
