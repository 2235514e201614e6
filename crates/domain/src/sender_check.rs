//! Whether the sender that a mail names wrote it. Anyone can write any `From`. A mail relay checks DKIM, SPF and
//! DMARC and reports the results in `Authentication-Results` (RFC 8601); a relay that the operator trusts is believed.

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::member::Email;
use crate::schema::words;

/// As long as a host name, which it usually is.
const MAX_RELAY_BYTES: usize = 253;

/// A mail relay whose results are believed, by the name it signs them with (its authserv-id), in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the name at the start of your relay's Authentication-Results, such as mx.acme.test")]
pub struct BadRelay;

impl FromStr for Relay {
    type Err = BadRelay;

    fn from_str(text: &str) -> Result<Self, BadRelay> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let is_relay = (1..=MAX_RELAY_BYTES).contains(&text.len()) && text.bytes().all(is_name);
        if is_relay { Ok(Self(text.to_ascii_lowercase())) } else { Err(BadRelay) }
    }
}

impl Relay {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks a mail's sender by its `Authentication-Results`, topmost first. Only the relay's topmost header counts:
    /// it wrote that one last, and any below may have come with the mail.
    pub fn check(&self, headers: &[String], sender: &Email) -> SenderCheck {
        let domain = sender.as_str().rsplit('@').next().unwrap_or_default();
        let results =
            headers.iter().map(|header| Results::parse(header)).find(|results| results.by == self.0);
        let method = results.and_then(|results| results.proof_of(domain));
        SenderCheck { relay: self.0.clone(), method }
    }
}

/// How a sender was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Dmarc,
    Dkim,
    Spf,
}

impl Method {
    /// The strongest first.
    pub const ALL: [Self; 3] = [Self::Dmarc, Self::Dkim, Self::Spf];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dmarc => "dmarc",
            Self::Dkim => "dkim",
            Self::Spf => "spf",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == text)
    }

    /// The properties of a result that name the domain it is about, the preferred one first.
    const fn domains(self) -> &'static [&'static str] {
        match self {
            Self::Dmarc => &["header.from"],
            Self::Dkim => &["header.d", "header.i"],
            Self::Spf => &["smtp.mailfrom"],
        }
    }
}

words!(Method, "SenderCheckMethod", "How the relay verified the sender.");

impl Serialize for Method {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a trusted relay says about the sender of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SenderCheck {
    /// The relay that was trusted when the mail came.
    #[schema(example = "mx.acme.example")]
    pub relay: String,
    /// The check that the sender passed. Null if the sender isn't verified.
    #[schema(required = true)]
    pub method: Option<Method>,
}

impl SenderCheck {
    pub const fn is_verified(&self) -> bool {
        self.method.is_some()
    }
}

impl std::fmt::Display for SenderCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.method {
            Some(method) => {
                write!(f, "Verified by {} from {}", method.as_str().to_ascii_uppercase(), self.relay)
            }
            None => f.write_str("Sender not verified"),
        }
    }
}

/// A parsed header.
struct Results {
    by: String,
    /// Each result with its properties, all in lower case: `dkim=pass`, `header.d=acme.test`.
    each: Vec<Vec<(String, String)>>,
}

impl Results {
    fn parse(header: &str) -> Self {
        let mut sections = sections(header).into_iter();
        let by = sections.next().and_then(|words| words.into_iter().next()).unwrap_or_default();
        Self { by, each: sections.map(|words| pairs(&words)).collect() }
    }

    /// The strongest method that proves that a mail came from this domain.
    fn proof_of(&self, domain: &str) -> Option<Method> {
        let proves = |method: Method, pairs: &[(String, String)]| {
            let value =
                |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
            // The first pair is the method and its result, such as `dkim=pass` or `dkim/1=pass`.
            let has_passed = pairs.first().is_some_and(|(key, result)| {
                key.split('/').next() == Some(method.as_str()) && result == "pass"
            });
            let about = method.domains().iter().find_map(|name| value(name));
            has_passed && about.is_some_and(|about| speaks_for(about, domain))
        };
        Method::ALL.into_iter().find(|method| self.each.iter().any(|pairs| proves(*method, pairs)))
    }
}

