//! Events that more webhooks select than their transaction has time for.

use rapport_app::Access;
use rapport_app::erasure::erase_payloads;
use rapport_app::fan_out::{AT_ONCE, Continue, FIRST, PART};
use rapport_app::webhook::{DeleteWebhook, DisableWebhook};
use rapport_domain::delivery_list::{Filter, Shown};
use rapport_domain::id::WebhookId;
use rapport_domain::standing::Standing;
use rapport_testkit::{Engine, TestApp, TestCompany, block_on};
use serde_json::json;

use crate::full_house::FullHouse;
use crate::webhooks::{ids, list, webhook};

const PARTS: usize = 2;
const HOOKS: usize = FIRST + PART + 5;

fn hooks(app: &TestApp) -> Vec<WebhookId> {
    (0..HOOKS).map(|_| webhook(app)).collect()
}

fn rows(app: &TestApp, table: &str) -> usize {
    usize::try_from(app.rows(table)).expect("a count")
}

fn proceed(company: &TestCompany) -> bool {
    company.write_as(&Access::System(company.id()), Continue).expect("a step")
}

/// The webhooks that have a delivery, in key order.
fn reached(company: &TestCompany) -> Vec<WebhookId> {
    let mut webhooks: Vec<_> =
        list(company, Filter::default()).into_iter().map(|listed| listed.delivery.webhook).collect();
    webhooks.sort_unstable();
    webhooks
}

#[test]
fn a_few_are_written_with_the_change_and_each_of_the_rest_once_after_it() {
    TestApp::on_both(|app| {
        let hooks = hooks(app);
        app.upsert(json!({"imported_id": "crm-1"}));
        assert_eq!((rows(app, "delivery"), rows(app, "fan_out")), (FIRST, PARTS));
        app.clock().advance_seconds(5);
        assert!(proceed(app) && proceed(app));
        assert!(!proceed(app), "nothing is left");
        assert_eq!(reached(app), hooks, "every webhook once");
        assert_eq!(app.rows("fan_out"), 0);
        assert_eq!(
            app.number("SELECT count(DISTINCT created_at) FROM delivery"),
            1,
            "all have the event's time"
        );
    });
}

#[test]
fn as_many_as_fit_are_all_written_with_the_change() {
    TestApp::on_both(|app| {
        for _ in 0..AT_ONCE {
            webhook(app);
        }
        app.upsert(json!({"imported_id": "crm-1"}));
        assert_eq!((rows(app, "delivery"), rows(app, "fan_out")), (AT_ONCE, 0));
    });
}

#[test]
fn proven_receivers_come_first_and_alone_or_else_new_ones() {
    TestApp::on_both(|app| {
        let sender = FullHouse::of(app);
        let (failing, working) = (webhook(app), webhook(app));
        sender.knows(failing, Standing::Failing);
        sender.knows(working, Standing::Proven);
        let disabled = webhook(app);
        app.write(DisableWebhook(disabled)).expect("disabled");
        let new: Vec<_> = (0..AT_ONCE).map(|_| webhook(app)).collect();
        app.upsert(json!({"imported_id": "crm-1"}));
        assert_eq!(reached(app), [working], "nothing is sent beside it");
        sender.knows(working, Standing::Failing);
        app.upsert(json!({"imported_id": "crm-2"}));
        let mut both = vec![working];
        both.extend(&new[..FIRST]);
        assert_eq!(reached(app), both, "new receivers come next");
        new.iter().for_each(|id| sender.knows(*id, Standing::Failing));
        app.upsert(json!({"imported_id": "crm-3"}));
        assert_eq!(reached(app), both, "failing ones can wait");
    });
}

#[test]
fn a_stored_part_needs_no_page_of_its_own_on_sqlite() {
    let app = TestApp::on(Engine::Sqlite);
    for _ in 0..FIRST + PART * 3 {
        webhook(&app);
    }
    app.upsert(json!({"imported_id": "crm-1"}));
    assert_eq!(rows(&app, "fan_out"), 3);
    let pages = |kind: &str| {
        app.number(&format!("SELECT count(*) FROM dbstat WHERE name = 'fan_out' AND pagetype = '{kind}'"))
    };
    assert_eq!((pages("leaf"), pages("overflow")), (1, 0));
}

#[test]
fn what_happens_in_between_counts() {
    TestApp::on_both(|app| {
        let hooks = hooks(app);
        let account = app.upsert(json!({"imported_id": "crm-1"})).account.id;
        app.write(DeleteWebhook(hooks[FIRST])).expect("deleted");
        app.write(DisableWebhook(hooks[FIRST + 1])).expect("disabled");
        let added = webhook(app);
        assert!(proceed(app));
        let found = reached(app);
        assert!(!found.contains(&hooks[FIRST]), "a deleted webhook gets nothing");
        assert!(found.contains(&hooks[FIRST + 1]), "a disabled one keeps it");
        assert!(!found.contains(&added), "a webhook created after the event doesn't get it");
        assert_eq!(ids(app, Shown::Held).len(), 1);
        block_on(erase_payloads(app.app(), app.token(), account)).expect("erased");
        assert!(proceed(app) && !proceed(app));
        assert_eq!(reached(app).len(), HOOKS - 1);
    });
}
