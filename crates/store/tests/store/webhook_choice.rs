//! What a webhook filters by and which headers it adds.

use rapport_domain::event_filter::EventFilter;
use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::opt_in::OptIn;
use rapport_domain::webhook::{Selection, Switch, Webhook};
use rapport_domain::webhook_header::Header;
use rapport_store::sealed::{self, Owner};
use rapport_store::webhook_choice::{self, Choice};
use rapport_store::{company, subscription, webhook};
use serde_json::json;

use crate::support::{World, bytes, on_both_engines, time};

fn insert(world: &World, company: CompanyId, number: u64, events: &[&str]) -> WebhookId {
    let made = Webhook {
        id: WebhookId::from_bytes(bytes(number)),
        url: "https://example.com/".to_owned(),
        description: String::new(),
        events: Selection::from_json(&json!(events)).expect("a selection"),
        switch: Switch::Enabled,
        failure_streak: 0,
        proven: false,
        last_test: None,
        url_changed_at: time(0),
        created_at: time(0),
        updated_at: time(0),
    };
    let id = made.id;
    world.write(company, move |tx| webhook::insert(tx, &made, b"sealed", "whs_…")).expect("inserted");
    id
}

fn choice() -> Choice {
    let filter = json!({"from": ["lost"], "fields": {"plan": "pro"}});
    let header =
        |name: &str, value: Option<&str>| Header { name: name.to_owned(), value: value.map(str::to_owned) };
    Choice {
        filter: EventFilter::parse(filter.as_object().expect("an object"), "").expect("a filter"),
        headers: vec![header("Authorization", None), header("X-Env", Some("prod"))],
    }
}

#[test]
fn a_choice_is_kept_by_its_webhook_and_read_where_it_counts() {
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        let id = insert(world, acme, 1, &["account.created"]);
        insert(world, other, 1, &["account.created"]);
        assert_eq!(world.read(acme, move |snapshot| webhook_choice::get(snapshot, id)), Choice::default());
        let subscribers = world.read(acme, subscription::subscribers);
        assert!(subscribers[0].filter.is_none(), "a webhook without conditions costs nothing");

        let stored = world.write(acme, move |tx| {
            webhook_choice::set_filter(tx, id, &choice().filter, time(1))?;
            webhook_choice::set_headers(tx, id, &choice().headers, Some(b"hush"))
        });
        stored.expect("stored");
        assert_eq!(world.read(acme, move |snapshot| webhook_choice::get(snapshot, id)), choice());
        assert_eq!(world.read(other, move |snapshot| webhook_choice::get(snapshot, id)), Choice::default());
        let subscriber = world.read(acme, subscription::subscribers).remove(0);
        assert_eq!(subscriber.filter.as_deref(), Some(&choice().filter));
        let sealed = world.read(acme, move |snapshot| webhook_choice::sealed_headers(snapshot, id));
        assert_eq!(sealed.as_deref(), Some(&b"hush"[..]));
        let target = || {
            let read = world.store.read_across(move |across| webhook::targets(across, acme, &[id]));
            read.blocking_recv().expect("an answer").expect("read").remove(0)
        };
        assert!(target().headers.contains("X-Env") && !target().headers.contains("hush"));
        assert_eq!(target().sealed_headers.as_deref(), Some(&b"hush"[..]));

        // A change of the key reaches it, unless it has changed since.
        let replace = |before: &'static [u8], after: &'static [u8]| {
            let owner = Owner::WebhookHeaders(id);
            world.write(acme, move |tx| sealed::replace(tx, owner, before, after)).expect("replaced");
        };
        replace(b"other", b"never");
        replace(b"hush", b"anew");
        let column = Owner::WebhookHeaders(WebhookId::from_bytes([0; 16]));
        let found = world.read(acme, move |snapshot| sealed::after(snapshot, column, 10));
        assert_eq!(found[0].secret.as_deref(), Some(&b"anew"[..]));

        world.write(acme, move |tx| webhook::mark_deleted(tx, id, time(1))).expect("deleted");
        assert_eq!((target().headers.as_str(), target().sealed_headers), ("", None));
    });
}

#[test]
fn a_company_notes_what_its_webhooks_ask_for() {
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        insert(world, acme, 1, &["account.created", "account.updated"]);
        insert(world, acme, 2, &["contact.logged"]);
        let selections = world.read(acme, webhook::selections);
        let wanted = OptIn::of(&selections);
        assert_eq!(wanted.to_stored(), "account.updated,contact.logged");
        world.write(acme, move |tx| company::set_opt_in(tx, wanted)).expect("noted");
        let noted = |id| world.read(id, company::get).expect("a company").opt_in;
        assert_eq!((noted(acme), noted(other)), (wanted, OptIn::default()));
    });
}

#[test]
fn every_subscriber_has_its_own_selection() {
    on_both_engines(|world| {
        let acme = world.company("acme");
        let (created, both) = (["account.created"], ["message.inbound", "account.created"]);
        let chosen: [&[&str]; 5] = [&created, &both, &both, &created, &["account.updated"]];
        let ids: Vec<_> = (1..).zip(chosen).map(|(n, kinds)| insert(world, acme, n, kinds)).collect();
        let found = world.read(acme, subscription::subscribers);
        assert_eq!(found.iter().map(|subscriber| subscriber.id).collect::<Vec<_>>(), ids);
        let selected = found.iter().map(|subscriber| subscriber.selection.to_stored());
        assert_eq!(selected.collect::<Vec<_>>(), chosen.map(|kinds| kinds.join(",")));
        assert!(found.iter().all(|subscriber| subscriber.enabled));
    });
}
