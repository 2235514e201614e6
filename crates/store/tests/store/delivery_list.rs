//! The delivery list compared with a plain model: every filter, every page size, on both engines.

use rapport_domain::delivery::{Delivery, State};
use rapport_domain::delivery_list::{Filter, Shown, WebhookState, appearance};
use rapport_domain::event::{Event, Kind};
use rapport_domain::id::{AccountId, CompanyId, DeliveryId, IdSequence, WebhookId};
use rapport_domain::time::Time;
use rapport_domain::webhook::{Selection, Switch, Webhook};
use rapport_store::delivery::NewDelivery;
use rapport_store::delivery_health::{Tally, tally};
use rapport_store::delivery_list::{Bounds, Scan, scan};
use rapport_store::subscription::Selects;
use rapport_store::{Database, all_statements, delivery, delivery_list, event, webhook};
use serde_json::json;

use crate::support::{Random, World, account_id, bytes, on_both_engines, time};

const EVENTS: u64 = 300;
const SECONDS: i64 = 10;

/// The states of the webhooks: enabled, disabled, deleted, and enabled with a past drop.
fn standings() -> [(WebhookId, WebhookState); 4] {
    let on = WebhookState { enabled: true, deleted_at: None, dropped_before: Time::from_micros(0) };
    let numbered = |number, standing| (WebhookId::from_bytes(bytes(number)), standing);
    [
        numbered(1, on),
        numbered(2, WebhookState { enabled: false, ..on }),
        numbered(3, WebhookState { deleted_at: Some(time(5_000)), ..on }),
        numbered(4, WebhookState { dropped_before: time(1_500), ..on }),
    ]
}

fn insert_webhooks(world: &World, company: CompanyId) {
    let done = world.write(company, |tx| {
        for (id, standing) in standings() {
            let made = Webhook {
                id,
                url: "https://example.com/".to_owned(),
                description: String::new(),
                events: Selection::from_json(&json!(["account.created"])).expect("a selection"),
                switch: if standing.enabled { Switch::Enabled } else { Switch::DisabledByHand },
                failure_streak: 0,
                proven: false,
                last_test: None,
                url_changed_at: time(0),
                created_at: time(0),
                updated_at: time(0),
            };
            webhook::insert(tx, &made, b"sealed", "whs_…")?;
            webhook::update(tx, &[&made], Selects::AsBefore)?;
            webhook::drop_before(tx, id, standing.dropped_before)?;
            if let Some(at) = standing.deleted_at {
                webhook::mark_deleted(tx, id, at)?;
            }
        }
        Ok(())
    });
    done.expect("webhooks");
}

