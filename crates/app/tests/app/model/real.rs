//! The application on an engine, as the model test drives it.

use std::collections::HashMap;

use rapport_app::Error;
use rapport_app::account::{ChangeStatus, CreateAccount, DeleteAccount, PatchAccount};
use rapport_app::cadence::{self, Stepped};
use rapport_app::channel::{AddCode, ArchiveCode, CreateChannel, DeleteChannel, DeleteCode, RenameChannel};
use rapport_app::contact::RecordContact;
use rapport_app::settings::PatchSettings;
use rapport_domain::account::{Account, Create, Patch, StatusChange};
use rapport_domain::channel::{ChannelCode, PromoCode};
use rapport_domain::company::{Settings, time_zone_name};
use rapport_domain::contact::{Kind, NewContact};
use rapport_domain::id::{AccountId, ChannelId};
use rapport_domain::time::Time;
use rapport_store::clients::{Client, ListClients, Tab};
use rapport_store::{Query, Snapshot, account, activity, channel, company, event, history};
use rapport_testkit::{TestClock, TestCompany, block_on};
use serde_json::{Value, json};

use super::{Operation, Subject, named};
use crate::refusal;

const ALL: i64 = 1000;

pub struct Real {
    company: TestCompany,
    clock: TestClock,
    accounts: Vec<AccountId>,
    channels: Vec<ChannelId>,
}

impl Real {
    pub fn new(company: TestCompany, clock: TestClock) -> Self {
        Self { company, clock, accounts: Vec::new(), channels: Vec::new() }
    }

    fn account(&self, place: usize) -> AccountId {
        named(&self.accounts, place, AccountId::from_bytes([0xee; 16]))
    }

    fn channel(&self, place: usize) -> ChannelId {
        named(&self.channels, place, ChannelId::from_bytes([0xee; 16]))
    }

    fn answer(&mut self, operation: &Operation) -> Result<Value, Error> {
        let company = &self.company;
        Ok(match operation {
            Operation::Upsert(body) => {
                let reply = company.try_upsert(body.clone())?;
                if reply.created {
                    self.accounts.push(reply.account.id);
                }
                json!({
                    "created": reply.created, "changed": reply.changed, "ignored": reply.ignored,
                    "promo_code_matched": reply.promo_code_matched,
                    "account": view(&reply.account, &reply.settings, reply.now),
                })
            }
            Operation::Ingest(events) => {
                let now = self.clock.now();
                let events: Vec<Value> =
                    events.iter().map(|event| event.to_json(&self.accounts, now)).collect();
                let reply = company.try_ingest(json!(events))?;
                let rejected: Vec<Value> =
                    reply.rejected.iter().map(|one| json!([one.index, one.code, one.field])).collect();
                json!({
                    "received": reply.received, "accepted": reply.accepted, "duplicates": reply.duplicates.len(),
                    "unmatched": reply.unmatched, "rejected": rejected,
                })
            }
            Operation::Create(body) => {
                let reply = company.write(CreateAccount(Create::parse(body.as_object().unwrap())?))?;
                self.accounts.push(reply.reply.id);
                view(&reply.reply, &reply.company.settings, reply.now)
            }
            Operation::Patch(place, body) => {
                let (patch, promo_code) = Patch::parse(body.as_object().unwrap())?;
                let reply = company.write(PatchAccount { id: self.account(*place), patch, promo_code })?;
                view(&reply.reply, &reply.company.settings, reply.now)
            }
            Operation::ChangeStatus(place, status, note) => {
                let change = StatusChange { status: *status, note: note.clone() };
                let reply = company.write(ChangeStatus { id: self.account(*place), change })?;
                let account = view(&reply.account.reply, &reply.account.company.settings, reply.account.now);
                json!({ "moved": reply.moved, "account": account })
            }
            Operation::Contact(place, ago) => {
                let now = self.clock.now();
                let contact =
                    NewContact { kind: Kind::Call, note: None, occurred_at: now.plus_seconds(-ago) };
                let made = company.write(RecordContact { account: self.account(*place), contact })?;
                json!(made.occurred_at)
            }
            Operation::Remind => json!(remind(company)?),
            Operation::Delete(place) => json!(company.write(DeleteAccount(self.account(*place))).map(drop)?),
            Operation::CreateChannel(name) => {
                let made = company.write(CreateChannel { name: name.clone() })?;
                self.channels.push(made.id);
                json!(made.name)
            }
            Operation::RenameChannel(place, name) => {
                json!(company.write(RenameChannel { id: self.channel(*place), name: name.clone() })?.name)
            }
            Operation::DeleteChannel(place) => json!(company.write(DeleteChannel(self.channel(*place)))?),
            Operation::AddCode(place, text) => code(&company.write(AddCode {
                channel: self.channel(*place),
                code: promo(text),
                archived: false,
            })?),
            Operation::ArchiveCode(place, text, archived) => {
                let (channel, archived) = (self.channel(*place), *archived);
                code(&company.write(ArchiveCode { channel, code: promo(text), archived })?)
            }
            Operation::DeleteCode(place, text) => {
                json!(company.write(DeleteCode { channel: self.channel(*place), code: promo(text) })?)
            }
            Operation::Settings(body) => {
                settings(&company.write(PatchSettings(body.as_object().unwrap().clone()))?.settings)
            }
            Operation::Advance(_) => json!(null),
        })
    }

