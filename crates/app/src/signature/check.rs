//! Says whether a request was signed with a secret, and if it wasn't, why.

use rapport_domain::id::{EventId, WebhookId};
use rapport_domain::json_layout;
use rapport_domain::signature::{self, Scheme, Signature};
use rapport_domain::standard_webhook::{self, Age};
use rapport_domain::time::Time;
use rapport_domain::webhook::Webhook;
use rapport_store::{Error, Snapshot, event, webhook};
use ring::hmac;
use serde_json::Value;

use super::{kept_secret, key, sign_standard};
use crate::context::Services;

/// How many other webhooks' secrets are tried.
const MAX_OTHERS: usize = 100;
const SECRET_PREFIX: &str = "whs_";

/// What a receiver got, and the secret it uses.
pub struct Check {
    /// The value of `X-Service-Signature` or `webhook-signature`.
    pub signature: String,
    /// The value of `webhook-id`. If it is empty, the body's id is meant.
    pub id: String,
    /// The value of `webhook-timestamp`.
    pub timestamp: String,
    pub body: String,
    pub secret: Secret,
}

pub enum Secret {
    Typed(String),
    /// The secret stored for this webhook; it isn't shown to anyone.
    Kept(WebhookId),
}

/// A signature that a receiver got, with what it covers besides the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Service(Signature),
    Standard { signatures: Vec<standard_webhook::Signature>, id: String, timestamp: i64 },
}

/// Why headers hold no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    Service(signature::Malformed),
    Standard(standard_webhook::Malformed),
}

/// Which signature was checked, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub scheme: Scheme,
    pub finding: Finding,
}

/// The diagnosis of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    Genuine,
    /// The signature is right, but its timestamp is too far from the clock: a receiver takes it for a replay.
    Untimely(Age),
    Malformed(Malformed),
    /// The secret is right, but a different body was signed.
    BodyChanged(Change),
    /// The secret is right, but the body's own id was signed, not this one.
    IdChanged,
    WrongSecret(Mistake),
    /// The webhook is gone, or its secret was sealed under another key.
    NoSecret,
    /// Either the secret or something that was signed differs.
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
    /// It has the form for libraries, which don't know `X-Service-Signature`.
    LibraryForm,
    /// The signature belongs to this other webhook.
    Other(Box<Webhook>),
    /// The body is as it was sent.
    Unknown,
}

impl Claim {
    /// Parses headers as they arrived.
    pub fn parse(scheme: Scheme, signature: &str, id: &str, timestamp: &str) -> Result<Self, Malformed> {
        match scheme {
            Scheme::Service => Signature::parse(signature).map(Self::Service).map_err(Malformed::Service),
            Scheme::Standard => Self::parse_standard(signature, id, timestamp).map_err(Malformed::Standard),
        }
    }

    fn parse_standard(
        signature: &str,
        id: &str,
        timestamp: &str,
    ) -> Result<Self, standard_webhook::Malformed> {
        let signatures = standard_webhook::parse_signatures(signature)?;
        let id = standard_webhook::parse_id(id)?.to_owned();
        let timestamp = standard_webhook::parse_timestamp(timestamp)?;
        Ok(Self::Standard { signatures, id, timestamp })
    }

    /// Whether this body was signed with this secret, as a receiver computes it.
    fn fits(&self, secret: &str, body: &str) -> bool {
        match self {
            Self::Service(_) => self.fits_key(secret.as_bytes(), body),
            Self::Standard { .. } => self.fits_key(&standard_webhook::key(secret), body),
        }
    }

    fn fits_key(&self, bytes: &[u8], body: &str) -> bool {
        let key = key(bytes);
        match self {
            Self::Service(signature) => hmac::verify(&key, body.as_bytes(), signature.as_bytes()).is_ok(),
            Self::Standard { signatures, id, timestamp } => {
                let expected = sign_standard(&key, id, *timestamp, body.as_bytes());
                signatures.iter().any(|signature| signature.matches(&expected))
            }
        }
    }

    /// The same, if the body's own id was signed. `None` if it is the one already.
    fn with_id_of(&self, body: &str) -> Option<Self> {
        let Self::Standard { signatures, id, timestamp } = self else { return None };
        let own = id_in(body).filter(|own| own != id)?;
        Some(Self::Standard { signatures: signatures.clone(), id: own, timestamp: *timestamp })
    }

    /// What a right signature is worth at this time.
    fn genuine(&self, now: Time) -> Finding {
        match self {
            Self::Service(_) => Finding::Genuine,
            Self::Standard { timestamp, .. } => match Age::of(*timestamp, now) {
                Age::Fresh => Finding::Genuine,
                age => Finding::Untimely(age),
            },
        }
    }
}