/// Whether a result about this address or domain also holds for `domain`: the same or a parent domain, whose owner
/// decides about its subdomains. The other way round it doesn't hold: a subdomain may be someone else's.
fn speaks_for(about: &str, domain: &str) -> bool {
    let about = about.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    let is_parent =
        || about.contains('.') && domain.strip_suffix(about).is_some_and(|rest| rest.ends_with('.'));
    !about.is_empty() && (domain == about || is_parent())
}

/// The words of a header in lower case, by section: sections end with `;`, comments are left out, and `=` is a word
/// unless it is quoted.
fn sections(header: &str) -> Vec<Vec<String>> {
    let mut sections: Vec<Vec<String>> = vec![Vec::new()];
    let (mut word, mut depth, mut is_quoted) = (String::new(), 0_usize, false);
    let mut chars = header.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' if depth > 0 || is_quoted => {
                let escaped = chars.next().filter(|_| depth == 0);
                word.extend(escaped);
            }
            '"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => word.push(char),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ';' => {
                end(&mut word, &mut sections);
                sections.push(Vec::new());
            }
            '=' => {
                end(&mut word, &mut sections);
                word.push('=');
                end(&mut word, &mut sections);
            }
            _ if char.is_whitespace() => end(&mut word, &mut sections),
            _ => word.push(char),
        }
    }
    end(&mut word, &mut sections);
    sections
}

/// Adds a word to the last section, unless it is empty.
fn end(word: &mut String, sections: &mut [Vec<String>]) {
    if let Some(last) = sections.last_mut().filter(|_| !word.is_empty()) {
        last.push(std::mem::take(word).to_ascii_lowercase());
    }
}

