//! Whether a request is signed with one of the secrets. Both signatures of a delivery are checked, if both are there.

use std::fmt;

use hyper::HeaderMap;
use rapport_app::signature::{Claim, Finding, Report, explain};
use rapport_domain::signature::Scheme;
use rapport_domain::standard_webhook::{ID_HEADER, TIMESTAMP_HEADER};
use rapport_domain::time::Time;

/// The result of checking a request's signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A report for each signature that the request has.
    Checked(Vec<Report>),
    /// The request has no signature.
    Unsigned,
    /// No secret was given to check it with.
    Unchecked,
}

impl Verdict {
    /// Recomputes the signatures over the raw body, and compares them in constant time.
    pub fn of(secrets: &[String], headers: &HeaderMap, body: &[u8], now: Time) -> Self {
        if secrets.is_empty() {
            return Self::Unchecked;
        }
        let header = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap_or_default());
        let body = String::from_utf8_lossy(body);
        let present =
            [Scheme::Service, Scheme::Standard].into_iter().filter(|it| headers.contains_key(it.header()));
        let reports: Vec<Report> = present
            .map(|scheme| {
                let [signature, id, timestamp] = [scheme.header(), ID_HEADER, TIMESTAMP_HEADER].map(&header);
                let finding = match Claim::parse(scheme, signature, id, timestamp) {
                    Ok(claim) => finding(secrets, &claim, &body, now),
                    Err(malformed) => Finding::Malformed(malformed),
                };
                Report { scheme, finding }
            })
            .collect();
        if reports.is_empty() { Self::Unsigned } else { Self::Checked(reports) }
    }

    pub fn is_refused(&self) -> bool {
        match self {
            Self::Checked(reports) => !reports.iter().all(Report::is_valid),
            Self::Unsigned => true,
            Self::Unchecked => false,
        }
    }
}

/// What the secret that explains most says about a signature.
fn finding(secrets: &[String], claim: &Claim, body: &str, now: Time) -> Finding {
    let found: Vec<Finding> =
        secrets.iter().filter_map(|secret| explain(claim, secret, body, None, now)).collect();
    if found.contains(&Finding::Genuine) {
        return Finding::Genuine;
    }
    found.into_iter().next().unwrap_or(Finding::Unclear)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reports = match self {
            Self::Checked(reports) => reports,
            Self::Unsigned => return f.write_str("  SIGNATURE MISSING (answered 401)"),
            Self::Unchecked => return f.write_str("  signature not checked (no --secret)"),
        };
        for (number, report) in reports.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            let header = report.scheme.header();
            let (title, text) = report.words();
            if report.is_valid() {
                write!(f, "  signature verified: {header}")?;
            } else {
                write!(f, "  SIGNATURE WRONG (answered 401): {header}: {title}. {text}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_app::signature::{Change, Mistake, SigningKey};
    use rapport_domain::id::EventId;
    use rapport_domain::standard_webhook::{Age, library_secret};

    const SECRET: &str = "whs_secret";
    const EVENT: EventId = EventId::from_bytes([1; 16]);
    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn body() -> String {
        format!(r#"{{"id":"{EVENT}","n":1}}"#)
    }

    /// The headers of an attempt that began this many seconds ago.
    fn headers(seconds_ago: i64) -> HeaderMap {
        let (key, timestamp) = (SigningKey::new(SECRET), NOW.unix_seconds() - seconds_ago);
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: String| headers.insert(name, value.parse().unwrap());
        add("x-service-signature", key.sign(body().as_bytes()).to_string());
        add("webhook-id", EVENT.to_string());
        add("webhook-timestamp", timestamp.to_string());
        add("webhook-signature", key.sign_standard(EVENT, timestamp, body().as_bytes()).to_string());
        headers
    }

    fn without(mut headers: HeaderMap, name: &str) -> HeaderMap {
        headers.remove(name);
        headers
    }

    #[test]
    fn both_signatures_are_checked_over_the_raw_body() {
        use Finding::{BodyChanged, Genuine, Unclear, Untimely, WrongSecret};
        let (body, spaced) = (body(), body().replace(':', ": "));
        let (only_service, only_standard) =
            (without(headers(0), "webhook-signature"), without(headers(0), "x-service-signature"));
        let library = library_secret(SECRET);
        let both = [Some(Genuine), Some(Genuine)];
        let table: [(&str, HeaderMap, &str, [Option<Finding>; 2]); 10] = [
            (SECRET, headers(0), &body, both.clone()),
            (SECRET, headers(299), &body, both),
            (SECRET, only_service, &body, [Some(Genuine), None]),
            (SECRET, only_standard.clone(), &body, [None, Some(Genuine)]),
            (&library, only_standard, &body, [None, Some(Genuine)]),
            (&library, headers(0), &body, [Some(WrongSecret(Mistake::LibraryForm)), Some(Genuine)]),
            (SECRET, headers(600), &body, [Some(Genuine), Some(Untimely(Age::Old(600)))]),
            (SECRET, headers(-600), &body, [Some(Genuine), Some(Untimely(Age::Ahead(600)))]),
            ("whs_other", headers(0), &body, [Some(Unclear), Some(Unclear)]),
            (
                SECRET,
                headers(0),
                &spaced,
                [Some(BodyChanged(Change::Layout)), Some(BodyChanged(Change::Layout))],
            ),
        ];
        for (secret, headers, body, expected) in table {
            let schemes = [Scheme::Service, Scheme::Standard];
            let reports = schemes.into_iter().zip(expected);
            let reports =
                reports.filter_map(|(scheme, it)| it.map(|finding| Report { scheme, finding })).collect();
            let found = Verdict::of(&[secret.to_owned()], &headers, body.as_bytes(), NOW);
            assert_eq!(found, Verdict::Checked(reports), "{secret} {headers:?} {body}");
        }
    }

    #[test]
    fn a_request_is_refused_unless_every_signature_it_has_is_right() {
        let secret = [SECRET.to_owned()];
        let of = |secrets: &[String], headers: &HeaderMap| {
            Verdict::of(secrets, headers, body().as_bytes(), NOW).is_refused()
        };
        assert!(!of(&secret, &headers(0)));
        assert!(!of(&["whs_other".to_owned(), SECRET.to_owned()], &headers(0)));
        assert!(of(&["whs_other".to_owned()], &headers(0)));
        assert!(of(&secret, &headers(600)), "X-Service-Signature alone is right");
        assert!(of(&secret, &without(headers(0), "webhook-timestamp")));
        assert!(of(&secret, &without(headers(0), "webhook-id")));
        assert!(of(&secret, &HeaderMap::new()), "an unsigned request");
        assert!(!of(&[], &HeaderMap::new()), "nothing to check with");
    }

    #[test]
    fn it_says_which_signature_was_checked_and_what_is_wrong() {
        let of = |seconds_ago| {
            Verdict::of(&[SECRET.to_owned()], &headers(seconds_ago), body().as_bytes(), NOW).to_string()
        };
        assert_eq!(
            of(0),
            "  signature verified: X-Service-Signature\n  signature verified: webhook-signature"
        );
        let old = of(3_600);
        assert!(old.contains("WRONG (answered 401): webhook-signature: Old timestamp."), "{old}");
        assert!(old.contains("60 minutes old"), "{old}");
    }
}