/// Events of some accounts, each with deliveries for some webhooks, in every state.
fn fill(world: &World, company: CompanyId, seed: u64) -> Vec<Delivery> {
    let (mut random, mut ids) = (Random::seeded(seed), IdSequence::default());
    let (mut events, mut deliveries, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..EVENTS {
        let at = time(i64::try_from(number).expect("small") * SECONDS);
        let kind = random.pick(&[Kind::AccountCreated, Kind::AccountStatusChanged, Kind::WebhookTest]);
        let account = (kind != Kind::WebhookTest).then(|| account_id(1 + random.below(7) as u64));
        let id = ids.next(at, [3; 10]);
        events.push(Event { id, kind, account, payload: "{}".to_owned(), created_at: at });
        for (webhook, _) in standings() {
            if random.one_in(3) {
                continue;
            }
            let state = random.pick(&[State::Open { next_at: at }, State::Succeeded, State::Failed]);
            let owner = (matches!(state, State::Open { .. }) && random.one_in(4)).then_some(7);
            let attempts = i64::from(kind == Kind::WebhookTest);
            owners.push(owner);
            deliveries.push(Delivery {
                id: ids.next(at, [3; 10]),
                webhook,
                event: id,
                kind,
                account,
                state,
                attempts,
                scheduled: 0,
                response_code: None,
                error: None,
                created_at: at,
                finished_at: None,
            });
        }
    }
    let kept = deliveries.clone();
    let done = world.write(company, move |tx| {
        event::insert(tx, &events)?;
        let of = |delivery: &Delivery, owner| NewDelivery {
            id: delivery.id,
            webhook: delivery.webhook,
            event: delivery.event,
            kind: delivery.kind,
            account: delivery.account,
            owner,
            created_at: delivery.created_at,
        };
        let new: Vec<NewDelivery> = kept.iter().zip(&owners).map(|(one, owner)| of(one, *owner)).collect();
        delivery::insert(tx, &new)?;
        // Settling releases a delivery, so those that a node holds stay as inserted.
        let settled: Vec<&Delivery> =
            kept.iter().zip(&owners).filter(|(_, owner)| owner.is_none()).map(|(one, _)| one).collect();
        delivery::settle(tx, &settled)
    });
    done.expect("deliveries");
    // An owned test has no attempt yet.
    for delivery in &mut deliveries {
        let stored = world.read(company, {
            let id = delivery.id;
            move |snapshot| delivery::get(snapshot, id)
        });
        *delivery = stored.expect("inserted");
    }
    deliveries
}

fn filters(random: &mut Random) -> Vec<Filter> {
    let mut all = vec![Filter::default()];
    for (webhook, _) in standings() {
        all.push(Filter { webhook: Some(webhook), ..Filter::default() });
    }
    for state in Shown::ALL {
        all.push(Filter { state: Some(state), ..Filter::default() });
        for (webhook, _) in standings() {
            all.push(Filter { state: Some(state), webhook: Some(webhook), ..Filter::default() });
        }
    }
    for _ in 0..40 {
        let webhooks = standings().map(|(webhook, _)| webhook);
        let moment = |random: &mut Random| time(i64::try_from(random.below(3_200)).expect("small"));
        all.push(Filter {
            webhook: random.one_in(2).then(|| random.pick(&webhooks)),
            state: random.one_in(2).then(|| random.pick(&Shown::ALL)),
            kind: random.one_in(3).then(|| random.pick(&[Kind::AccountCreated, Kind::WebhookTest])),
            account: random.one_in(3).then(|| account_id(1 + random.below(8) as u64)),
            since: random.one_in(3).then(|| moment(random)),
            until: random.one_in(3).then(|| moment(random)),
        });
    }
    all
}

fn expected(deliveries: &[Delivery], filter: &Filter) -> Vec<DeliveryId> {
    let standings = standings();
    let standing = |id| standings.iter().find(|(known, _)| *known == id).map(|(_, standing)| standing);
    let admitted = deliveries
        .iter()
        .filter(|delivery| filter.admits(delivery, appearance(delivery, standing(delivery.webhook)).state));
    let mut ids: Vec<DeliveryId> = admitted.map(|delivery| delivery.id).collect();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids
}

fn one_scan(
    world: &World,
    company: CompanyId,
    filter: Filter,
    before: Option<DeliveryId>,
    bounds: Bounds,
) -> Scan {
    world.read(company, move |snapshot| scan(snapshot, &filter, before, bounds))
}

fn all_pages(world: &World, company: CompanyId, filter: Filter, bounds: Bounds) -> Vec<DeliveryId> {
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page = one_scan(world, company, filter, before, bounds);
        assert!(page.found.len() <= bounds.items);
        ids.extend(page.found.iter().map(|listed| listed.delivery.id));
        before = page.next;
        if before.is_none() {
            return ids;
        }
    }
}

#[test]
fn every_filter_agrees_with_a_plain_model() {
    on_both_engines(|world| {
        let (company, other) = (world.company("acme"), world.company("globex"));
        insert_webhooks(world, company);
        let deliveries = fill(world, company, 3);
        let mut random = Random::seeded(11);
        for filter in filters(&mut random) {
            let ids = all_pages(world, company, filter, Bounds::page(50));
            assert_eq!(ids, expected(&deliveries, &filter), "{filter:?}");
            assert!(all_pages(world, other, filter, Bounds::page(50)).is_empty(), "{filter:?}");
        }
    });
}