/// The `name = value` pairs among the words.
fn pairs(words: &[String]) -> Vec<(String, String)> {
    let (mut pairs, mut rest) = (Vec::new(), words);
    while let [name, is, value, ..] = rest {
        let is_pair = name != "=" && is == "=" && value != "=";
        if is_pair {
            pairs.push((name.clone(), value.clone()));
        }
        // A value is never the name of another pair.
        rest = &rest[if is_pair { 3 } else { 1 }..];
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &[&str], sender: &str) -> Option<Method> {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let relay: Relay = "MX.acme.test".parse().unwrap();
        relay.check(&headers, &Email::parse(sender).unwrap()).method
    }

    #[test]
    fn a_sender_is_verified_by_results_about_their_domain() {
        let table = [
            ("mx.acme.test; dkim=pass header.d=nordlys.test", Some(Method::Dkim)),
            ("mx.acme.test; dkim=pass header.i=@nordlys.test header.s=s1 header.b=x", Some(Method::Dkim)),
            ("MX.Acme.Test 1; DKIM = Pass header.d = Nordlys.TEST", Some(Method::Dkim)),
            (
                "mx.acme.test; dkim/1=pass (good; spf=fail) reason=\"a; b\" header.d=nordlys.test",
                Some(Method::Dkim),
            ),
            ("mx.acme.test; spf=pass smtp.mailfrom=bounce@nordlys.test", Some(Method::Spf)),
            ("mx.acme.test; spf=pass smtp.mailfrom=nordlys.test.", Some(Method::Spf)),
            ("mx.acme.test; spf=pass smtp.mailfrom=\"a b\"@nordlys.test", Some(Method::Spf)),
            ("mx.acme.test; dmarc=pass (p=none) header.from=nordlys.test", Some(Method::Dmarc)),
            (
                "mx.acme.test; spf=fail smtp.mailfrom=x.test;\r\n\tdkim=pass header.d=nordlys.test",
                Some(Method::Dkim),
            ),
            (
                "mx.acme.test; dkim=fail header.d=nordlys.test; dkim=pass header.d=nordlys.test",
                Some(Method::Dkim),
            ),
            (
                "mx.acme.test; spf=pass smtp.mailfrom=nordlys.test; dkim=pass header.d=nordlys.test",
                Some(Method::Dkim),
            ),
            ("mx.acme.test; none", None),
            ("mx.acme.test", None),
            ("", None),
            ("mx.acme.test; dkim=fail header.d=nordlys.test", None),
            ("mx.acme.test; dkim=pass header.d=evil.test", None),
            ("mx.acme.test; dkim=pass header.d=evil.test header.i=@nordlys.test", None),
            ("mx.acme.test; dkim=pass", None),
            ("mx.acme.test; dkim=pass header.d=", None),
            ("mx.acme.test; dkim=pass header.d=test", None),
            ("mx.acme.test; dkim=pass header.d=dlys.test", None),
            ("mx.acme.test; dkim=pass header.d=sub.nordlys.test", None),
            ("mx.acme.test; spf=pass smtp.helo=nordlys.test", None),
            ("mx.acme.test; spf=pass smtp.mailfrom=ana@nordlys.test@evil.test", None),
            ("mx.acme.test; spf=softfail smtp.mailfrom=nordlys.test", None),
            ("mx.acme.test; dkim=pass header.i=header.d=nordlys.test", None),
            ("mx.acme.test; arc=pass header.d=nordlys.test", None),
            ("mx.acme.test; dkim=pass header.d=evil.test (header.d=nordlys.test)", None),
            ("mx.acme.test; x=y dkim=pass header.d=nordlys.test", None),
            ("mx.acme.test; spf=fail reason=\"; dkim=pass header.d=nordlys.test\"", None),
            ("mx.acme.test.evil.test; dkim=pass header.d=nordlys.test", None),
            ("evil.test; dkim=pass header.d=nordlys.test", None),
            ("(mx.acme.test) evil.test; dkim=pass header.d=nordlys.test", None),
        ];
        for (header, expected) in table {
            assert_eq!(checked(&[header], "ana@nordlys.test"), expected, "{header}");
        }
        assert_eq!(checked(&["mx.acme.test; dkim=pass header.d=nordlys.test"], "a@mail.nordlys.test"), {
            Some(Method::Dkim)
        });
    }

    #[test]
    fn only_the_topmost_header_of_the_relay_counts() {
        let (pass, fail) = ("mx.acme.test; dkim=pass header.d=nordlys.test", "mx.acme.test; dkim=none");
        let other = "mx.elsewhere.test; dkim=fail header.d=nordlys.test";
        assert_eq!(checked(&[fail, pass], "ana@nordlys.test"), None, "the second came with the mail");
        assert_eq!(checked(&[pass, fail], "ana@nordlys.test"), Some(Method::Dkim));
        assert_eq!(checked(&[other, pass], "ana@nordlys.test"), Some(Method::Dkim), "others are passed over");
        assert_eq!(checked(&[], "ana@nordlys.test"), None);
    }

    #[test]
    fn a_relay_has_a_plain_name() {
        for name in ["mx.acme.test", "mx-1", "MX_2.acme.test"] {
            assert!(name.parse::<Relay>().is_ok(), "{name}");
        }
        for name in ["", "a b", "a;b", "mx.acme.test;", "ä.test", &"x".repeat(254)] {
            assert_eq!(name.parse::<Relay>(), Err(BadRelay), "{name}");
        }
    }

    #[test]
    fn a_check_says_why_in_words() {
        let check = |method| SenderCheck { relay: "mx.acme.test".to_owned(), method }.to_string();
        assert_eq!(check(Some(Method::Dkim)), "Verified by DKIM from mx.acme.test");
        assert_eq!(check(None), "Sender not verified");
    }
}
