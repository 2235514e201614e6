//! Where attempts go: a webhook as it was read for a round of dispatches. Its secrets are decrypted and its URL is parsed
//! once for all of them, and for the next rounds that read the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

use rapport_app::signature::SigningKey;
use rapport_app::vault::{Owner, Vault};
use rapport_domain::destination::{Destination, Refusal};
use rapport_domain::id::WebhookId;
use rapport_domain::webhook_header::{self, Headers, Secrets};
use rapport_store::webhook;

pub struct Target {
    pub webhook: webhook::Target,
    opened: OnceLock<Result<Opened, &'static str>>,
}

/// The decrypted and parsed parts of a webhook.
pub struct Opened {
    pub destination: Result<Destination, Refusal>,
    pub key: SigningKey,
    /// The webhook's own headers, and those of their values that are secret.
    pub headers: Vec<(String, String)>,
    pub secrets: Secrets,
}

impl Target {
    pub fn new(webhook: webhook::Target) -> Self {
        Self { webhook, opened: OnceLock::new() }
    }

    /// Fails if something can't be decrypted, and says what.
    pub fn opened(&self, vault: &Vault) -> Result<&Opened, &'static str> {
        self.opened.get_or_init(|| open(&self.webhook, vault)).as_ref().map_err(|error| *error)
    }
}

fn open(webhook: &webhook::Target, vault: &Vault) -> Result<Opened, &'static str> {
    let secret = vault.open(Owner::Webhook(webhook.id), &webhook.sealed_secret).map_err(|error| {
        tracing::error!(webhook = %webhook.id, %error, "failed to decrypt a webhook's secret");
        "the webhook's secret can't be decrypted"
    })?;
    let (headers, secrets) = headers(webhook, vault).ok_or_else(|| {
        tracing::error!(webhook = %webhook.id, "failed to decrypt a webhook's headers");
        "the webhook's secret headers can't be decrypted"
    })?;
    let destination = Destination::parse(&webhook.url);
    Ok(Opened { destination, key: SigningKey::new(&secret), headers, secrets })
}

fn headers(webhook: &webhook::Target, vault: &Vault) -> Option<(Vec<(String, String)>, Secrets)> {
    let secrets = match &webhook.sealed_headers {
        Some(sealed) => Secrets::from_text(&vault.open(Owner::WebhookHeaders(webhook.id), sealed).ok()?),
        None => Secrets::default(),
    };
    let shown = webhook_header::from_stored(&webhook.headers);
    Some((Headers { shown, secrets: secrets.clone() }.into_pairs()?, secrets))
}

/// The targets of the last rounds.
#[derive(Default)]
pub struct Targets(HashMap<WebhookId, Arc<Target>>);

impl Targets {
    /// Replaces what a round has read by what is known, where it is the same, and remembers the rest.
    pub fn meet(&mut self, read: &mut HashMap<WebhookId, Arc<Target>>) {
        for (id, target) in read {
            match self.0.entry(*id) {
                Entry::Occupied(known) if known.get().webhook == target.webhook => {
                    *target = Arc::clone(known.get());
                }
                Entry::Occupied(mut known) => *known.get_mut() = Arc::clone(target),
                Entry::Vacant(free) => {
                    free.insert(Arc::clone(target));
                }
            }
        }
    }

    /// Nobody keeps secrets for longer than they help.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use rapport_domain::time::Time;

    use super::*;

    const ID: WebhookId = WebhookId::from_bytes([1; 16]);

    fn sealed(vault: &Vault, owner: Owner, text: &str) -> Vec<u8> {
        vault.seal(&vault.fingerprints()[0], owner, text, [0; 12]).expect("a known key")
    }

    fn target(sealed_secret: Vec<u8>, sealed_headers: Option<Vec<u8>>) -> Target {
        Target::new(webhook::Target {
            id: ID,
            url: "https://example.com/".to_owned(),
            sealed_secret,
            enabled: true,
            auto_disabled: false,
            deleted: false,
            dropped_before: Time::from_micros(0),
            headers: String::new(),
            sealed_headers,
        })
    }

    #[test]
    fn what_another_key_encrypted_is_named() {
        let (own, other) = (Vault::new(&[7; 32]), Vault::new(&[8; 32]));
        let secret = sealed(&own, Owner::Webhook(ID), "whs_secret");
        let headers = sealed(&other, Owner::WebhookHeaders(ID), "{}");
        let foreign = sealed(&other, Owner::Webhook(ID), "whs_secret");
        assert!(target(secret.clone(), None).opened(&own).is_ok());
        let error = |target: Target| target.opened(&own).err();
        assert_eq!(error(target(foreign, None)), Some("the webhook's secret can't be decrypted"));
        let expected = Some("the webhook's secret headers can't be decrypted");
        assert_eq!(error(target(secret, Some(headers))), expected);
    }

    #[test]
    fn a_target_is_opened_again_only_after_a_change() {
        let vault = Vault::new(&[7; 32]);
        let secret = sealed(&vault, Owner::Webhook(ID), "whs_secret");
        let mut targets = Targets::default();
        let mut meet = |change: fn(&mut webhook::Target)| {
            let mut read = target(secret.clone(), None);
            change(&mut read.webhook);
            let mut round = HashMap::from([(ID, Arc::new(read))]);
            targets.meet(&mut round);
            round.remove(&ID).expect("the target")
        };
        let first = meet(|_| {});
        assert!(Arc::ptr_eq(&first, &meet(|_| {})), "nothing has changed");
        let changes: [fn(&mut webhook::Target); 8] = [
            |webhook| webhook.url.push('x'),
            |webhook| webhook.sealed_secret.push(1),
            |webhook| webhook.enabled = false,
            |webhook| webhook.auto_disabled = true,
            |webhook| webhook.deleted = true,
            |webhook| webhook.dropped_before = Time::from_micros(1),
            |webhook| webhook.headers.push('x'),
            |webhook| webhook.sealed_headers = Some(Vec::new()),
        ];
        for change in changes {
            let changed = meet(change);
            assert!(Arc::ptr_eq(&changed, &meet(change)), "it is remembered as it is now");
            assert!(!Arc::ptr_eq(&changed, &meet(|_| {})));
        }
        targets.forget();
        assert!(targets.0.is_empty());
    }
}
