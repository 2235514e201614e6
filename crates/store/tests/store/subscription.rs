//! The version of what a company's webhooks select: nodes keep what they read for as long as it stays.

use rapport_domain::event_filter::EventFilter;
use rapport_domain::id::{CompanyId, WebhookId};
use rapport_domain::webhook::{Selection, Switch, Webhook};
use rapport_store::subscription::{self, Selects};
use rapport_store::webhook_choice::set_filter;
use rapport_store::{Database, Error, Tx, company_deletion, webhook};
use rapport_testkit::{old_database, open};
use serde_json::json;

use crate::support::{World, bytes, fresh_postgres, on_both_engines, patient, time};

const NOW: i64 = 100;

fn made(number: u64) -> Webhook {
    Webhook {
        id: WebhookId::from_bytes(bytes(number)),
        url: "https://example.com/".to_owned(),
        description: String::new(),
        events: Selection::from_json(&json!(["account.created"])).expect("a selection"),
        switch: Switch::Enabled,
        failure_streak: 0,
        proven: false,
        last_test: None,
        url_changed_at: time(NOW),
        created_at: time(NOW),
        updated_at: time(NOW),
    }
}

fn version(world: &World, company: CompanyId) -> i64 {
    world.read(company, subscription::version)
}

type Change = fn(&mut Tx) -> Result<(), Error>;

#[test]
fn whatever_changes_a_subscription_renews_its_version_and_nothing_else_does() {
    let renews: [(&str, Change); 7] = [
        ("a new webhook", |tx| webhook::insert(tx, &made(1), b"sealed", "whs_…")),
        ("another one at the same time", |tx| webhook::insert(tx, &made(2), b"sealed", "whs_…")),
        ("other events", |tx| webhook::update(tx, &[&made(1)], Selects::Anew(time(NOW)))),
        ("a filter, by a clock that is late", |tx| {
            set_filter(tx, made(1).id, &EventFilter::default(), time(NOW - 50))
        }),
        ("a deletion", |tx| webhook::mark_deleted(tx, made(2).id, time(NOW + 50))),
        ("a change much later", |tx| webhook::update(tx, &[&made(1)], Selects::Anew(time(NOW + 1_000)))),
        ("the deletion of the company", |tx| company_deletion::begin(tx, time(NOW + 1_000))),
    ];
    on_both_engines(|world| {
        let (acme, other) = (world.company("acme"), world.company("other"));
        let mut before = version(world, acme);
        assert_eq!(before, 0, "there is no webhook yet");
        for (what, change) in renews {
            world.write(acme, change).expect(what);
            let after = version(world, acme);
            assert!(after > before, "{what}: {before} to {after}");
            before = after;
        }
        let restored = time(NOW + 1_000).as_micros();
        assert!(before >= restored, "it is above all that were used before a restored backup was made");
        world.write(acme, |tx| webhook::update(tx, &[&made(1)], Selects::AsBefore)).expect("an outcome");
        let undone = world.write(acme, |tx| {
            webhook::insert(tx, &made(3), b"sealed", "whs_…")?;
            Err::<(), _>(Error::Again)
        });
        assert!(undone.is_err());
        assert_eq!((version(world, acme), version(world, other)), (before, 0));
    });
}

/// A node of the previous release knows nothing of versions, so the database renews them for it.
#[test]
fn changes_by_the_previous_release_renew_it_too() {
    let database = Database::Postgres(fresh_postgres());
    old_database::create(&database, 1);
    let world = World { store: open(&patient(database.clone())), database };
    let version = || world.number("SELECT coalesce(max(version), 0) FROM subscription WHERE company = 1");
    world.change("DELETE FROM webhook");
    let mut before = version();
    let insert = format!(
        "INSERT INTO webhook (company, id, url, description, events, disabled_by_hand, failure_streak, url_changed_at, \
         secret, secret_shown, dropped_before, created_at, updated_at) \
         VALUES (1, decode('{:032x}', 'hex'), 'https://example.com/', '', 'account.created', 0, 0, 1, '', '', 0, 1, 1)",
        7
    );
    for change in [
        insert.as_str(),
        "UPDATE webhook SET events = 'account.status_changed'",
        "UPDATE webhook SET disabled_by_hand = 1",
        "UPDATE webhook SET auto_disabled_at = 1",
        "UPDATE webhook SET deleted_at = 1",
    ] {
        world.change(change);
        assert!(version() > before, "{change}");
        before = version();
    }
    world.change("UPDATE webhook SET failure_streak = failure_streak + 1, updated_at = 2");
    assert_eq!(version(), before, "an outcome");
}