/// Diagnoses a signature. Nothing is stored.
pub fn check(
    services: &Services,
    snapshot: &mut Snapshot,
    check: &Check,
    now: Time,
) -> Result<Report, Error> {
    let Check { signature, id, timestamp, body, secret } = check;
    let scheme = Scheme::of(signature);
    let id = if id.trim().is_empty() { id_in(body).unwrap_or_default() } else { id.clone() };
    let finding = match Claim::parse(scheme, signature, &id, timestamp) {
        Ok(claim) => diagnose(services, snapshot, &claim, body, secret, now)?,
        Err(malformed) => Finding::Malformed(malformed),
    };
    Ok(Report { scheme, finding })
}

fn diagnose(
    services: &Services,
    snapshot: &mut Snapshot,
    claim: &Claim,
    body: &str,
    secret: &Secret,
    now: Time,
) -> Result<Finding, Error> {
    let secret = match secret {
        Secret::Typed(secret) => Some(secret.clone()),
        Secret::Kept(id) => kept_secret(services, snapshot, *id)?,
    };
    let Some(secret) = secret else { return Ok(Finding::NoSecret) };
    let sent = sent_for(snapshot, body)?;
    if let Some(finding) = explain(claim, &secret, body, sent.as_deref(), now) {
        return Ok(finding);
    }
    for other in webhook::list(snapshot)?.into_iter().take(MAX_OTHERS) {
        let kept = kept_secret(services, snapshot, other.id)?;
        if kept.is_some_and(|secret| is_made_with(claim, &secret, body, sent.as_deref())) {
            return Ok(Finding::WrongSecret(Mistake::Other(Box::new(other))));
        }
    }
    let is_as_sent = sent.is_some_and(|sent| sent == body);
    Ok(if is_as_sent { Finding::WrongSecret(Mistake::Unknown) } else { Finding::Unclear })
}

/// What a secret and a body tell about a signature, and the body that was sent, if it is known. `None` if they don't explain
/// it.
pub fn explain(claim: &Claim, secret: &str, body: &str, sent: Option<&str>, now: Time) -> Option<Finding> {
    if claim.fits(secret, body) {
        return Some(claim.genuine(now));
    }
    if claim.with_id_of(body).is_some_and(|claim| claim.fits(secret, body)) {
        return Some(Finding::IdChanged);
    }
    if let Some(change) = change(claim, secret, body, sent) {
        return Some(Finding::BodyChanged(change));
    }
    let is_made_with = |secret: &str| is_made_with(claim, secret, body, sent);
    let trimmed = secret.trim();
    let mistake = if is_made_with(trimmed) {
        Mistake::Blanks
    } else if is_made_with(&format!("{SECRET_PREFIX}{trimmed}")) {
        Mistake::Prefix
    } else if standard_webhook::is_library_secret(trimmed)
        && claim.fits_key(&standard_webhook::key(trimmed), body)
    {
        Mistake::LibraryForm
    } else {
        return None;
    };
    Some(Finding::WrongSecret(mistake))
}

/// Whether a secret fits the body, or what was sent in its place.
fn is_made_with(claim: &Claim, secret: &str, body: &str, sent: Option<&str>) -> bool {
    !secret.is_empty() && [Some(body), sent].into_iter().flatten().any(|body| claim.fits(secret, body))
}

/// How the body was changed, if the secret fits the original.
fn change(claim: &Claim, secret: &str, body: &str, sent: Option<&str>) -> Option<Change> {
    let ends = [body.trim().to_owned(), format!("{}\n", body.trim_end()), format!("{}\r\n", body.trim_end())];
    if ends.iter().any(|body| claim.fits(secret, body)) {
        return Some(Change::Ends);
    }
    if claim.fits(secret, &json_layout::compact(body)) {
        return Some(Change::Layout);
    }
    sent.filter(|sent| claim.fits(secret, sent)).map(|sent| {
        let is_layout = json_layout::compact(sent) == json_layout::compact(body);
        if is_layout { Change::Layout } else { Change::Content }
    })
}

/// The payload sent for the event that a body names.
fn sent_for(snapshot: &mut Snapshot, body: &str) -> Result<Option<String>, Error> {
    let Some(id) = id_in(body).and_then(|id| id.parse::<EventId>().ok()) else { return Ok(None) };
    Ok(event::get(snapshot, id)?.map(|event| event.payload).filter(|payload| !payload.is_empty()))
}

