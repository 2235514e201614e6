//! What the named reads decide beyond a single query.

use rapport_app::conversation::StartConversation;
use rapport_app::read::accounts::{ListAccounts, Sort};
use rapport_app::read::{self, Viewer};
use rapport_app::webhook::DisableWebhook;
use rapport_domain::audience::Filter;
use rapport_domain::conversation::Start;
use rapport_domain::id::{AccountId, CampaignId};
use rapport_domain::pipeline::Status;
use rapport_domain::time::Time;
use rapport_testkit::{Engine, TestApp, TestClock, raw};
use serde_json::{Value, json};

use crate::webhooks::webhook;

/// A company for which the day of this moment has already ended.
fn in_auckland(engine: Engine) -> TestApp {
    let clock = TestClock::at(Time::parse("2026-11-15T12:30:00Z").unwrap());
    let app = TestApp::with_clock(engine, clock);
    app.set(json!({"time_zone": "Pacific/Auckland"}));
    app
}

#[test]
fn only_a_disabled_webhook_holds_deliveries() {
    TestApp::on_both(|app| {
        let id = webhook(app);
        app.upsert(json!({"imported_id": "crm-1"}));
        let held = || {
            let page = app.view(move |snapshot, viewer| read::webhook::page(snapshot, viewer, id));
            let described = app.view(move |snapshot, _| read::webhook::described(snapshot, id));
            (page.expect("there").held.count, described.expect("there").held.count)
        };
        assert_eq!(held(), (0, 0));
        app.write(DisableWebhook(id)).unwrap();
        assert_eq!(held(), (1, 1));
    });
}

#[test]
fn the_days_of_a_webhook_and_of_the_dashboard_are_the_companys() {
    for engine in Engine::BOTH {
        let app = in_auckland(engine);
        let id = webhook(&app);
        app.upsert(json!({"imported_id": "crm-1"}));
        let page = app.view(move |snapshot, viewer| read::webhook::page(snapshot, viewer, id));
        let (today, tally) = *page.expect("there").days.last().expect("a day");
        assert_eq!((today.to_string().as_str(), tally.open), ("2026-11-16", 1), "on {engine}");
        let figures = app.view(read::dashboard::figures);
        assert_eq!(figures.lately.date().to_string(), "2026-11-10", "on {engine}");
        assert_eq!((figures.new_accounts.count, figures.delivered.open), (1, 1), "on {engine}");
    }
}

#[test]
fn a_typed_filter_means_the_companys_time_and_an_account_by_its_ids_or_name() {
    for engine in Engine::BOTH {
        let app = in_auckland(engine);
        app.upsert(json!({"imported_id": "crm-1", "name": "Nordlys Bank"}));
        app.upsert(json!({"imported_id": "crm-2", "name": "Fjell Bank"}));
        app.upsert(json!({"imported_id": "crm-3", "name": "Nordlys Bank Invest"}));
        let account = app.account("crm-1").id;
        let since = Time::parse("2026-11-14T20:30:00Z").unwrap();
        for typed in ["crm-1", account.to_string().as_str(), "Nordlys Bank", "nordlys bank"] {
            let Value::Object(typed) = json!({"account": typed, "since": "2026-11-15T09:30"}) else {
                panic!("an object")
            };
            let filter = app.view(move |snapshot, viewer| read::delivery::filter(snapshot, viewer, typed));
            let filter = filter.expect("a valid filter");
            assert_eq!((filter.account, filter.since), (Some(account), Some(since)), "on {engine}");
        }
        let log = |typed: &'static str| {
            let Value::Object(typed) = json!({"account": typed}) else { panic!("an object") };
            app.view(move |snapshot, viewer| read::delivery::log_page(snapshot, viewer, typed, None))
        };
        let only = log("fjell").filter.expect("a valid filter");
        assert_eq!(only.account, Some(app.account("crm-2").id), "on {engine}");
        for (typed, count) in [("bank", 3), ("nordlys", 2), ("nobody", 0), ("", 0)] {
            let page = log(typed);
            assert_eq!((page.filter.is_err(), page.candidates.len()), (true, count), "{typed} on {engine}");
        }
    }
}

