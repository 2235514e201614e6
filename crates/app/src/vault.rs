//! The vault: the secrets of webhooks and of their headers, those of authenticator apps, the client secrets of single sign-on and the secrets of links in
//! mails, encrypted
//! (ChaCha20-Poly1305) under a key that lives outside the database. It also signs or encrypts what we hand to a browser
//! and want back unchanged.
//!
//! A vault knows the keys that its process was given. It encrypts under the one that the database names (see
//! [`crate::encryption_key`]) and decrypts with any of them. The ciphertext doesn't say which key it needs: the
//! tag shows whether a key fits.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use parking_lot::RwLock;
use rapport_domain::id::{MailId, PersonId, ResponseId, SsoId};
pub use rapport_store::sealed::Owner;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{digest, hmac};

pub const KEY_BYTES: usize = 32;
/// Tells the secrets of a webhook's headers from its own secret, which has the same id.
const HEADERS: &[u8] = b"whk headers";
const FINGERPRINT_BYTES: usize = 8;

pub type Key = [u8; KEY_BYTES];

/// Tells keys apart without revealing them.
pub fn fingerprint(key: &Key) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"rapport key fingerprint");
    context.update(key);
    HEXLOWER.encode(&context.finish().as_ref()[..FINGERPRINT_BYTES])
}

/// Reads the keys again from where they are kept.
type Source = Box<dyn Fn() -> Result<Vec<Key>, String> + Send + Sync>;

/// Seals and opens secrets. A secret sealed for one webhook or mail opens for no other.
pub struct Vault {
    /// Keys are added and never removed: what a job read before the key changed must still open.
    known: RwLock<Vec<Known>>,
    source: Option<Source>,
}

struct Known {
    fingerprint: String,
    key: LessSafeKey,
    signing: hmac::Key,
    /// For what browsers keep for us.
    wrapping: LessSafeKey,
}

/// What a signature or a wrapped text is for. One made for one purpose is worth nothing for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The cookie with the message for the next page.
    Flash,
    /// The cookie of a browser in which a person has logged in.
    Browser,
    /// A form that waits until its person has proved who they are.
    Form,
    /// The cookie of a person who gave their password and still has to show a second factor.
    FirstStep,
    /// The state of a challenge that a passkey answers.
    Passkey,
    /// The state of a challenge with which a passkey is added.
    NewPasskey,
    /// The cookie of a browser that is at a company's identity provider.
    Sso,
}

impl Purpose {
    const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Flash => b"flash",
            Self::Browser => b"browser",
            Self::Form => b"form",
            Self::FirstStep => b"first step",
            Self::Passkey => b"passkey",
            Self::NewPasskey => b"new passkey",
            Self::Sso => b"single sign-on",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret can't be decrypted; was it encrypted with another key?")]
pub struct CannotOpen;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the encryption key with the fingerprint {0} is missing in the key file")]
pub struct UnknownKey(pub String);

impl Vault {
    pub fn new(key: &Key) -> Self {
        Self { known: RwLock::new(vec![Known::new(key)]), source: None }
    }

    /// A vault that reads the keys again when none that it knows will do, so that keys can be changed while the
    /// process runs.
    pub fn reading(
        keys: &[Key],
        source: impl Fn() -> Result<Vec<Key>, String> + Send + Sync + 'static,
    ) -> Self {
        let known = keys.iter().map(Known::new).collect();
        Self { known: RwLock::new(known), source: Some(Box::new(source)) }
    }

    /// The fingerprints of the known keys, the preferred one first.
    pub fn fingerprints(&self) -> Vec<String> {
        self.known.read().iter().map(|known| known.fingerprint.clone()).collect()
    }

    pub fn knows(&self, fingerprint: &str) -> bool {
        self.with(fingerprint, |_| ()).is_some()
    }

    /// Seals a secret under the key with this fingerprint: a random nonce, then the sealed text. Random 96-bit
    /// nonces are safe for so few secrets.
    pub fn seal(
        &self,
        fingerprint: &str,
        owner: Owner,
        text: &str,
        nonce: [u8; NONCE_LEN],
    ) -> Result<Vec<u8>, UnknownKey> {
        let seal = |known: &Known| {
            let mut sealed = text.as_bytes().to_vec();
            let nonce_once = Nonce::assume_unique_for_key(nonce);
            let done =
                known.key.seal_in_place_append_tag(nonce_once, Aad::from(bound_to(owner)), &mut sealed);
            done.expect("a secret is short");
            [nonce.as_slice(), &sealed].concat()
        };
        self.with(fingerprint, seal).ok_or_else(|| UnknownKey(fingerprint.to_owned()))
    }

    pub fn open(&self, owner: Owner, sealed: &[u8]) -> Result<String, CannotOpen> {
        self.opened(owner, sealed).map(|(text, _)| text)
    }