/// The top-level id of a body.
fn id_in(body: &str) -> Option<String> {
    let parsed: Value = serde_json::from_str(body).ok()?;
    parsed["id"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::SigningKey;
    use rapport_domain::standard_webhook::library_secret;

    const SECRET: &str = "whs_secret";
    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn standard(id: &str, timestamp: i64, body: &str) -> Claim {
        let signed = format!("{id}.{timestamp}.{body}");
        let tag = hmac::sign(&key(SECRET.as_bytes()), signed.as_bytes());
        let text = standard_webhook::Signature::new(super::super::bytes(tag)).to_string();
        Claim::parse(Scheme::Standard, &text, id, &timestamp.to_string()).unwrap()
    }

    #[test]
    fn the_standard_signature_covers_id_timestamp_and_body() {
        let id = EventId::from_bytes([5; 16]);
        let body = format!(r#"{{"id":"{id}"}}"#);
        let made = SigningKey::new(SECRET).sign_standard(id, NOW.unix_seconds(), body.as_bytes());
        let timestamp = NOW.unix_seconds().to_string();
        let claim = Claim::parse(Scheme::Standard, &made.to_string(), &id.to_string(), &timestamp).unwrap();
        assert_eq!(claim, standard(&id.to_string(), NOW.unix_seconds(), &body));
        assert_eq!(explain(&claim, SECRET, &body, None, NOW), Some(Finding::Genuine));
    }

    #[test]
    fn a_signature_is_explained_in_both_schemes() {
        let body = r#"{"id":"evt_1","n":1}"#;
        let spaced = r#"{"id": "evt_1", "n": 1}"#;
        let (other, cut, blank) = ("whs_other", "secret", " whs_secret");
        let library = library_secret(SECRET);
        let library = library.as_str();
        let now = NOW.unix_seconds();
        let service = Claim::Service(SigningKey::new(SECRET).sign(body.as_bytes()));
        let fresh = standard("evt_1", now, body);
        let table = [
            (&service, SECRET, body, Some(Finding::Genuine)),
            (&fresh, SECRET, body, Some(Finding::Genuine)),
            (&fresh, library, body, Some(Finding::Genuine)),
            (&service, library, body, Some(Finding::WrongSecret(Mistake::LibraryForm))),
            (&standard("evt_1", now - 301, body), SECRET, body, Some(Finding::Untimely(Age::Old(301)))),
            (&standard("evt_1", now + 400, body), library, body, Some(Finding::Untimely(Age::Ahead(400)))),
            (&service, SECRET, spaced, Some(Finding::BodyChanged(Change::Layout))),
            (&fresh, SECRET, spaced, Some(Finding::BodyChanged(Change::Layout))),
            (&fresh, library, spaced, Some(Finding::BodyChanged(Change::Layout))),
            (&fresh, blank, body, Some(Finding::WrongSecret(Mistake::Blanks))),
            (&fresh, cut, body, Some(Finding::WrongSecret(Mistake::Prefix))),
            (&service, other, body, None),
            (&fresh, other, body, None),
            (&fresh, SECRET, r#"{"id":"evt_1","n":2}"#, None),
        ];
        for (claim, secret, body, expected) in table {
            assert_eq!(explain(claim, secret, body, None, NOW), expected, "{claim:?} {secret} {body}");
        }
    }

    #[test]
    fn another_id_is_noticed() {
        let body = r#"{"id":"evt_1"}"#;
        let Claim::Standard { signatures, timestamp, .. } = standard("evt_1", NOW.unix_seconds(), body)
        else {
            panic!("a claim of the standard scheme")
        };
        let claim = Claim::Standard { signatures, id: "dlv_1".to_owned(), timestamp };
        assert_eq!(explain(&claim, SECRET, body, None, NOW), Some(Finding::IdChanged));
    }

    #[test]
    fn any_of_several_signatures_is_enough() {
        let body = r#"{"id":"evt_1"}"#;
        let old = standard_webhook::Signature::new([0; 32]);
        let Claim::Standard { signatures, id, timestamp } = standard("evt_1", NOW.unix_seconds(), body)
        else {
            panic!("a claim of the standard scheme")
        };
        let text = format!("{old} {}", signatures[0]);
        let claim = Claim::parse(Scheme::Standard, &text, &id, &timestamp.to_string()).unwrap();
        assert_eq!(explain(&claim, SECRET, body, None, NOW), Some(Finding::Genuine));
    }

    #[test]
    fn headers_that_hold_no_signature_are_refused() {
        use standard_webhook::Malformed::{Milliseconds, NoId, NoTimestamp, NoVersion, NotBase64};
        let good = standard_webhook::Signature::new([7; 32]).to_string();
        let table: [(&str, &str, &str, Malformed); 7] = [
            (&good, "evt_1", "", Malformed::Standard(NoTimestamp)),
            (&good, "evt_1", "1800000000000", Malformed::Standard(Milliseconds)),
            (&good, "", "1800000000", Malformed::Standard(NoId)),
            ("v1,AAAA", "evt_1", "1800000000", Malformed::Standard(NotBase64)),
            ("v1a,AAAA", "evt_1", "1800000000", Malformed::Standard(NoVersion)),
            ("", "", "", Malformed::Service(signature::Malformed::Empty)),
            ("nonsense", "", "", Malformed::Service(signature::Malformed::NoScheme)),
        ];
        for (signature, id, timestamp, expected) in table {
            let parsed = Claim::parse(Scheme::of(signature), signature, id, timestamp);
            assert_eq!(parsed, Err(expected), "{signature} {timestamp}");
        }
    }
}