/// The board shows the same figure. Anything else that is asked for is counted.
#[test]
fn a_list_of_large_stages_has_the_last_count_of_them() {
    TestApp::on_both(|app| {
        app.upsert(json!({"imported_id": "crm-1"}));
        raw::run(
            app.database(),
            "INSERT INTO stage_total (company, status, currency, accounts, amount, counted_at) \
             SELECT id, 'prospect', '', 9999, 0, 7 FROM company UNION ALL \
             SELECT id, 'prospect', 'EUR', 2, 0, 7 FROM company UNION ALL \
             SELECT id, 'lost', '', 10000, 0, 7 FROM company",
        );
        let stages = |statuses: &[Status]| Filter { statuses: statuses.to_vec(), ..Filter::default() };
        let counted = Some(Time::from_micros(7));
        for (filter, expected) in [
            (stages(&[Status::Prospect]), (10_001, counted)),
            (stages(&[Status::Prospect, Status::Prospect, Status::Lost]), (20_001, counted)),
            (stages(&[]), (20_001, counted)),
            (stages(&[Status::Lost]), (0, None)),
            (stages(&[Status::Customer]), (0, None)),
            (Filter { seen: Some(false), ..stages(&[Status::Prospect]) }, (1, None)),
            (Filter { q: Some("crm-1".to_owned()), ..stages(&[]) }, (1, None)),
        ] {
            let asked = filter.clone();
            let found = app.view(move |snapshot, viewer| {
                read::accounts::list_page(snapshot, Some(&question(asked, 2, viewer)))
            });
            assert_eq!((found.count.count, found.as_of), expected, "{filter:?}");
            assert!(!found.count.capped, "{filter:?}");
        }
    });
}

fn question(filter: Filter, limit: i64, viewer: &Viewer) -> ListAccounts {
    ListAccounts { filter, sort: Sort::default(), cursor: None, limit, now: viewer.now }
}

#[test]
fn a_search_that_fills_its_page_is_not_counted() {
    TestApp::on_both(|app| {
        app.channel("beta", &[]);
        app.channel("Alpha", &[]);
        for number in 1..=2 {
            app.upsert(json!({"imported_id": format!("crm-{number}"), "name": format!("Acme {number}")}));
        }
        let table = [(None, 1, (2, false)), (Some("acme"), 1, (1, true)), (Some("acme"), 2, (2, false))];
        for (q, limit, expected) in table {
            let q = q.map(str::to_owned);
            let found = app.view(move |snapshot, viewer| {
                let filter = Filter { q, ..Filter::default() };
                read::accounts::list_page(snapshot, Some(&question(filter, limit, viewer)))
            });
            assert_eq!((found.count.count, found.count.capped), expected);
        }
        let nothing = app.view(|snapshot, _| read::accounts::list_page(snapshot, None));
        assert!(nothing.page.items.is_empty() && nothing.count.count == 0);
        let names: Vec<&str> = nothing.channels.iter().map(|channel| channel.name.as_str()).collect();
        assert_eq!(names, ["Alpha", "beta"]);
        for (text, expected) in [("acme 2", 1), ("acme", 2), (" ", 0)] {
            let found =
                app.view(move |snapshot, viewer| read::accounts::search(snapshot, viewer, text.to_owned()));
            assert_eq!(found.len(), expected, "{text}");
        }
    });
}

#[test]
fn a_read_of_nothing_finds_nothing() {
    TestApp::on_both(|app| {
        for id in ["crm-1", "crm-2"] {
            app.upsert(json!({ "imported_id": id }));
        }
        let [one, other] = ["crm-1", "crm-2"].map(|id| app.account(id).id);
        let request = Start::parse(json!({}).as_object().unwrap()).unwrap();
        let started = app.write(StartConversation { account: one, request }).unwrap().id;
        let of = |account| {
            app.view(move |snapshot, _| read::conversation::page(snapshot, (account, started), None))
                .is_some()
        };
        assert_eq!((of(one), of(other)), (true, false), "a conversation belongs to its account");
        let history =
            |id| app.view(move |snapshot, _| read::account::history(snapshot, id, None, 9)).is_some();
        assert_eq!((history(one), history(AccountId::from_bytes([9; 16]))), (true, false));
        let form = |id| app.view(move |snapshot, _| read::campaign::form(snapshot, id)).is_some();
        assert_eq!((form(None), form(Some(CampaignId::from_bytes([9; 16])))), (true, false));
        assert!(app.view(read::profile::page).is_none(), "a token is no person");
    });
}
