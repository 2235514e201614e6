//! Tickets: what we hand to a browser for a few minutes and want back unchanged. A ticket is signed for its purpose and
//! says when it expires, so any node can read what another one issued, and nothing is stored for strangers.

use data_encoding::BASE64URL_NOPAD;
use rapport_domain::credential::SecretHash;
use rapport_domain::time::Time;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Services;
use crate::error::Error;
use crate::vault::Purpose;

/// A ticket that came back.
pub(crate) struct Opened<T> {
    pub content: T,
    pub expires_at: Time,
    /// Names the ticket, so that it can be used up.
    pub hash: SecretHash,
}

/// Writes a ticket. Opening it takes what it is bound to.
pub(crate) fn issue(
    services: &Services,
    purpose: Purpose,
    bound_to: &[u8],
    seconds: i64,
    content: &impl Serialize,
) -> Result<String, Error> {
    let failed = |error: String| Error::Internal(format!("failed to write a ticket: {error}"));
    let content = serde_json::to_vec(content).map_err(|error| failed(error.to_string()))?;
    let content = BASE64URL_NOPAD.encode(&content);
    let expires_at = services.now().plus_seconds(seconds).as_micros().to_string();
    let signed = services.vault().sign(purpose, &[expires_at.as_bytes(), content.as_bytes(), bound_to]);
    let signature = signed.ok_or_else(|| failed("there is no key".to_owned()))?;
    Ok(format!("{expires_at}.{content}.{signature}"))
}

/// Reads a ticket; `None` if it has expired, or isn't one of ours for this purpose.
pub(crate) fn open<T: DeserializeOwned>(
    services: &Services,
    purpose: Purpose,
    bound_to: &[u8],
    text: &str,
) -> Option<Opened<T>> {
    let mut parts = text.split('.');
    let (expires_at, content, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let signed = [expires_at.as_bytes(), content.as_bytes(), bound_to];
    if parts.next().is_some() || !services.vault().has_signed(purpose, &signed, signature) {
        return None;
    }
    let expires_at = Time::from_micros(expires_at.parse().ok()?);
    if services.now() >= expires_at {
        return None;
    }
    let bytes = BASE64URL_NOPAD.decode(content.as_bytes()).ok()?;
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, content.as_bytes()).as_ref());
    let content = serde_json::from_slice(&bytes).ok()?;
    Some(Opened { content, expires_at, hash: SecretHash::from_bytes(hash) })
}
