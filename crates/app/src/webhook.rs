//! Webhooks: create, edit, test, rotate, disable, enable, delete.

use rapport_domain::audit::Action;
use rapport_domain::credential::{Issued, Kind as CredentialKind, issue};
use rapport_domain::delivery::{Delivery, State};
use rapport_domain::destination::Destination;
use rapport_domain::event::{self, Kind, Occasion};
use rapport_domain::event_filter::EventFilter;
use rapport_domain::id::{DeliveryId, WebhookId};
use rapport_domain::invalid::{Fault, Invalid};
use rapport_domain::mail::Kind as MailKind;
use rapport_domain::member::Member;
use rapport_domain::opt_in::OptIn;
use rapport_domain::right::Right;
use rapport_domain::webhook::{Create, Held, Patch, Selection, Switch, Webhook, refused};
use rapport_domain::webhook_header::{GivenHeader, Header, Headers, Secrets};
use rapport_store::subscription::Selects;
use rapport_store::webhook_choice::{self, Choice};
use rapport_store::{Tx, company, delivery, manual_attempt, member, webhook};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::context::Services;
use crate::destination::Judged;
use crate::error::Error;
use crate::fan_out::FanOut;
use crate::mail::{self, Recipient};
use crate::redeliver::force;
use crate::vault::Owner;
use crate::{audit, encryption_key, letter};

const NEEDS: Needs = Needs::Right(Right::Webhooks);
/// A notice that couldn't be sent for this long is outdated.
const NOTICE_DAYS: i64 = 2;

/// A webhook with its secret, for the one time it is shown.
pub struct NewSecret {
    pub webhook: Webhook,
    pub choice: Choice,
    pub secret: String,
    /// The part of it that may be shown later.
    pub shown: String,
}

#[derive(Debug, Clone)]
pub struct CreateWebhook {
    pub url: Judged,
    pub events: Selection,
    pub description: String,
    pub filters: EventFilter,
    pub headers: Vec<GivenHeader>,
}

impl CreateWebhook {
    /// Has the destination checked. Names are resolved, so this happens before the transaction.
    pub async fn checked(services: &Services, create: Create) -> Result<Self, Invalid> {
        let Create { url, events, description, filters, headers } = create;
        Ok(Self { url: judged(services, url).await?, events, description, filters, headers })
    }
}

impl Command for CreateWebhook {
    type Reply = NewSecret;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewSecret, Error> {
        let Self { url, events, description, filters, headers } = self;
        let headers = Headers::of(headers, &Secrets::default())?;
        let created = Webhook {
            id: cx.id(),
            url: url.as_str().to_owned(),
            description: description.clone(),
            events: *events,
            switch: Switch::Enabled,
            failure_streak: 0,
            proven: false,
            last_test: None,
            url_changed_at: cx.now,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let Issued { text, shown, .. } = issue(CredentialKind::WebhookSecret, cx.company().id, cx.random());
        let sealed = encryption_key::seal(tx, cx, Owner::Webhook(created.id), &text)?;
        webhook::insert(tx, &created, &sealed, &shown)?;
        if !filters.is_empty() {
            webhook_choice::set_filter(tx, created.id, filters, cx.now)?;
        }
        if !headers.shown.is_empty() {
            store_headers(tx, cx, created.id, &headers)?;
        }
        note_opt_in(tx, OptIn::of([&created.events]))?;
        let choice = Choice { filter: filters.clone(), headers: headers.shown };
        let detail = described(&created, &choice);
        audit::record(tx, cx, Action::WebhookCreated, Some(created.id.to_string()), &detail)?;
        Ok(NewSecret { webhook: created, choice, secret: text, shown })
    }
}

#[derive(Debug, Clone)]
pub struct PatchWebhook {
    pub id: WebhookId,
    pub changes: Changes,
}

/// An edit of a webhook. Its destination, if it names one, passed the check.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    pub url: Option<Judged>,
    pub events: Option<Selection>,
    pub description: Option<String>,
    pub filters: Option<EventFilter>,
    pub headers: Option<Vec<GivenHeader>>,
}

impl Changes {
    /// Has the destination checked, if there is one. See [`CreateWebhook::checked`].
    pub async fn checked(services: &Services, patch: Patch) -> Result<Self, Invalid> {
        let Patch { url, events, description, filters, headers } = patch;
        let url = match url {
            Some(url) => Some(judged(services, url).await?),
            None => None,
        };
        Ok(Self { url, events, description, filters, headers })
    }
}

async fn judged(services: &Services, url: Destination) -> Result<Judged, Invalid> {
    services.check_destination(url).await.map_err(|refusal| {
        let Fault { code, detail } = refused(&refusal);
        Invalid::one("/url", code, detail)
    })
}

