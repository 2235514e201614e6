//! Webhooks: made, edited, tested, rotated, switched off and on, deleted.

use std::future::Future;
use std::pin::Pin;

use rapport_domain::credential::{Issued, Kind as CredentialKind, issue};
use rapport_domain::delivery::{Delivery, State};
use rapport_domain::destination::{Destination, Refusal};
use rapport_domain::event::{self, Kind, Occasion};
use rapport_domain::id::{DeliveryId, WebhookId};
use rapport_domain::member::Role;
use rapport_domain::webhook::{Create, Patch, Switch, Webhook};
use rapport_store::{Tx, delivery, manual_attempt, webhook};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::delivery::force;
use crate::error::Error;
use crate::outbox::FanOut;

const NEEDS: Needs = Needs::Role(Role::Admin);

/// Judges a destination before it is stored. Names are resolved, so it does not run in a command.
pub trait DestinationCheck: Send + Sync + 'static {
    fn check<'a>(
        &'a self,
        destination: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;
}

/// A webhook with its secret, for the one time it is shown.
pub struct NewSecret {
    pub webhook: Webhook,
    pub secret: String,
    /// What may be shown of it later.
    pub shown: String,
}

/// The destination was judged before: a name is resolved outside of the transaction.
pub struct CreateWebhook(pub Create);

impl Command for CreateWebhook {
    type Reply = NewSecret;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewSecret, Error> {
        let Create { url, events, description } = &self.0;
        let created = Webhook {
            id: cx.id(),
            url: url.as_str().to_owned(),
            description: description.clone(),
            events: events.clone(),
            switch: Switch::Enabled,
            failure_streak: 0,
            last_test: None,
            url_changed_at: cx.now,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let Issued { text, shown, .. } = issue(CredentialKind::WebhookSecret, cx.company().id, cx.random());
        let sealed = cx.vault().seal(created.id, &text, cx.random());
        webhook::insert(tx, &created, &sealed, &shown)?;
        let detail = json!({ "url": created.url, "events": created.events.to_stored() });
        audit::record(tx, cx, "webhook.created", Some(created.id.to_string()), &detail)?;
        Ok(NewSecret { webhook: created, secret: text, shown })
    }
}

pub struct PatchWebhook {
    pub id: WebhookId,
    pub patch: Patch,
}

impl Command for PatchWebhook {
    type Reply = Webhook;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Webhook, Error> {
        let mut found = lock(tx, self.id)?;
        let before = found.clone();
        if let Some(url) = &self.patch.url
            && url.as_str() != found.url
        {
            url.as_str().clone_into(&mut found.url);
            found.url_changed_at = cx.now;
        }
        if let Some(events) = &self.patch.events {
            found.events.clone_from(events);
        }
        if let Some(description) = &self.patch.description {
            found.description.clone_from(description);
        }
        if found != before {
            found.updated_at = cx.now;
            webhook::update(tx, &[&found])?;
            let detail = json!({
                "url": { "from": before.url, "to": found.url },
                "events": { "from": before.events.to_stored(), "to": found.events.to_stored() },
            });
            audit::record(tx, cx, "webhook.changed", Some(self.id.to_string()), &detail)?;
        }
        Ok(found)
    }
}

/// Ends its open deliveries, in steps in the background; their history stays.
pub struct DeleteWebhook(pub WebhookId);

impl Command for DeleteWebhook {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = lock(tx, self.0)?;
        webhook::mark_deleted(tx, self.0, cx.now)?;
        manual_attempt::delete_of_webhook(tx, self.0)?;
        audit::record(tx, cx, "webhook.deleted", Some(self.0.to_string()), &json!({ "url": found.url }))?;
        wake(tx, cx, self.0);
        Ok(())
    }
}

/// A new secret; the old one signs nothing from the next attempt on.
pub struct RotateSecret(pub WebhookId);

impl Command for RotateSecret {
    type Reply = NewSecret;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewSecret, Error> {
        let found = lock(tx, self.0)?;
        let Issued { text, shown, .. } = issue(CredentialKind::WebhookSecret, cx.company().id, cx.random());
        let sealed = cx.vault().seal(self.0, &text, cx.random());
        webhook::set_secret(tx, self.0, &sealed, &shown, cx.now)?;
        audit::record(tx, cx, "webhook.secret_rotated", Some(self.0.to_string()), &json!({}))?;
        Ok(NewSecret { webhook: found, secret: text, shown })
    }
}

/// What becomes of the deliveries held while a webhook was off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    Send,
    Drop,
}

pub struct EnableWebhook {
    pub id: WebhookId,
    pub held: Held,
}

impl Command for EnableWebhook {
    type Reply = Webhook;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Webhook, Error> {
        let mut found = lock(tx, self.id)?;
        if found.switch.is_enabled() {
            return Ok(found);
        }
        found.enable(cx.now).map_err(|_| {
            let detail = "the webhook was disabled after repeated failures: send a test, and enable it once one succeeds";
            Error::conflict("test_required", detail)
        })?;
        webhook::update(tx, &[&found])?;
        if self.held == Held::Drop {
            webhook::drop_before(tx, self.id, cx.now)?;
        }
        let held = if self.held == Held::Send { "send" } else { "drop" };
        audit::record(tx, cx, "webhook.enabled", Some(self.id.to_string()), &json!({ "held": held }))?;
        wake(tx, cx, self.id);
        Ok(found)
    }
}

pub struct DisableWebhook(pub WebhookId);

impl Command for DisableWebhook {
    type Reply = Webhook;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Webhook, Error> {
        let mut found = lock(tx, self.0)?;
        if found.switch.is_enabled() {
            found.switch = Switch::DisabledByHand;
            found.updated_at = cx.now;
            webhook::update(tx, &[&found])?;
            audit::record(tx, cx, "webhook.disabled", Some(self.0.to_string()), &json!({}))?;
        }
        Ok(found)
    }
}

/// A synthetic event through the real pipeline, whatever the webhook selects and whether it is on.
pub struct TestWebhook(pub WebhookId);

impl Command for TestWebhook {
    type Reply = Delivery;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Delivery, Error> {
        let found = lock(tx, self.0)?;
        let occasion = Occasion { id: cx.id(), now: cx.now, project: &cx.company().slug };
        let made = event::webhook_test(occasion, found.id);
        rapport_store::event::insert(tx, std::slice::from_ref(&made))?;
        let payload = made.payload.as_str().into();
        let mut fan = FanOut::new(cx);
        let id: DeliveryId = fan.add(cx, &made, &payload, found.id, found.switch.is_enabled());
        fan.write(tx)?;
        let delivery = delivery::get(tx, id)?.ok_or(Error::NotFound("delivery"))?;
        debug_assert!(matches!(delivery.state, State::Open { .. }) && delivery.kind == Kind::WebhookTest);
        if !found.switch.is_enabled() {
            force(tx, cx, &delivery, payload)?;
        }
        Ok(delivery)
    }
}

fn lock(tx: &mut Tx, id: WebhookId) -> Result<Webhook, Error> {
    webhook::lock(tx, &[id])?.pop().ok_or(Error::NotFound("webhook"))
}

/// Tells the sender of this process; those of other nodes find out when they next look.
fn wake(tx: &mut Tx, cx: &Context, id: WebhookId) {
    if let Some(sender) = cx.sender() {
        let company = cx.company().id;
        tx.after_commit(move || sender.wake(company, id));
    }
}
