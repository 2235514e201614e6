//! Where attempts go: a webhook as it was read for a round of dispatches. Its secrets are decrypted once for all of them.

use std::sync::OnceLock;

use rapport_app::signature::SigningKey;
use rapport_app::vault::{Owner, Vault};
use rapport_domain::webhook_header::{self, Headers, Secrets};
use rapport_store::webhook;

pub struct Target {
    pub webhook: webhook::Target,
    opened: OnceLock<Result<Opened, &'static str>>,
}

/// The decrypted parts of a webhook.
pub struct Opened {
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
    Ok(Opened { key: SigningKey::new(&secret), headers, secrets })
}

fn headers(webhook: &webhook::Target, vault: &Vault) -> Option<(Vec<(String, String)>, Secrets)> {
    let secrets = match &webhook.sealed_headers {
        Some(sealed) => Secrets::from_text(&vault.open(Owner::WebhookHeaders(webhook.id), sealed).ok()?),
        None => Secrets::default(),
    };
    let shown = webhook_header::from_stored(&webhook.headers);
    Some((Headers { shown, secrets: secrets.clone() }.into_pairs()?, secrets))
}

#[cfg(test)]
mod tests {
    use rapport_domain::id::WebhookId;
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
}
