//! What monitoring counts: open and held deliveries, disabled webhooks and waiting mail, across companies and up to a
//! cap.

use rapport_domain::caps::IN_A_LIST;
use rapport_domain::event::{Event, Kind};
use rapport_domain::id::{CompanyId, IdSequence, MailId, WebhookId};
use rapport_domain::mail;
use rapport_domain::member::Email;
use rapport_domain::time::Time;
use rapport_domain::webhook::{Selection, Switch, Webhook};
use rapport_store::backlog::{self, Backlog};
use rapport_store::delivery::NewDelivery;
use rapport_store::mail::{Content, NewMail};
use rapport_store::subscription::Selects;
use rapport_store::{delivery, event, webhook};
use serde_json::json;

use crate::support::{World, bytes, on_both_engines, time};

fn read(world: &World) -> Backlog {
    world.store.read_across(backlog::read).blocking_recv().expect("an answer").expect("a backlog")
}

fn add_webhook(world: &World, company: CompanyId, number: u64, switch: Switch) -> WebhookId {
    let id = WebhookId::from_bytes(bytes(number));
    let added = world.write(company, move |tx| {
        let webhook = Webhook {
            id,
            url: "https://example.com/".to_owned(),
            description: String::new(),
            events: Selection::from_json(&json!(["account.created"])).expect("a selection"),
            switch,
            failure_streak: 0,
            proven: false,
            last_test: None,
            url_changed_at: time(0),
            created_at: time(0),
            updated_at: time(0),
        };
        webhook::insert(tx, &webhook, b"sealed", "whs_…")?;
        webhook::update(tx, &[&webhook], Selects::AsBefore)
    });
    added.expect("a webhook");
    id
}

/// An event at `at`, with this many deliveries to one webhook, due at once.
fn add_deliveries(world: &World, company: CompanyId, webhook: WebhookId, at: Time, owners: Vec<Option<i64>>) {
    let added = world.write(company, move |tx| {
        let mut ids = IdSequence::default();
        // The random part keeps the ids of different webhooks apart.
        let mut random = [0; 10];
        random[2..].copy_from_slice(&webhook.as_bytes()[8..]);
        let event = ids.next(at, random);
        let kind = Kind::AccountCreated;
        event::insert(
            tx,
            &[Event { id: event, kind, account: None, payload: "{}".to_owned(), created_at: at }],
        )?;
        let new: Vec<NewDelivery> = owners
            .iter()
            .map(|owner| NewDelivery {
                id: ids.next(at, random),
                webhook,
                event,
                kind,
                account: None,
                owner: *owner,
                created_at: at,
            })
            .collect();
        delivery::insert(tx, &new)
    });
    added.expect("deliveries");
}

fn add_mail(world: &World, company: CompanyId, at: Time) {
    let added = world.write(company, move |tx| {
        let id: MailId = IdSequence::default().next(at, [5; 10]);
        let text = String::new;
        let content = Content { id, subject: text(), plain: text(), html: text(), secret: None };
        rapport_store::mail::insert_content(tx, &content)?;
        let recipient = Email::parse("ana@acme.test").expect("an address");
        let (kind, not_after) = (mail::Kind::Digest, at.plus_days(1));
        let mail = NewMail { id, kind, person: None, recipient, content: id, not_after, created_at: at };
        rapport_store::mail::insert(tx, &[mail])
    });
    added.expect("a mail");
}

#[test]
fn open_and_held_deliveries_disabled_webhooks_and_mails_are_counted() {
    on_both_engines(|world| {
        assert_eq!(read(world), Backlog::default());
        let (acme, globex) = (world.company("acme"), world.company("globex"));
        let on = add_webhook(world, acme, 1, Switch::Enabled);
        let by_hand = add_webhook(world, acme, 2, Switch::DisabledByHand);
        let failed = add_webhook(world, globex, 3, Switch::AutoDisabled { at: time(5) });
        let deleted = add_webhook(world, globex, 4, Switch::DisabledByHand);
        let quiet = world.write(globex, move |tx| webhook::mark_deleted(tx, deleted, time(9)));
        quiet.expect("deleted");
        add_deliveries(world, acme, on, time(30), vec![None, Some(7), None]);
        add_deliveries(world, acme, by_hand, time(10), vec![None]);
        add_deliveries(world, globex, failed, time(10), vec![None, None]);
        add_deliveries(world, globex, deleted, time(10), vec![None]);
        add_mail(world, acme, time(40));
        add_mail(world, globex, time(50));
        let expected = Backlog {
            deliveries: 3,
            oldest_delivery: Some(time(30)),
            next_due: Some(time(30)),
            held: 3,
            disabled_by_hand: 1,
            disabled_by_failures: 1,
            mails: 2,
            oldest_mail: Some(time(40)),
        };
        assert_eq!(read(world), expected);
    });
}

#[test]
fn a_delivery_that_a_node_holds_counts_by_its_own_age_and_time() {
    on_both_engines(|world| {
        let acme = world.company("acme");
        let on = add_webhook(world, acme, 1, Switch::Enabled);
        add_deliveries(world, acme, on, time(30), vec![Some(7)]);
        let found = read(world);
        assert_eq!(
            (found.deliveries, found.oldest_delivery, found.next_due),
            (1, Some(time(30)), Some(time(30)))
        );
    });
}

#[test]
fn counting_ends_at_the_cap() {
    on_both_engines(|world| {
        let acme = world.company("acme");
        let many = || vec![None; usize::try_from(IN_A_LIST).expect("small") + 10];
        let on = add_webhook(world, acme, 1, Switch::Enabled);
        let off = add_webhook(world, acme, 2, Switch::DisabledByHand);
        add_deliveries(world, acme, on, time(30), many());
        add_deliveries(world, acme, off, time(30), many());
        add_deliveries(world, acme, on, time(60), vec![Some(7)]);
        let found = read(world);
        assert_eq!((found.deliveries, found.held), (IN_A_LIST, IN_A_LIST));
        assert_eq!(found.next_due, Some(time(30)));
    });
}
