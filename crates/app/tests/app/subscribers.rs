//! What webhooks select is kept in memory, but a change of it counts from the next event, on every node.

use std::collections::BTreeSet;

use rapport_app::upsert::Upsert;
use rapport_app::webhook::{DeleteWebhook, DisableWebhook, EnableWebhook, PatchWebhook};
use rapport_app::{App, Command, Context, Error, Needs};
use rapport_domain::account;
use rapport_domain::delivery_list::Filter;
use rapport_domain::id::WebhookId;
use rapport_domain::right::Right;
use rapport_domain::webhook::Held;
use rapport_store::Tx;
use rapport_testkit::{TestApp, block_on, create_webhook, patch_webhook};
use serde_json::{Value, json};

use crate::full_house::FullHouse;
use crate::webhooks::list;

/// Creates an account; returns the webhooks that get its event.
fn reached(app: &TestApp, imported_id: &str) -> BTreeSet<WebhookId> {
    let account = app.upsert(json!({"imported_id": imported_id})).account.id;
    let filter = Filter { account: Some(account), ..Filter::default() };
    list(app, filter).into_iter().map(|listed| listed.delivery.webhook).collect()
}

fn body(events: &[&str]) -> Value {
    json!({"url": "https://example.com/hook", "events": events})
}

/// Changes by the node that tells about events, and by another one, with events before, between and after them.
#[test]
fn a_change_counts_from_the_next_event_whichever_node_made_it() {
    TestApp::on_both(|app| {
        let (sender, other) = (FullHouse::of(app), app.another_node());
        let write = |node: &App, command: PatchWebhook| {
            block_on(node.write(app.token(), command)).expect("changed");
        };
        for (round, node) in [app.app(), &other].into_iter().enumerate() {
            let reached = |step: &str| {
                sender.take_asked();
                let found = reached(app, &format!("crm-{round}-{step}"));
                (found, sender.take_asked())
            };
            let (nobody, before) = (BTreeSet::new(), reached("before"));
            assert_eq!(before, (nobody.clone(), nobody.clone()));
            let create = create_webhook(node, &body(&["account.created"]));
            let id = block_on(node.write(app.token(), create)).expect("created").webhook.id;
            let one = BTreeSet::from([id]);
            assert_eq!(reached("created"), (one.clone(), one.clone()));
            assert_eq!(reached("again"), (one.clone(), one.clone()));
            write(node, patch_webhook(node, id, &json!({"events": ["account.status_changed"]})));
            assert_eq!(reached("deselected"), (nobody.clone(), nobody.clone()));
            write(node, patch_webhook(node, id, &json!({"events": ["account.created"]})));
            assert_eq!(reached("selected"), (one.clone(), one.clone()));
            write(node, patch_webhook(node, id, &json!({"filters": {"to": ["customer"]}})));
            assert_eq!(reached("filtered"), (nobody.clone(), nobody.clone()));
            write(node, patch_webhook(node, id, &json!({"filters": {}})));
            assert_eq!(reached("unfiltered"), (one.clone(), one.clone()));
            block_on(node.write(app.token(), DisableWebhook(id))).expect("disabled");
            assert_eq!(reached("disabled"), (one.clone(), nobody.clone()), "it is held, and nobody is asked");
            block_on(node.write(app.token(), EnableWebhook { id, held: Held::Send })).expect("enabled");
            assert_eq!(reached("enabled"), (one.clone(), one.clone()));
            block_on(node.write(app.token(), DeleteWebhook(id))).expect("deleted");
            assert_eq!(reached("deleted"), (nobody.clone(), nobody));
        }
    });
}

/// Changes a webhook, tells an event by what it selects then, and fails.
struct Undone(PatchWebhook, account::Upsert);

impl Command for Undone {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Work);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        self.0.run(tx, cx)?;
        Upsert(self.1.clone()).run(tx, cx)?;
        assert!(list_in(tx)? > 0, "the event reached the webhook as it was changed");
        Err(Error::conflict("undone", "undone"))
    }
}

fn list_in(tx: &mut Tx) -> Result<usize, rapport_store::Error> {
    let bounds = rapport_store::delivery_list::Bounds::page(10);
    Ok(rapport_store::delivery_list::scan(tx, &Filter::default(), None, bounds)?.found.len())
}

/// The version that the failed change had is used again by the next one, because the clock stands still.
#[test]
fn what_a_failed_transaction_selected_is_not_kept() {
    TestApp::on_both(|app| {
        let id = app
            .write(create_webhook(app.app(), &body(&["account.status_changed"])))
            .expect("created")
            .webhook
            .id;
        assert!(reached(app, "crm-1").is_empty());
        let upsert = json!({"project": "acme", "imported_id": "crm-2"});
        let upsert = account::Upsert::parse(upsert.as_object().expect("an object")).expect("an upsert");
        let select = patch_webhook(app.app(), id, &json!({"events": ["account.created"]}));
        assert!(app.write(Undone(select, upsert)).is_err());
        app.write(patch_webhook(app.app(), id, &json!({"events": ["message.inbound"]}))).expect("changed");
        assert!(reached(app, "crm-3").is_empty());
    });
}