impl Command for PatchWebhook {
    type Reply = Webhook;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Webhook, Error> {
        let mut found = lock(tx, self.id)?;
        let before = found.clone();
        let earlier = webhook_choice::get(tx, self.id)?;
        let mut choice = earlier.clone();
        let replaced = self.change_headers(tx, cx, &found, &mut choice)?;
        if let Some(filter) = &self.changes.filters
            && *filter != choice.filter
        {
            webhook_choice::set_filter(tx, self.id, filter, cx.now)?;
            choice.filter.clone_from(filter);
        }
        if let Some(url) = &self.changes.url
            && url.as_str() != found.url
        {
            found.move_to(url.as_str(), cx.now);
        }
        if let Some(events) = &self.changes.events {
            found.events.clone_from(events);
        }
        if let Some(description) = &self.changes.description {
            found.description.clone_from(description);
        }
        if found != before || choice != earlier || !replaced.is_empty() {
            found.updated_at = cx.now;
            let selects =
                if found.events == before.events { Selects::AsBefore } else { Selects::Anew(cx.now) };
            webhook::update(tx, &[&found], selects)?;
            let (old, new) = (OptIn::of([&before.events]), OptIn::of([&found.events]));
            if old != new {
                note_opt_in_of_all(tx)?;
            }
            let mut detail = audit::changes(&described(&before, &earlier), &described(&found, &choice));
            if !replaced.is_empty() {
                detail["replaced_headers"] = json!(replaced);
            }
            audit::record(tx, cx, Action::WebhookChanged, Some(self.id.to_string()), &detail)?;
        }
        Ok(found)
    }
}

impl PatchWebhook {
    /// Stores the headers, if the edit has any; returns the names of secret ones that got another value.
    ///
    /// A secret goes to the host it was entered for. So if the URL now leads to another host, each must be given again.
    fn change_headers(
        &self,
        tx: &mut Tx,
        cx: &Context,
        found: &Webhook,
        choice: &mut Choice,
    ) -> Result<Vec<String>, Error> {
        let has_secrets = choice.headers.iter().any(|header| header.value.is_none());
        let moves = self.changes.url.as_ref().is_some_and(|url| {
            !Destination::parse(&found.url).is_ok_and(|old| old.authority() == url.authority())
        });
        let Some(given) = &self.changes.headers else {
            if moves && has_secrets {
                let detail =
                    "the URL leads to another host; send the headers again, with the values of secret ones";
                return Err(Invalid::one("/headers", "required", detail).into());
            }
            return Ok(Vec::new());
        };
        let kept = if has_secrets { kept_secrets(tx, cx, self.id)? } else { Secrets::default() };
        let nothing = Secrets::default();
        let headers = Headers::of(given, if moves { &nothing } else { &kept })?;
        if headers.shown == choice.headers && headers.secrets == kept {
            return Ok(Vec::new());
        }
        store_headers(tx, cx, self.id, &headers)?;
        let replaced = headers.replaced(&choice.headers, &kept).into_iter().map(str::to_owned).collect();
        choice.headers = headers.shown;
        Ok(replaced)
    }
}

/// The values of a webhook's secret headers. One that can't be decrypted must be given again.
fn kept_secrets(tx: &mut Tx, cx: &Context, id: WebhookId) -> Result<Secrets, Error> {
    let sealed = webhook_choice::sealed_headers(tx, id)?;
    let text = sealed.and_then(|sealed| cx.vault().open(Owner::WebhookHeaders(id), &sealed).ok());
    Ok(text.map(|text| Secrets::from_text(&text)).unwrap_or_default())
}

fn store_headers(tx: &mut Tx, cx: &Context, id: WebhookId, headers: &Headers) -> Result<(), Error> {
    let sealed = match headers.secrets.to_text() {
        Some(text) => Some(encryption_key::seal(tx, cx, Owner::WebhookHeaders(id), &text)?),
        None => None,
    };
    Ok(webhook_choice::set_headers(tx, id, &headers.shown, sealed.as_deref())?)
}

/// A new webhook selects these; notes it on the company, unless it asks for nothing special.
fn note_opt_in(tx: &mut Tx, new: OptIn) -> Result<(), Error> {
    if new == OptIn::default() { Ok(()) } else { note_opt_in_of_all(tx) }
}

/// Notes on the company which opt-in events its webhooks select. The company is locked first, so that of two changes at
/// once the later one sees the other.
fn note_opt_in_of_all(tx: &mut Tx) -> Result<(), Error> {
    let found = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
    let wanted = OptIn::of(&webhook::selections(tx)?);
    if wanted != found.opt_in {
        company::set_opt_in(tx, wanted)?;
    }
    Ok(())
}

/// Deletes a webhook. Its open deliveries end in background steps; their history stays.
pub struct DeleteWebhook(pub WebhookId);

impl Command for DeleteWebhook {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = lock(tx, self.0)?;
        webhook::mark_deleted(tx, self.0, cx.now)?;
        manual_attempt::delete_of_webhook(tx, self.0)?;
        note_opt_in(tx, OptIn::of([&found.events]))?;
        audit::record(
            tx,
            cx,
            Action::WebhookDeleted,
            Some(self.0.to_string()),
            &json!({ "url": found.url }),
        )?;
        wake(tx, cx, self.0);
        Ok(())
    }
}