    /// Replaces ids by their order of creation.
    fn shown(&self, value: Value) -> Value {
        let accounts =
            self.accounts.iter().enumerate().map(|(n, id)| (id.to_string(), format!("account-{n}")));
        let channels =
            self.channels.iter().enumerate().map(|(n, id)| (id.to_string(), format!("channel-{n}")));
        replace(value, &accounts.chain(channels).collect())
    }
}

impl Subject for Real {
    fn run(&mut self, operation: &Operation) -> Value {
        let answer = self.answer(operation);
        match answer {
            Ok(value) => self.shown(value),
            Err(error) => json!({ "refused": refusal(Err::<(), _>(error)) }),
        }
    }

    fn everything(&self) -> Vec<Value> {
        let (ids, now) = (self.accounts.clone(), self.clock.now());
        let all = self.company.read(move |snapshot| {
            let settings_now = company::get(snapshot)?.expect("the company").settings;
            let mut all = vec![settings(&settings_now), channels(snapshot)?, clients(snapshot, now)?];
            for id in ids {
                all.push(everything_of(snapshot, id, &settings_now, now)?);
            }
            Ok(all)
        });
        all.into_iter().map(|value| self.shown(value)).collect()
    }
}

/// Announces everyone who is due; returns how many.
fn remind(company: &TestCompany) -> Result<usize, Error> {
    let mut total = 0;
    loop {
        let Stepped { announced, more } = block_on(cadence::step(company.app(), company.id()))?;
        total += announced;
        if !more {
            return Ok(total);
        }
    }
}

fn clients(snapshot: &mut Snapshot, now: Time) -> Result<Value, rapport_store::Error> {
    let mut tabs = Vec::new();
    for tab in Tab::ALL {
        let page = ListClients { tab, after: None, limit: 200, now }.run(snapshot)?;
        let count = rapport_store::clients::count(snapshot, tab, now)?;
        assert_eq!(count.count, i64::try_from(page.items.len()).expect("few"), "{tab:?}");
        let line = |client: &Client| json!([client.account.id, client.due.due_at]);
        tabs.push(page.items.iter().map(line).collect::<Value>());
    }
    Ok(json!(tabs))
}

fn everything_of(
    snapshot: &mut Snapshot,
    id: AccountId,
    settings: &Settings,
    now: Time,
) -> Result<Value, rapport_store::Error> {
    let found = account::get(snapshot, id)?;
    let by_imported_id = match found.as_ref().and_then(|account| account.imported_id.as_deref()) {
        Some(imported_id) => account::ids_by_imported_id(snapshot, &[imported_id])?.pop().map(|(_, id)| id),
        None => None,
    };
    let history: Vec<Value> = history::of_account(snapshot, id, None, ALL)?
        .items
        .into_iter()
        .rev()
        .map(|entry| json!([entry.from, entry.to, entry.source, entry.actor.kind(), entry.note, entry.at]))
        .collect();
    let events: Vec<Value> =
        event::of_account(snapshot, id)?.iter().map(|event| payload(&event.payload)).collect();
    let kept: Vec<Value> = activity::list(snapshot, id, None, ALL)?
        .items
        .into_iter()
        .map(|one| json!([one.occurred_at, one.received_at, one.kind, one.feature, one.metadata]))
        .collect();
    let days: Vec<(String, i64)> = activity::days(snapshot, id, now.day_in(&settings.time_zone))?
        .into_iter()
        .map(|(day, count)| (day.to_string(), count))
        .collect();
    let features: Vec<Value> = activity::features(snapshot, id)?
        .into_iter()
        .map(|used| json!([used.feature, used.count, used.last_used_at]))
        .collect();
    Ok(json!({
        "account": found.map(|account| view(&account, settings, now)), "by_imported_id": by_imported_id,
        "seen": activity::seen(snapshot, id)?, "history": history, "events": events, "activity": kept,
        "days": days, "features": features,
    }))
}

fn view(account: &Account, settings: &Settings, now: Time) -> Value {
    let mut shown = serde_json::to_value(account.view(settings, now)).expect("a view is JSON");
    shown["tracked_since"] = json!(account.tracked_since);
    shown["campaign_hold"] = json!(account.campaign_hold);
    shown
}

/// A payload without the event's own id, which is checked and then removed.
fn payload(text: &str) -> Value {
    let mut payload: Value = serde_json::from_str(text).expect("a payload is JSON");
    let id = payload.as_object_mut().and_then(|members| members.remove("id"));
    assert!(id.as_ref().and_then(Value::as_str).is_some_and(|id| id.starts_with("evt_")), "{text}");
    payload
}

fn channels(snapshot: &mut Snapshot) -> Result<Value, rapport_store::Error> {
    let channels: Vec<Value> = channel::list(snapshot)?.iter().map(|one| json!([one.id, one.name])).collect();
    let codes: Vec<Value> = channel::all_codes(snapshot)?.iter().map(code).collect();
    Ok(json!([channels, codes]))
}

fn code(code: &ChannelCode) -> Value {
    json!([code.channel, code.code.as_str(), code.archived_at, code.created_at])
}

fn settings(settings: &Settings) -> Value {
    let zone = time_zone_name(&settings.time_zone);
    json!([settings.cadence_days, settings.tracked_stages.statuses(), zone, settings.default_currency.code()])
}

fn promo(text: &str) -> PromoCode {
    PromoCode::parse(text).expect("a promo code")
}

fn replace(value: Value, names: &HashMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(names.get(&text).cloned().unwrap_or(text)),
        Value::Array(items) => items.into_iter().map(|item| replace(item, names)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, item)| (key, replace(item, names))).collect(),
        other => other,
    }
}
