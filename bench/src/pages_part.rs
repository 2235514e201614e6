//! The pages: how long each takes over few and over many accounts, and how large its HTML is.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rapport_domain::account::Account;
use rapport_domain::event::{Event, Kind};
use rapport_domain::id::{AccountId, DeliveryId, EventId, WebhookId};
use rapport_domain::money::{Amount, Currency, Money};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_store::delivery::{self, NewDelivery};
use rapport_store::{Error, Tx, event};
use serde_json::{Value, json};

use crate::Plan;
use crate::browser::Browser;
use crate::core_part::Loaded;
use crate::dataset::{Ids, Loader};
use crate::drive;
use crate::http::{Connection, Endpoint};
use crate::measure::{Latencies, Usage, Watch, now, wait_until_idle};
use crate::place::{Engine, Ground, Place};
use crate::report::{Report, Row, Target, whole};
use crate::service::{Credentials, Service};
use crate::webhooks_part::payload;

/// Every page, by what it shows. A name in braces stands for the id of such an object.
const PAGES: &[(&str, &str)] = &[
    ("dashboard", "/"),
    ("pipeline", "/pipeline"),
    ("pipeline, moves", "/pipeline/moves"),
    ("accounts", "/accounts"),
    ("accounts by status", "/accounts?status=customer"),
    ("accounts searched", "/accounts?q=Kestrel"),
    ("accounts searched, two words", "/accounts?q=Kestrel+Energy"),
    ("accounts sorted by name", "/accounts?sort=name"),
    ("accounts sorted by name, descending", "/accounts?sort=-name"),
    ("accounts sorted by status", "/accounts?sort=status"),
    ("accounts sorted by status, descending", "/accounts?sort=-status"),
    ("accounts sorted by value", "/accounts?sort=captured_value"),
    ("accounts sorted by value, descending", "/accounts?sort=-captured_value"),
    ("accounts sorted by channel", "/accounts?sort=channel"),
    ("accounts sorted by channel, descending", "/accounts?sort=-channel"),
    ("accounts sorted by promo code", "/accounts?sort=promo_code"),
    ("accounts sorted by promo code, descending", "/accounts?sort=-promo_code"),
    ("accounts sorted by last seen", "/accounts?sort=last_seen_at"),
    ("accounts sorted by last seen, descending", "/accounts?sort=-last_seen_at"),
    ("accounts sorted by first seen", "/accounts?sort=first_seen_at"),
    ("accounts sorted by first seen, descending", "/accounts?sort=-first_seen_at"),
    ("accounts sorted by last contact", "/accounts?sort=last_contact_at"),
    ("accounts sorted by last contact, descending", "/accounts?sort=-last_contact_at"),
    ("accounts sorted by acquired", "/accounts?sort=acquired_at"),
    ("accounts sorted by acquired, descending", "/accounts?sort=-acquired_at"),
    ("accounts sorted by created", "/accounts?sort=created_at"),
    ("accounts sorted by updated", "/accounts?sort=updated_at"),
    ("accounts sorted by updated, descending", "/accounts?sort=-updated_at"),
    ("accounts created since a day", "/accounts?created_since=2020-01-01"),
    ("customers sorted by value, descending", "/accounts?status=customer&sort=-captured_value"),
    ("new account", "/accounts/new"),
    ("account lookup", "/accounts/lookup"),
    ("account", "/accounts/{account}"),
    ("account, corrections", "/accounts/{account}?show=corrections"),
    ("clients, overdue", "/clients"),
    ("clients, due soon", "/clients?tab=due_soon"),
    ("clients, snoozed", "/clients?tab=snoozed"),
    ("clients, all", "/clients?tab=tracked"),
    ("campaigns", "/campaigns"),
    ("new campaign", "/campaigns/new"),
    ("campaign", "/campaigns/{campaign}"),
    ("campaign, edit", "/campaigns/{campaign}/edit"),
    ("channels", "/channels"),
    ("channel", "/channels/{channel}"),
    ("imports", "/imports"),
    ("import, columns", "/imports/{import}/columns"),
    ("webhooks", "/webhooks"),
    ("new webhook", "/webhooks/new"),
    ("webhooks, signature checker", "/webhooks/check"),
    ("webhooks, receiving", "/webhooks/receiving"),
    ("webhooks, events", "/webhooks/events"),
    ("webhook", "/webhooks/{webhook}"),
    ("webhook, edit", "/webhooks/{webhook}/edit"),
    ("deliveries", "/deliveries"),
    ("deliveries of a webhook", "/deliveries?webhook={webhook}"),
    ("redeliveries", "/redeliveries"),
    ("new redelivery", "/redeliveries/new"),
    ("settings", "/settings"),
    ("settings, deletion", "/settings/deletion"),
    ("settings, currencies", "/settings/currencies"),
    ("settings, cadence", "/settings/cadence"),
    ("settings, digest", "/settings/digest"),
    ("settings, members", "/settings/members"),
    ("settings, security", "/settings/security"),
    ("settings, single sign-on", "/settings/sso"),
    ("settings, tokens", "/settings/tokens"),
    ("settings, ingest", "/settings/ingest"),
    ("settings, mail", "/settings/mail"),
    ("settings, audit log", "/settings/audit"),
    ("settings, system", "/settings/system"),
    ("profile", "/profile"),
    ("companies", "/companies"),
    ("palette", "/palette?q=Kestrel"),
];