/// Creates a new secret; from the next attempt on, the old one signs nothing.
pub struct RotateSecret(pub WebhookId);

impl Command for RotateSecret {
    type Reply = NewSecret;
    const NEEDS: Needs = NEEDS;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewSecret, Error> {
        let found = lock(tx, self.0)?;
        let Issued { text, shown, .. } = issue(CredentialKind::WebhookSecret, cx.company().id, cx.random());
        let sealed = encryption_key::seal(tx, cx, Owner::Webhook(self.0), &text)?;
        webhook::set_secret(tx, self.0, &sealed, &shown, cx.now)?;
        let detail = json!({ "prefix": shown });
        audit::record(tx, cx, Action::WebhookSecretRotated, Some(self.0.to_string()), &detail)?;
        let choice = webhook_choice::get(tx, self.0)?;
        Ok(NewSecret { webhook: found, choice, secret: text, shown })
    }
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
            let detail =
                "the webhook was auto-disabled after repeated failures; enable it after a successful test";
            Error::conflict("test_required", detail)
        })?;
        webhook::update(tx, &[&found], Selects::Anew(cx.now))?;
        if self.held == Held::Drop {
            webhook::drop_before(tx, self.id, cx.now)?;
        }
        let detail = json!({ "enabled": { "from": false, "to": true }, "held": self.held.as_str() });
        audit::record(tx, cx, Action::WebhookEnabled, Some(self.id.to_string()), &detail)?;
        wake(tx, cx, self.id);
        wake_manual(tx, cx);
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
            webhook::update(tx, &[&found], Selects::Anew(cx.now))?;
            let detail = json!({ "enabled": { "from": true, "to": false } });
            audit::record(tx, cx, Action::WebhookDisabled, Some(self.0.to_string()), &detail)?;
        }
        Ok(found)
    }
}

/// Sends a synthetic event through the real pipeline, whatever the webhook selects and whether or not it is
/// enabled.
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
        let detail = json!({ "delivery": id.to_string() });
        audit::record(tx, cx, Action::WebhookTested, Some(self.0.to_string()), &detail)?;
        Ok(delivery)
    }
}

/// The editable fields of a webhook, without secrets.
fn described(webhook: &Webhook, choice: &Choice) -> Value {
    let mut members = json!({
        "url": webhook.url, "events": webhook.events.to_stored(), "description": webhook.description,
    });
    // Each condition on its own: a filter with `from` and `to` would read like a change.
    if let Value::Object(conditions) = choice.filter.to_json() {
        for (name, value) in conditions {
            members[format!("filter_{name}")] = value;
        }
    }
    if !choice.headers.is_empty() {
        members["headers"] = choice.headers.iter().map(Header::masked).collect();
    }
    members
}

/// Tells the owners and admins, and the audit log, that a webhook was auto-disabled after repeated failures.
pub(crate) fn tell_auto_disabled(
    tx: &mut Tx,
    cx: &Context,
    webhook: &Webhook,
) -> Result<(), rapport_store::Error> {
    let detail = json!({
        "enabled": { "from": true, "to": false }, "failure_streak": webhook.failure_streak,
    });
    audit::record(tx, cx, Action::WebhookAutoDisabled, Some(webhook.id.to_string()), &detail)?;
    // A URL may carry a key in its path or query, so the mail names only the host.
    let host = Destination::parse(&webhook.url).map(|destination| destination.authority().to_owned());
    let name = match (webhook.description.as_str(), host) {
        ("", Ok(host)) => host,
        (description, Ok(host)) => format!("{description} ({host})"),
        (description, Err(_)) => description.to_owned(),
    };
    let letter =
        letter::webhook_disabled(&cx.outside().base_url, &cx.company().name, &name, webhook.failure_streak);
    let grants = cx.settings().grants;
    let manages = |member: &Member| member.is_active() && Right::Webhooks.is_held_by(member.role, grants);
    let managing = member::list(tx)?.into_iter().filter(manages);
    let recipients = managing.map(|member| Recipient::from(&member)).collect();
    let not_after = cx.now.plus_days(NOTICE_DAYS);
    mail::write(tx, cx, MailKind::WebhookDisabled, letter, recipients, not_after)?;
    Ok(())
}

fn lock(tx: &mut Tx, id: WebhookId) -> Result<Webhook, Error> {
    webhook::lock(tx, &[id])?.pop().ok_or(Error::NotFound("webhook"))
}

/// Tells the sender of this process; those of other nodes notice at their next check.
fn wake(tx: &mut Tx, cx: &Context, id: WebhookId) {
    if let Some(sender) = cx.sender() {
        let company = cx.company().id;
        tx.after_commit(move || sender.wake(company, id));
    }
}

/// Wakes a bulk redelivery that paused when the webhook was auto-disabled.
fn wake_manual(tx: &mut Tx, cx: &Context) {
    if let Some(sender) = cx.sender() {
        let company = cx.company().id;
        tx.after_commit(move || sender.wake_manual(company));
    }
}
