//! Signatures of deliveries: created for each attempt, and checked for people whose receiver rejects them.

use rapport_domain::id::{EventId, WebhookId};
use rapport_domain::json_layout;
use rapport_domain::signature::{Malformed, Signature};
use rapport_domain::webhook::Webhook;
use rapport_store::{Error, Snapshot, event, webhook};
use ring::hmac;
use serde_json::Value;

use crate::context::Services;
use crate::vault::Owner;

/// How many other webhooks' secrets are tried.
const MAX_OTHERS: usize = 100;
const SECRET_PREFIX: &str = "whs_";

/// The signature of a body. The key is the secret exactly as it was shown.
pub fn sign(secret: &str, body: &[u8]) -> Signature {
    let tag = hmac::sign(&key(secret), body);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    Signature::new(bytes)
}

/// The signature an attempt made now would carry; `None` if the webhook is gone or its secret can't be
/// opened.
pub fn of_webhook(
    services: &Services,
    snapshot: &mut Snapshot,
    id: WebhookId,
    body: &[u8],
) -> Result<Option<Signature>, Error> {
    Ok(kept_secret(services, snapshot, id)?.map(|secret| sign(&secret, body)))
}

/// What a receiver got, and the secret it uses.
pub struct Check {
    pub header: String,
    pub body: String,
    pub secret: Secret,
}

pub enum Secret {
    Typed(String),
    /// The secret stored for this webhook; it isn't shown to anyone.
    Kept(WebhookId),
}

/// The diagnosis of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    Genuine,
    Malformed(Malformed),
    /// The secret is right, but a different body was signed.
    BodyChanged(Change),
    WrongSecret(Mistake),
    /// The webhook is gone, or its secret was sealed under another key.
    NoSecret,
    /// Either the secret or the body differs.
    Unclear,
}

/// How a body differs from what was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Whitespace at its beginning or end.
    Ends,
    /// Whitespace between its parts: it was parsed and serialized again.
    Layout,
    /// It isn't the body that was sent for the event it names.
    Content,
}

/// What is wrong with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// Whitespace around it.
    Blanks,
    /// The prefix `whs_`, which is part of the secret, is missing.
    Prefix,
    /// The signature belongs to this other webhook.
    Other(Box<Webhook>),
    /// The body is as it was sent.
    Unknown,
}

/// Diagnoses a signature. Nothing is stored.
pub fn check(services: &Services, snapshot: &mut Snapshot, check: &Check) -> Result<Finding, Error> {
    let signature = match Signature::parse(&check.header) {
        Ok(signature) => signature,
        Err(malformed) => return Ok(Finding::Malformed(malformed)),
    };
    let secret = match &check.secret {
        Secret::Typed(secret) => Some(secret.clone()),
        Secret::Kept(id) => kept_secret(services, snapshot, *id)?,
    };
    let Some(secret) = secret else { return Ok(Finding::NoSecret) };
    if fits(&secret, &check.body, &signature) {
        return Ok(Finding::Genuine);
    }
    let sent = sent_for(snapshot, &check.body)?;
    if let Some(change) = change(&secret, &check.body, sent.as_deref(), &signature) {
        return Ok(Finding::BodyChanged(change));
    }
    let bodies: Vec<&str> = [Some(check.body.as_str()), sent.as_deref()].into_iter().flatten().collect();
    let is_made_with =
        |secret: &str| !secret.is_empty() && bodies.iter().any(|body| fits(secret, body, &signature));
    if is_made_with(secret.trim()) {
        return Ok(Finding::WrongSecret(Mistake::Blanks));
    }
    if is_made_with(&format!("{SECRET_PREFIX}{}", secret.trim())) {
        return Ok(Finding::WrongSecret(Mistake::Prefix));
    }
    for other in webhook::list(snapshot)?.into_iter().take(MAX_OTHERS) {
        if kept_secret(services, snapshot, other.id)?.is_some_and(|secret| is_made_with(&secret)) {
            return Ok(Finding::WrongSecret(Mistake::Other(Box::new(other))));
        }
    }
    let is_as_sent = sent.is_some_and(|sent| sent == check.body);
    Ok(if is_as_sent { Finding::WrongSecret(Mistake::Unknown) } else { Finding::Unclear })
}

/// How the body was changed, if the secret fits the original.
fn change(secret: &str, body: &str, sent: Option<&str>, signature: &Signature) -> Option<Change> {
    let ends = [body.trim().to_owned(), format!("{}\n", body.trim_end()), format!("{}\r\n", body.trim_end())];
    if ends.iter().any(|body| fits(secret, body, signature)) {
        return Some(Change::Ends);
    }
    if fits(secret, &json_layout::compact(body), signature) {
        return Some(Change::Layout);
    }
    sent.filter(|sent| fits(secret, sent, signature)).map(|sent| {
        let is_layout = json_layout::compact(sent) == json_layout::compact(body);
        if is_layout { Change::Layout } else { Change::Content }
    })
}

/// The payload sent for the event that a body names.
fn sent_for(snapshot: &mut Snapshot, body: &str) -> Result<Option<String>, Error> {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let id = parsed.as_ref().and_then(|body| body["id"].as_str()).and_then(|id| id.parse::<EventId>().ok());
    let Some(id) = id else { return Ok(None) };
    Ok(event::get(snapshot, id)?.map(|event| event.payload).filter(|payload| !payload.is_empty()))
}

fn kept_secret(services: &Services, snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<String>, Error> {
    let sealed = webhook::sealed_secret(snapshot, id)?;
    Ok(sealed.and_then(|sealed| services.vault().open(Owner::Webhook(id), &sealed).ok()))
}

fn fits(secret: &str, body: &str, signature: &Signature) -> bool {
    hmac::verify(&key(secret), body.as_bytes(), signature.as_bytes()).is_ok()
}

fn key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}