const MOST_SETTLING: Duration = Duration::from_mins(5);
const MOST_SLOWDOWN: f64 = 2.0;
const MOST_HTML_KB: f64 = 100.0;
const DELIVERIES: usize = 1_000;
const DELIVERIES_PER_TRANSACTION: usize = 500;
const DAYS_AGO: i64 = 400;

pub fn run(plan: &Plan, engine: Engine, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::prepare(engine);
    let (smallest, largest) = (plan.accounts.iter().min().copied(), plan.accounts.iter().max().copied());
    let mut sizes: Vec<usize> = smallest.into_iter().chain(largest).collect();
    sizes.dedup();
    if let ([only], true) = (&sizes[..], plan.quick) {
        // Two sizes, so that everything is tried.
        sizes = vec![*only / 4, *only];
    }
    let mut by_size: Vec<(usize, Vec<Seen>)> = Vec::new();
    for accounts in sizes {
        report.heading(&format!("{engine}, pages, {accounts} accounts"));
        report.say("loading");
        let start = now();
        let loaded = Loaded::with(plan, &ground, accounts, &|number, account| vary(number, account, start))?;
        by_size.push((accounts, look(plan, loaded, report)?));
    }
    check(engine, &by_size, report);
    for seen in by_size.iter().flat_map(|(_, seen)| seen).filter(|seen| seen.status != 200) {
        report.fail(format!("{engine}: {} answered {}", seen.path, seen.status));
    }
    Ok(())
}

/// What was observed about a page.
struct Seen {
    label: &'static str,
    path: &'static str,
    status: u16,
    kilobytes: f64,
    p50: f64,
}

/// Every stage, some values, some clients overdue and some not, all of them seen within the last day.
fn vary(number: usize, account: &mut Account, now: Time) {
    let seconds = i64::try_from(number * 7_919 % 86_400).unwrap_or(0);
    account.last_seen_at = Some(now.plus_seconds(-seconds));
    account.status = Status::ALL[number % Status::ALL.len()];
    if number.is_multiple_of(3) {
        let amount = i64::try_from(number % 5_000).unwrap_or(0);
        account.value =
            Amount::parse(&amount.to_string()).ok().map(|amount| Money { amount, currency: Currency::USD });
    }
    if account.status == Status::Customer {
        account.tracked_since = Some(account.created_at.plus_days(-DAYS_AGO));
        let days = i64::try_from(number % 200).unwrap_or(0);
        account.last_contact_at = Some(now.plus_days(-days));
    }
}

/// Logs in as the owner, and opens every page.
fn look(plan: &Plan, loaded: Loaded, report: &mut Report) -> anyhow::Result<Vec<Seen>> {
    let Loaded { place, dataset, credentials } = loaded;
    let service = Service::start(plan, &place)?;
    let made = Made::of(service.address, &credentials, dataset.ids[dataset.ids.len() / 2])?;
    service.stop()?;
    fill(&place, &dataset, made.webhook)?;
    let service = Service::start(plan, &place)?;
    // Overdue clients are announced once, and large stages are counted: pages are measured after both.
    wait_until_idle(service.process(), plan.pick(MOST_SETTLING, Duration::ZERO));
    let browser = Browser::join(service.address, &credentials)?;
    let mut all = Vec::new();
    for (label, path) in PAGES {
        let (status, bytes, latencies, usage) = ask(plan, &service, &browser.get(&made.fill_in(path)))?;
        let kilobytes = whole(bytes as u64) / 1_000.0;
        let row = Row::new(format!("{label}: {path}")).with("kilobytes", kilobytes);
        let note = if status == 200 { String::new() } else { format!("answered {status}") };
        report.add(row.latencies(&latencies).usage(&usage).note(note));
        let p50 = latencies.percentile(50.0).unwrap_or(f64::INFINITY);
        all.push(Seen { label, path, status, kilobytes, p50 });
    }
    service.stop()?;
    Ok(all)
}

fn ask(plan: &Plan, service: &Service, request: &[u8]) -> anyhow::Result<(u16, usize, Latencies, Usage)> {
    let watch = Watch::start(service.process());
    let (status, bytes, latencies) = drive::runtime()?.block_on(repeat(plan, service.address, request))?;
    Ok((status, bytes, latencies, watch.finish()))
}

