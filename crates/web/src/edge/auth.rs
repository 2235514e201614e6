//! Reads a caller's credential: finds the header that carries it and checks that it is well-formed.
//!
//! The use case decides in its own transaction whether the credential is live. A malformed one is refused
//! here, without a database query.

use axum::http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use rapport_app::Origin;
use rapport_domain::credential::{self, Kind, Presented};

const INGEST_KEY: HeaderName = HeaderName::from_static("x-service-ingest-key");
const INGEST_PATH: &str = "/api/pulse/ingest/";
const INBOUND_KEY: HeaderName = HeaderName::from_static("x-service-inbound-key");
const INBOUND_PATH: &str = "/api/inbound/email/";

/// Paths that need no credential. Their rate limit is far lower than the others.
pub const OPEN_PATHS: [&str; 3] =
    ["/api/invitations/accept/", "/api/password-reset/", "/api/password-reset/confirm/"];

/// How a caller authenticates on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer <token>`, or `Token <token>`.
    Token,
    /// `X-Service-Ingest-Key: <key>`.
    IngestKey,
    /// `X-Service-Inbound-Key: <key>`.
    InboundKey,
}

impl Scheme {
    pub fn of_path(path: &str) -> Self {
        match path {
            INGEST_PATH => Self::IngestKey,
            INBOUND_PATH => Self::InboundKey,
            _ => Self::Token,
        }
    }

    /// Whether a request carries a credential, valid or not.
    pub fn is_sent(self, headers: &HeaderMap) -> bool {
        headers.contains_key(match self {
            Self::Token => AUTHORIZATION,
            Self::IngestKey => INGEST_KEY,
            Self::InboundKey => INBOUND_KEY,
        })
    }

    /// The value of `WWW-Authenticate`.
    pub const fn challenge(self) -> &'static str {
        match self {
            Self::Token => r#"Bearer realm="rapport""#,
            Self::IngestKey => r#"X-Service-Ingest-Key realm="rapport""#,
            Self::InboundKey => r#"X-Service-Inbound-Key realm="rapport""#,
        }
    }

    pub const fn advice(self) -> &'static str {
        match self {
            Self::Token => "send a valid API token as Authorization: Bearer <token>",
            Self::IngestKey => "send the company's ingest key as X-Service-Ingest-Key: <key>",
            Self::InboundKey => "send the company's inbound key as X-Service-Inbound-Key: <key>",
        }
    }
}

/// The credential of a request, parsed but not yet verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential {
    pub scheme: Scheme,
    /// `None` if it is missing or malformed.
    pub presented: Option<Presented>,
}

impl Credential {
    pub fn of(scheme: Scheme, headers: &HeaderMap) -> Self {
        let presented = match scheme {
            Scheme::Token => only(headers, &AUTHORIZATION)
                .and_then(token)
                .and_then(|token| credential::read(Kind::ApiToken, token).ok()),
            Scheme::IngestKey => {
                only(headers, &INGEST_KEY).and_then(|key| credential::read(Kind::IngestKey, key.trim()).ok())
            }
            Scheme::InboundKey => only(headers, &INBOUND_KEY)
                .and_then(|key| credential::read(Kind::InboundKey, key.trim()).ok()),
        };
        Self { scheme, presented }
    }
}

/// What is known about a caller when the request arrives.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub credential: Credential,
    pub origin: Origin,
    /// The credential was valid when it was last used.
    pub known: bool,
}

/// The header's value, or `None` if it is sent twice, since it would be unclear which one counts.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn token(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let known = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    known.then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use rapport_domain::credential::issue;
    use rapport_domain::id::CompanyId;

    fn read(scheme: Scheme, values: &[(&'static str, &str)]) -> Option<Presented> {
        let mut map = HeaderMap::new();
        for (name, value) in values {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        Credential::of(scheme, &map).presented
    }

    #[test]
    fn a_token_comes_as_bearer_or_token_in_any_case() {
        let issued = issue(Kind::ApiToken, CompanyId(3), [7; 20]);
        for scheme in ["Bearer", "bearer", "BEARER", "Token", "token"] {
            let value = format!("{scheme} {}", issued.text);
            let presented = read(Scheme::Token, &[("authorization", &value)]).unwrap();
            assert_eq!((presented.company, presented.hash), (CompanyId(3), issued.hash));
        }
        let spaced = format!("Bearer   {} ", issued.text);
        assert!(read(Scheme::Token, &[("authorization", &spaced)]).is_some());
    }

    #[test]
    fn a_malformed_credential_is_ignored() {
        let token = issue(Kind::ApiToken, CompanyId(3), [7; 20]).text;
        let key = issue(Kind::IngestKey, CompanyId(3), [7; 20]).text;
        let good = format!("Bearer {token}");
        let wrong = [
            String::new(),
            token.clone(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            format!("Basic {token}"),
            format!("Bearer {key}"),
            format!("Bearer {}", &token[..token.len() - 1]),
            format!("Bearer {token}x"),
            format!("Bearer {}", token.to_uppercase()),
        ];
        for value in &wrong {
            assert_eq!(read(Scheme::Token, &[("authorization", value)]), None, "{value}");
        }
        assert_eq!(read(Scheme::Token, &[]), None);
        assert_eq!(read(Scheme::Token, &[("authorization", &good), ("authorization", &good)]), None);
        assert_eq!(read(Scheme::Token, &[("x-service-ingest-key", &key)]), None);
        assert_eq!(read(Scheme::IngestKey, &[("x-service-ingest-key", &token)]), None);
        assert_eq!(read(Scheme::IngestKey, &[("authorization", &good)]), None);
        assert!(read(Scheme::IngestKey, &[("x-service-ingest-key", &key)]).is_some());
    }

    #[test]
    fn only_their_own_paths_ask_for_the_keys() {
        assert_eq!(Scheme::of_path("/api/pulse/ingest/"), Scheme::IngestKey);
        assert_eq!(Scheme::of_path("/api/inbound/email/"), Scheme::InboundKey);
        for path in
            ["/api/accounts/upsert-by-imported-id/", "/api/pulse/", "/api/settings/ingest-key/rotate/"]
        {
            assert_eq!(Scheme::of_path(path), Scheme::Token, "{path}");
        }
    }
}