#[test]
fn pages_of_any_size_cover_the_list_once() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_webhooks(world, company);
        let deliveries = fill(world, company, 5);
        for state in [None, Some(Shown::Failed), Some(Shown::Pending)] {
            let filter = Filter { state, ..Filter::default() };
            for items in [1, 7, 200] {
                let ids = all_pages(world, company, filter, Bounds { items, rows: 20_000 });
                assert_eq!(ids, expected(&deliveries, &filter), "{items} of {state:?}");
            }
        }
        let exact = one_scan(world, company, Filter::default(), None, Bounds::page(200));
        let full = Bounds { items: deliveries.len(), rows: 20_000 };
        let all = one_scan(world, company, Filter::default(), None, full);
        assert_eq!((exact.next.is_some(), all.next), (true, None));
    });
}

#[test]
fn a_scan_reads_a_bounded_number_of_rows_and_says_where_to_continue() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_webhooks(world, company);
        let deliveries = fill(world, company, 7);
        let filter = Filter { kind: Some(Kind::WebhookTest), ..Filter::default() };
        let bounds = Bounds { items: 50, rows: 10 };
        let first = one_scan(world, company, filter, None, bounds);
        assert!(first.found.len() < 10 && first.next.is_some(), "ten rows are not the whole list");
        assert_eq!(all_pages(world, company, filter, bounds), expected(&deliveries, &filter));
    });
}

#[test]
fn one_delivery_is_shown_as_in_the_list() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_webhooks(world, company);
        fill(world, company, 9);
        let page = one_scan(world, company, Filter::default(), None, Bounds::page(200));
        for listed in page.found {
            let id = listed.delivery.id;
            let one = world.read(company, move |snapshot| delivery_list::get(snapshot, id));
            assert_eq!(one, Some(listed));
        }
        let nobody = DeliveryId::from_bytes([1; 16]);
        assert_eq!(world.read(company, move |snapshot| delivery_list::get(snapshot, nobody)), None);
    });
}

#[test]
fn a_tally_counts_the_newest_in_a_period() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_webhooks(world, company);
        let all = fill(world, company, 11);
        let (webhook, since, until) = (standings()[0].0, time(500), time(2_000));
        let is_meant =
            |one: &&Delivery| one.webhook == webhook && one.created_at >= since && one.created_at < until;
        let mut meant: Vec<&Delivery> = all.iter().filter(is_meant).collect();
        meant.sort_by_key(|delivery| std::cmp::Reverse(delivery.id));
        assert!(meant.len() > 20);
        for cap in [1, 20, meant.len(), 1_000] {
            let counted = &meant[..cap.min(meant.len())];
            let number = |state: fn(State) -> bool| {
                i64::try_from(counted.iter().filter(|one| state(one.state)).count()).expect("few")
            };
            let expected = Tally {
                succeeded: number(|state| state == State::Succeeded),
                failed: number(|state| state == State::Failed),
                open: number(|state| matches!(state, State::Open { .. })),
                capped: meant.len() > cap,
                newest: counted.first().map(|one| one.created_at),
            };
            let cap = i64::try_from(cap).expect("few");
            let found = world.read(company, move |snapshot| tally(snapshot, webhook, since, until, cap));
            assert_eq!(found, expected, "{cap}");
        }
    });
}

