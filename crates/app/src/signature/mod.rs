//! Signatures of deliveries: created for each attempt, and checked for people whose receiver rejects them.

mod check;
mod words;

pub use check::{Change, Check, Claim, Finding, Malformed, Mistake, Report, Secret, check, explain};

use std::fmt;

use rapport_domain::id::{EventId, WebhookId};
use rapport_domain::signature::Signature;
use rapport_domain::standard_webhook;
use rapport_store::{Error, Snapshot, webhook};
use ring::hmac;

use crate::context::Services;
use crate::vault::Owner;

/// The key of a webhook. Both signatures of a delivery are made with it, so it is computed once for both. Its bytes are the
/// secret exactly as it was shown.
pub struct SigningKey(hmac::Key);

impl SigningKey {
    pub fn new(secret: &str) -> Self {
        Self(key(secret.as_bytes()))
    }

    /// The value of `X-Service-Signature`.
    pub fn sign(&self, body: &[u8]) -> Signature {
        Signature::new(bytes(hmac::sign(&self.0, body)))
    }

    /// The value of `webhook-signature`. The body is hashed where it is.
    pub fn sign_standard(&self, event: EventId, timestamp: i64, body: &[u8]) -> standard_webhook::Signature {
        sign_standard(&self.0, event, timestamp, body)
    }
}

/// The key of a webhook; `None` if the webhook is gone or its secret can't be opened.
pub fn key_of_webhook(
    services: &Services,
    snapshot: &mut Snapshot,
    id: WebhookId,
) -> Result<Option<SigningKey>, Error> {
    Ok(kept_secret(services, snapshot, id)?.map(|secret| SigningKey::new(&secret)))
}

fn kept_secret(services: &Services, snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<String>, Error> {
    let sealed = webhook::sealed_secret(snapshot, id)?;
    Ok(sealed.and_then(|sealed| services.vault().open(Owner::Webhook(id), &sealed).ok()))
}

fn sign_standard(
    key: &hmac::Key,
    id: impl fmt::Display,
    timestamp: i64,
    body: &[u8],
) -> standard_webhook::Signature {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{timestamp}.").as_bytes());
    context.update(body);
    standard_webhook::Signature::new(bytes(context.sign()))
}

fn key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

fn bytes(tag: hmac::Tag) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}