    /// Also returns the fingerprint of the key that opened it.
    pub fn opened(&self, owner: Owner, sealed: &[u8]) -> Result<(String, String), CannotOpen> {
        let open = |known: &Known| Some((known.open(owner, sealed)?, known.fingerprint.clone()));
        self.find(open).ok_or(CannotOpen)
    }

    /// Signs parts with the preferred key, in hexadecimal.
    pub fn sign(&self, purpose: Purpose, parts: &[&[u8]]) -> Option<String> {
        self.known.read().first().map(|known| HEXLOWER.encode(known.signed(purpose, parts).as_ref()))
    }

    /// Whether one of the known keys signed these parts. Doesn't read the keys again, because anyone can send a
    /// false signature: what another node signs with a new key isn't recognized until this one uses that key too.
    pub fn has_signed(&self, purpose: Purpose, parts: &[&[u8]], signature: &str) -> bool {
        let Ok(signature) = HEXLOWER.decode(signature.as_bytes()) else { return false };
        self.known.read().iter().any(|known| known.has_signed(purpose, parts, &signature))
    }

    /// Encrypts a text that a browser keeps for us, with the preferred key. It opens only for the same parts.
    pub fn wrap(
        &self,
        purpose: Purpose,
        parts: &[&[u8]],
        text: &str,
        nonce: [u8; NONCE_LEN],
    ) -> Option<String> {
        self.known.read().first().map(|known| {
            let mut wrapped = text.as_bytes().to_vec();
            let nonce_once = Nonce::assume_unique_for_key(nonce);
            let bound = Aad::from(message(purpose, parts));
            let done = known.wrapping.seal_in_place_append_tag(nonce_once, bound, &mut wrapped);
            done.expect("a form is short");
            BASE64URL_NOPAD.encode(&[nonce.as_slice(), &wrapped].concat())
        })
    }

    /// The text that one of the known keys wrapped for the same parts. Like `has_signed`, it doesn't read the keys again.
    pub fn unwrap(&self, purpose: Purpose, parts: &[&[u8]], wrapped: &str) -> Option<String> {
        let wrapped = BASE64URL_NOPAD.decode(wrapped.as_bytes()).ok()?;
        let bound = message(purpose, parts);
        self.known.read().iter().find_map(|known| opened(&known.wrapping, &bound, &wrapped))
    }

    /// Reads the keys again.
    pub fn refresh(&self) {
        let Some(source) = &self.source else { return };
        match source() {
            Ok(keys) => {
                let mut known = self.known.write();
                for key in keys.iter().map(Known::new) {
                    if known.iter().all(|other| other.fingerprint != key.fingerprint) {
                        tracing::info!(fingerprint = key.fingerprint, "read another encryption key");
                        known.push(key);
                    }
                }
            }
            Err(error) => tracing::warn!(error, "failed to read the encryption key again"),
        }
    }

    fn with<T>(&self, fingerprint: &str, act: impl Fn(&Known) -> T) -> Option<T> {
        self.find(|known| (known.fingerprint == fingerprint).then(|| act(known)))
    }

    /// The first result that a known key gives, or else one that was not known yet.
    fn find<T>(&self, look: impl Fn(&Known) -> Option<T>) -> Option<T> {
        let found = self.known.read().iter().find_map(&look);
        found.or_else(|| {
            self.refresh();
            self.known.read().iter().find_map(&look)
        })
    }
}

impl Known {
    fn new(key_bytes: &Key) -> Self {
        let unbound = UnboundKey::new(&CHACHA20_POLY1305, key_bytes).expect("a key has 32 bytes");
        // Keys of their own, so that what a browser gets says nothing about what is stored.
        let root = hmac::Key::new(hmac::HMAC_SHA256, key_bytes);
        let derived = |purpose: &[u8]| hmac::sign(&root, purpose);
        let signing = hmac::Key::new(hmac::HMAC_SHA256, derived(b"rapport signing key").as_ref());
        let wrapping = derived(b"rapport wrapping key");
        let wrapping = UnboundKey::new(&CHACHA20_POLY1305, wrapping.as_ref()).expect("a tag has 32 bytes");
        let (key, wrapping) = (LessSafeKey::new(unbound), LessSafeKey::new(wrapping));
        Self { fingerprint: fingerprint(key_bytes), key, signing, wrapping }
    }

    fn signed(&self, purpose: Purpose, parts: &[&[u8]]) -> hmac::Tag {
        hmac::sign(&self.signing, &message(purpose, parts))
    }

    fn has_signed(&self, purpose: Purpose, parts: &[&[u8]], signature: &[u8]) -> bool {
        hmac::verify(&self.signing, &message(purpose, parts), signature).is_ok()
    }

