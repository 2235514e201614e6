//! The vault: webhook secrets and the secrets of links in mails, encrypted (ChaCha20-Poly1305) under a key
//! that lives outside the database.

use rapport_domain::id::{MailId, WebhookId};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Seals and opens secrets. A secret sealed for one webhook or mail opens for no other.
pub struct Vault {
    key: LessSafeKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret can't be decrypted; was it encrypted with another key?")]
pub struct CannotOpen;

impl Vault {
    pub fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("a key has 32 bytes");
        Self { key: LessSafeKey::new(key) }
    }

    pub fn seal(&self, webhook: WebhookId, text: &str, nonce: [u8; NONCE_LEN]) -> Vec<u8> {
        self.seal_for(webhook.as_bytes(), text, nonce)
    }

    pub fn open(&self, webhook: WebhookId, sealed: &[u8]) -> Result<String, CannotOpen> {
        self.open_for(webhook.as_bytes(), sealed)
    }

    /// Seals the secret of a link that waits in a mail.
    pub fn seal_link(&self, mail: MailId, text: &str, nonce: [u8; NONCE_LEN]) -> Vec<u8> {
        self.seal_for(&link_owner(mail), text, nonce)
    }

    pub fn open_link(&self, mail: MailId, sealed: &[u8]) -> Result<String, CannotOpen> {
        self.open_for(&link_owner(mail), sealed)
    }

    /// A random nonce, then the sealed text: random 96-bit nonces are safe for so few secrets.
    fn seal_for(&self, owner: &[u8], text: &str, nonce: [u8; NONCE_LEN]) -> Vec<u8> {
        let mut sealed = text.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut sealed)
            .expect("a secret is short");
        [nonce.as_slice(), &sealed].concat()
    }

    fn open_for(&self, owner: &[u8], sealed: &[u8]) -> Result<String, CannotOpen> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or(CannotOpen)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CannotOpen)?;
        let mut text = sealed.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(owner), &mut text);
        let opened = opened.map_err(|_| CannotOpen)?;
        String::from_utf8(opened.to_vec()).map_err(|_| CannotOpen)
    }
}

/// Includes the type, so that it never equals a webhook's id.
fn link_owner(mail: MailId) -> Vec<u8> {
    [MailId::PREFIX.as_bytes(), mail.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_for_its_webhook() {
        let (one, other) = (WebhookId::from_bytes([1; 16]), WebhookId::from_bytes([2; 16]));
        let vault = Vault::new(&[7; 32]);
        let sealed = vault.seal(one, "whs_secret", [3; NONCE_LEN]);
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(vault.open(one, &sealed).as_deref(), Ok("whs_secret"));
        assert_eq!(vault.open(other, &sealed), Err(CannotOpen));
        assert_eq!(Vault::new(&[8; 32]).open(one, &sealed), Err(CannotOpen));
        assert_eq!(vault.open(one, &sealed[..5]), Err(CannotOpen));
    }

    #[test]
    fn a_link_opens_for_its_mail_only() {
        let (one, other) = (MailId::from_bytes([1; 16]), MailId::from_bytes([2; 16]));
        let vault = Vault::new(&[7; 32]);
        let sealed = vault.seal_link(one, "rjn_secret", [3; NONCE_LEN]);
        assert_eq!(vault.open_link(one, &sealed).as_deref(), Ok("rjn_secret"));
        assert_eq!(vault.open_link(other, &sealed), Err(CannotOpen));
        assert_eq!(vault.open(WebhookId::from_bytes([1; 16]), &sealed), Err(CannotOpen));
    }
}