#[test]
fn deliveries_are_read_by_indexes() {
    // The part of SQLite's plan that each statement must have; none reads a company's whole history.
    let plans = [
        ("delivery::DUE", "delivery_waiting (company=? AND webhook=? AND next_at<?)"),
        ("delivery::NEXT_DUE", "delivery_waiting (company=? AND webhook=?)"),
        ("delivery::OPEN_OF_WEBHOOK", "delivery_waiting (company=? AND webhook=?)"),
        ("delivery::HELD_COUNT", "delivery_waiting (company=? AND webhook=?)"),
        ("delivery::OWNED", "delivery_owned (owner=? AND company=?)"),
        ("webhook::WITH_WORK", "delivery_waiting (company=? AND webhook=?)"),
        (
            "delivery_health::NEWEST",
            "delivery_by_webhook (company=? AND (webhook,id)>(?,?) AND (webhook,id)<(?,?))",
        ),
        (
            "delivery_health::LAST_ATTEMPTS",
            "delivery_by_webhook (company=? AND webhook>? AND (webhook,id)<(?,?))",
        ),
        ("delivery_list::ALL", "PRIMARY KEY (company=? AND id>? AND id<?)"),
        (
            "delivery_list::OF_WEBHOOK",
            "delivery_by_webhook (company=? AND (webhook,id)>(?,?) AND (webhook,id)<(?,?))",
        ),
        ("delivery_list::FAILED", "delivery_failed (company=? AND id>? AND id<?)"),
        ("delivery_list::FAILED_COUNT", "delivery_failed (company=? AND id>? AND id<?)"),
        ("delivery_list::WAITING", "delivery_waiting (company=? AND webhook=?)"),
        ("delivery_list::OWNED", "delivery_owned (owner=? AND company=?)"),
        ("delivery_list::OWNERS", "delivery_owned"),
        ("delivery_list::OF_EVENTS", "delivery_by_event (company=? AND event=?)"),
        (
            "delivery_list::EVENTS_OF_ACCOUNT",
            "event_by_account (company=? AND (account,id)>(?,?) AND (account,id)<(?,?))",
        ),
        ("erasure::DELIVERIES", "delivery_by_event (company=? AND event=?)"),
        ("erasure::WITH_PAYLOAD", "event_by_account (company=? AND account=? AND id>?)"),
        ("retention::OLD_DELIVERIES", "PRIMARY KEY (company=? AND id<?)"),
        ("retention::OLD_EVENTS", "sqlite_autoindex_event_1 (company=? AND id<?)"),
        ("retention::MARKS", "PRIMARY KEY (company=? AND mark>?)"),
        ("retention::ACCOUNTS", "PRIMARY KEY (company=? AND account=? AND day<?)"),
    ];
    on_both_engines(|world| {
        let Database::Sqlite(path) = &world.database else { return };
        let connection = rusqlite::Connection::open(path).expect("opened");
        for (name, part) in plans {
            let statement = all_statements().into_iter().find(|statement| statement.name.ends_with(name));
            let statement = statement.unwrap_or_else(|| panic!("there is no {name}"));
            let mut prepared =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sqlite())).expect("prepared");
            let (mut rows, mut plan) = (prepared.raw_query(), String::new());
            while let Some(row) = rows.next().expect("a plan") {
                plan = plan + &row.get::<_, String>(3).expect("a line") + "; ";
            }
            assert!(plan.contains(part), "{name}: {plan}");
            assert!(!plan.contains("PRIMARY KEY (company=?);"), "{name}: {plan}");
            assert!(!plan.contains("TEMP B-TREE FOR ORDER BY"), "{name}: {plan}");
        }
    });
}

#[test]
fn an_unknown_account_or_webhook_has_no_deliveries() {
    on_both_engines(|world| {
        let company = world.company("acme");
        insert_webhooks(world, company);
        fill(world, company, 3);
        let account = Filter { account: Some(AccountId::from_bytes([9; 16])), ..Filter::default() };
        let webhook = Filter { webhook: Some(WebhookId::from_bytes([9; 16])), ..Filter::default() };
        for filter in [account, webhook, Filter { state: Some(Shown::Held), ..webhook }] {
            assert!(all_pages(world, company, filter, Bounds::page(50)).is_empty(), "{filter:?}");
        }
    });
}