    fn open(&self, owner: Owner, sealed: &[u8]) -> Option<String> {
        opened(&self.key, &bound_to(owner), sealed)
    }
}

/// The text after its nonce, if this key sealed it for the same thing.
fn opened(key: &LessSafeKey, bound: &[u8], sealed: &[u8]) -> Option<String> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = sealed.to_vec();
    let opened = key.open_in_place(nonce, Aad::from(bound), &mut text).ok()?;
    String::from_utf8(opened.to_vec()).ok()
}

/// The bytes that are signed: each part after its length, so that no two lists of parts give the same bytes.
fn message(purpose: Purpose, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in [purpose.as_bytes()].iter().chain(parts) {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// What a secret is bound to. All but a webhook's include their type, so that no two are equal.
fn bound_to(owner: Owner) -> Vec<u8> {
    match owner {
        Owner::Webhook(id) => id.as_bytes().to_vec(),
        Owner::WebhookHeaders(id) => [HEADERS, id.as_bytes()].concat(),
        Owner::MailLink(id) => [MailId::PREFIX.as_bytes(), id.as_bytes()].concat(),
        Owner::Totp(id) => [PersonId::PREFIX.as_bytes(), id.as_bytes()].concat(),
        Owner::SsoClient(id) => [SsoId::PREFIX.as_bytes(), id.as_bytes()].concat(),
        Owner::Response(id) => [ResponseId::PREFIX.as_bytes(), id.as_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use rapport_domain::id::WebhookId;

    use super::*;

    const ONE_BYTES: &[u8] = &[1; 16];
    const ONE: Owner = Owner::Webhook(WebhookId::from_bytes([1; 16]));

    fn sealed(key: &Key, owner: Owner) -> Vec<u8> {
        Vault::new(key).seal(&fingerprint(key), owner, "whs_secret", [3; NONCE_LEN]).unwrap()
    }

    #[test]
    fn a_secret_opens_only_with_its_key_and_for_its_owner() {
        let vault = Vault::new(&[7; KEY_BYTES]);
        let secret = sealed(&[7; KEY_BYTES], ONE);
        assert!(!secret.windows(6).any(|part| part == b"secret"));
        assert_eq!(vault.open(ONE, &secret).as_deref(), Ok("whs_secret"));
        let others = [
            Owner::Webhook(WebhookId::from_bytes([2; 16])),
            Owner::WebhookHeaders(WebhookId::from_bytes([1; 16])),
            Owner::MailLink(MailId::from_bytes([1; 16])),
            Owner::Totp(PersonId::from_bytes([1; 16])),
            Owner::SsoClient(SsoId::from_bytes([1; 16])),
            Owner::Response(ResponseId::from_bytes([1; 16])),
        ];
        for other in others {
            assert_eq!(vault.open(other, &secret), Err(CannotOpen));
        }
        assert_eq!(Vault::new(&[8; KEY_BYTES]).open(ONE, &secret), Err(CannotOpen));
        assert_eq!(vault.open(ONE, &secret[..5]), Err(CannotOpen));
        let link = Owner::MailLink(MailId::from_bytes([1; 16]));
        assert_eq!(vault.open(link, &sealed(&[7; KEY_BYTES], link)).as_deref(), Ok("whs_secret"));
    }

    #[test]
    fn a_signature_holds_for_its_key_and_exactly_its_parts() {
        let vault = Vault::new(&[7; KEY_BYTES]);
        let signature = vault.sign(Purpose::Flash, &[b"ab", b"c"]).unwrap();
        assert!(vault.has_signed(Purpose::Flash, &[b"ab", b"c"], &signature));
        let others: [&[&[u8]]; 5] =
            [&[b"a", b"bc"], &[b"abc"], &[b"ab"], &[b"ab", b"c", b""], &[b"ab", b"d"]];
        for other in others {
            assert!(!vault.has_signed(Purpose::Flash, other, &signature), "{other:?}");
        }
        for wrong in
            ["", "00", &signature[2..], &signature.to_uppercase(), &signature.replace(['0', '1'], "2")]
        {
            assert!(!vault.has_signed(Purpose::Flash, &[b"ab", b"c"], wrong), "{wrong}");
        }
        assert!(!Vault::new(&[8; KEY_BYTES]).has_signed(Purpose::Flash, &[b"ab", b"c"], &signature));
        let both =
            Vault::reading(&[[8; KEY_BYTES], [7; KEY_BYTES]], || panic!("a false signature reads no file"));
        assert!(
            both.has_signed(Purpose::Flash, &[b"ab", b"c"], &signature),
            "another node may use the old key"
        );
        assert!(!both.has_signed(Purpose::Flash, &[b"ab"], &signature));
    }

    #[test]
    fn a_wrapped_text_opens_only_for_its_parts_and_with_a_known_key() {
        let vault = Vault::new(&[7; KEY_BYTES]);
        let wrapped = vault.wrap(Purpose::Form, &[b"session", b"/path"], "name=Ana", [3; NONCE_LEN]).unwrap();
        assert!(!wrapped.contains("Ana"));
        let unwrap =
            |vault: &Vault, parts: &[&[u8]], wrapped: &str| vault.unwrap(Purpose::Form, parts, wrapped);
        let parts: &[&[u8]] = &[b"session", b"/path"];
        assert_eq!(unwrap(&vault, parts, &wrapped).as_deref(), Some("name=Ana"));
        let others: [&[&[u8]]; 3] = [&[b"session", b"/other"], &[b"another", b"/path"], &[b"session/path"]];
        for other in others {
            assert_eq!(unwrap(&vault, other, &wrapped), None, "{other:?}");
        }
        assert_eq!(vault.unwrap(Purpose::Flash, parts, &wrapped), None);
        for wrong in ["", "AAAA", &wrapped[2..], &wrapped.to_lowercase(), "not base64!"] {
            assert_eq!(unwrap(&vault, parts, wrong), None, "{wrong}");
        }
        assert_eq!(unwrap(&Vault::new(&[8; KEY_BYTES]), parts, &wrapped), None);
        let both = Vault::reading(&[[8; KEY_BYTES], [7; KEY_BYTES]], || panic!("a false text reads no file"));
        assert!(unwrap(&both, parts, &wrapped).is_some(), "another node may use the old key");
        assert_eq!(unwrap(&both, parts, "AAAA"), None);
        let stored = sealed(&[7; KEY_BYTES], ONE);
        let stored = BASE64URL_NOPAD.encode(&stored);
        assert_eq!(unwrap(&vault, &[ONE_BYTES], &stored), None, "a stored secret is not a form");
    }

    /// Every purpose. A new one doesn't compile until it is here.
    fn purposes() -> impl Iterator<Item = Purpose> {
        let next = |purpose: &Purpose| match purpose {
            Purpose::Flash => Some(Purpose::Browser),
            Purpose::Browser => Some(Purpose::Form),
            Purpose::Form => Some(Purpose::FirstStep),
            Purpose::FirstStep => Some(Purpose::Passkey),
            Purpose::Passkey => Some(Purpose::NewPasskey),
            Purpose::NewPasskey => Some(Purpose::Sso),
            Purpose::Sso => None,
        };
        std::iter::successors(Some(Purpose::Flash), next)
    }

    #[test]
    fn what_was_made_for_one_purpose_is_refused_for_every_other() {
        let vault = Vault::new(&[7; KEY_BYTES]);
        let parts: &[&[u8]] = &[b"ab", b"c"];
        for made in purposes() {
            let signature = vault.sign(made, parts).unwrap();
            let wrapped = vault.wrap(made, parts, "name=Ana", [3; NONCE_LEN]).unwrap();
            for asked in purposes() {
                let expected = made == asked;
                assert_eq!(vault.has_signed(asked, parts, &signature), expected, "{made:?} as {asked:?}");
                let unwrapped = vault.unwrap(asked, parts, &wrapped);
                assert_eq!(unwrapped.is_some(), expected, "{made:?} as {asked:?}");
            }
        }
        assert!(purposes().count() > 2);
    }

    #[test]
    fn a_fingerprint_is_part_of_a_hash() {
        assert_eq!(fingerprint(&[0; KEY_BYTES]), "2a3c03f22c07c852");
        assert_ne!(fingerprint(&[0; KEY_BYTES]), fingerprint(&[1; KEY_BYTES]));
    }

    #[test]
    fn an_unknown_key_is_read_again_and_a_known_one_is_kept() {
        let kept = Arc::new(Mutex::new(vec![[1; KEY_BYTES]]));
        let source = Arc::clone(&kept);
        let vault = Vault::reading(&[[1; KEY_BYTES]], move || Ok(source.lock().clone()));
        let (old, new) = (sealed(&[1; KEY_BYTES], ONE), sealed(&[2; KEY_BYTES], ONE));
        let second = fingerprint(&[2; KEY_BYTES]);
        assert_eq!(vault.open(ONE, &new), Err(CannotOpen));
        assert_eq!(vault.seal(&second, ONE, "x", [0; NONCE_LEN]), Err(UnknownKey(second.clone())));
        *kept.lock() = vec![[2; KEY_BYTES]];
        assert_eq!(vault.opened(ONE, &new), Ok(("whs_secret".to_owned(), second.clone())));
        assert!(vault.seal(&second, ONE, "x", [0; NONCE_LEN]).is_ok());
        assert!(vault.open(ONE, &old).is_ok(), "a job may still hold what it read before");
    }
}