/// Requests one page again and again, over one connection, for a part of the window.
async fn repeat(plan: &Plan, address: SocketAddr, request: &[u8]) -> anyhow::Result<(u16, usize, Latencies)> {
    let mut connection = Connection::open(address).await.context("connecting to the service")?;
    let mut latencies = Latencies::default();
    // The first ones fill the caches.
    for _ in 0..plan.pick(5, 1) {
        connection.send(request).await?;
    }
    let (begun, time) = (Instant::now(), plan.window / plan.pick(5, 20));
    loop {
        let sent = Instant::now();
        let answer = connection.send(request).await?;
        latencies.record(sent.elapsed());
        if begun.elapsed() >= time || answer.status != 200 {
            return Ok((answer.status, answer.body.len(), latencies));
        }
    }
}

fn check(engine: Engine, by_size: &[(usize, Vec<Seen>)], report: &mut Report) {
    if let [(small, few), (large, many)] = by_size {
        for (few, many) in few.iter().zip(many).filter(|(few, _)| few.status == 200) {
            let what = format!("{engine}: {}: p50 with {large} accounts relative to {small}", few.label);
            report.check(what, many.p50 / few.p50, Target::AtMost(MOST_SLOWDOWN));
        }
    }
    let Some((accounts, seen)) = by_size.last() else { return };
    let largest = seen.iter().max_by(|a, b| a.kilobytes.total_cmp(&b.kilobytes));
    if let Some(largest) = largest {
        let what = format!("{engine}: KB of the largest page ({}) with {accounts} accounts", largest.label);
        report.check(what, largest.kilobytes, Target::AtMost(MOST_HTML_KB));
    }
}

/// One of each object that has its own page.
struct Made {
    account: AccountId,
    webhook: WebhookId,
    import: String,
    campaign: String,
    channel: String,
}

impl Made {
    fn of(address: SocketAddr, credentials: &Credentials, account: AccountId) -> anyhow::Result<Self> {
        let authorization = format!("authorization: Bearer {}", credentials.api_token);
        let make =
            |path: &str, body: Value| post(address, &Endpoint::post(path, &authorization), &body.to_string());
        // Switched off, so that its deliveries stay held.
        let webhook = json!({ "url": "https://receiver.test/", "events": ["account.status_changed"] });
        let webhook = id_of(&make("/api/webhooks/", webhook)?)?;
        make(&format!("/api/webhooks/{webhook}/disable/"), json!({}))?;
        let csv = Endpoint::post_as("/api/imports/", "text/csv", &authorization);
        let campaign =
            json!({ "name": "Spring", "goal": "acquisition", "filters": { "status": ["prospect"] } });
        Ok(Self {
            account,
            webhook: webhook.parse().ok().context("a webhook's id")?,
            import: id_of(&post(address, &csv, "id,name,plan\ncrm-1,Acme,pro\n")?)?,
            campaign: id_of(&make("/api/campaigns/", campaign)?)?,
            channel: id_of(&make("/api/channels/", json!({ "name": "Fair" }))?)?,
        })
    }

    fn fill_in(&self, path: &str) -> String {
        path.replace("{account}", &self.account.to_string())
            .replace("{webhook}", &self.webhook.to_string())
            .replace("{import}", &self.import)
            .replace("{campaign}", &self.campaign)
            .replace("{channel}", &self.channel)
    }
}

fn id_of(made: &Value) -> anyhow::Result<String> {
    made["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {made}"))
}

fn post(address: SocketAddr, endpoint: &Endpoint, body: &str) -> anyhow::Result<Value> {
    let mut request = Vec::new();
    endpoint.write(&mut request, body.as_bytes());
    let (status, answer) = drive::call(address, &request)?;
    ensure!(matches!(status, 200 | 201), "{status}: {}", String::from_utf8_lossy(&answer));
    Ok(serde_json::from_slice(&answer)?)
}

/// Adds some deliveries to the webhook.
fn fill(place: &Place, dataset: &crate::dataset::Dataset, webhook: WebhookId) -> anyhow::Result<()> {
    let loader = Loader::open(place, dataset.project.as_str())?;
    let (mut ids, payload) = (Ids::new(0xde11), payload(dataset));
    let numbers: Vec<usize> = (0..DELIVERIES).collect();
    let transactions = numbers.chunks(DELIVERIES_PER_TRANSACTION).map(|numbers| {
        let now = now();
        let (mut events, mut deliveries) = (Vec::new(), Vec::new());
        for number in numbers {
            let (id, account): (EventId, _) = (ids.next(now), Some(dataset.ids[number % dataset.ids.len()]));
            let kind = Kind::AccountStatusChanged;
            events.push(Event { id, kind, account, payload: payload.clone(), created_at: now });
            deliveries.push(NewDelivery {
                id: ids.next::<DeliveryId>(now),
                webhook,
                event: id,
                kind,
                account,
                owner: None,
                created_at: now,
            });
        }
        move |tx: &mut Tx| -> Result<(), Error> {
            event::insert(tx, &events)?;
            delivery::insert(tx, &deliveries)
        }
    });
    loader.write_all(transactions)?;
    loader.close();
    place.settle()
}
