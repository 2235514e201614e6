//! Versions of representations (RFC 9110, section 8.8.3), and the headers that name them.
//!
//! A version is a hash of the representation itself, so it changes exactly when something that is shown changes, and no
//! column has to be kept in step with it.

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};

use crate::edge::problem::Problem;

/// How many versions a header may name.
const MAX_TAGS: usize = 100;

/// A strong entity tag, with its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etag(String);

impl Etag {
    pub fn of(body: &[u8]) -> Self {
        let hash = digest(&SHA256, body);
        // Half of the hash is enough to tell versions apart.
        let half = hash.as_ref().first_chunk::<16>().map_or(0, |half| u128::from_be_bytes(*half));
        Self(format!("\"{half:032x}\""))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to_header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

/// The versions that `If-Match` or `If-None-Match` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// `*`: whatever there is.
    Any,
    These(Vec<Tag>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    is_weak: bool,
    /// With its quotes.
    text: String,
}

impl Tags {
    /// The value of the header, if it was sent.
    pub fn of(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, Problem> {
        let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
        if lines.is_empty() {
            return Ok(None);
        }
        let malformed = || {
            let detail = format!("{name} must be * or a list of versions in quotes, as ETag has them");
            Problem::bad_request("bad_precondition", detail)
        };
        let lines: Result<Vec<&str>, _> = lines.into_iter().map(HeaderValue::to_str).collect();
        let text = lines.map_err(|_| malformed())?.join(",");
        Self::parse(&text).map(Some).ok_or_else(malformed)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        if rest == "*" {
            return Some(Self::Any);
        }
        let mut tags = Vec::new();
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return (!tags.is_empty()).then_some(Self::These(tags));
            }
            let (is_weak, quoted) = rest.strip_prefix("W/").map_or((false, rest), |quoted| (true, quoted));
            let inner = quoted.strip_prefix('"')?;
            let end = inner.find('"')?;
            if inner[..end].contains(|character: char| character.is_ascii_control() || character == ' ') {
                return None;
            }
            tags.push(Tag { is_weak, text: quoted[..end + 2].to_owned() });
            rest = &inner[end + 1..];
            let is_separated = rest.is_empty() || rest.starts_with([' ', '\t', ',']);
            if !is_separated || tags.len() > MAX_TAGS {
                return None;
            }
        }
    }

    /// For `If-Match`: a weak tag matches nothing.
    pub fn match_strongly(&self, current: &Etag) -> bool {
        match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(|tag| !tag.is_weak && tag.text == current.0),
        }
    }

    /// For `If-None-Match`.
    pub fn match_weakly(&self, current: &Etag) -> bool {
        match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(|tag| tag.text == current.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::IF_MATCH;

    use super::*;

    #[test]
    fn a_version_is_a_short_hash_in_quotes() {
        let one = Etag::of(b"{}");
        assert_eq!(one.as_str(), "\"44136fa355b3678a1146ad16f7e8649e\"");
        assert_eq!(one.to_header(), one.as_str());
        assert_ne!(one, Etag::of(b"{ }"));
    }

    #[test]
    fn a_header_names_versions_or_any() {
        let current = Etag("\"a\"".to_owned());
        // What is sent, and whether it matches strongly and weakly.
        let table = [
            ("*", Some((true, true))),
            (" * ", Some((true, true))),
            ("\"a\"", Some((true, true))),
            ("W/\"a\"", Some((false, true))),
            ("\"b\"", Some((false, false))),
            ("\"b\", \"a\"", Some((true, true))),
            ("\"b\",W/\"a\"", Some((false, true))),
            (",\"a\",,", Some((true, true))),
            ("\"a,b\"", Some((false, false))),
            ("\"\"", Some((false, false))),
            ("", None),
            (",", None),
            ("a", None),
            ("\"a", None),
            ("w/\"a\"", None),
            ("\"a\"\"b\"", None),
            ("\"a b\"", None),
            ("*, \"a\"", None),
        ];
        for (sent, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, HeaderValue::from_static(sent));
            let found = Tags::of(&headers, &IF_MATCH).ok().flatten();
            let found = found.map(|tags| (tags.match_strongly(&current), tags.match_weakly(&current)));
            assert_eq!(found, expected, "{sent}");
        }
        assert_eq!(Tags::of(&HeaderMap::new(), &IF_MATCH).unwrap(), None);
        let mut twice = HeaderMap::new();
        twice.append(IF_MATCH, HeaderValue::from_static("\"b\""));
        twice.append(IF_MATCH, HeaderValue::from_static("\"a\""));
        assert!(Tags::of(&twice, &IF_MATCH).unwrap().unwrap().match_strongly(&current));
        twice.append(IF_MATCH, HeaderValue::from_bytes(b"\"\xff\"").unwrap());
        assert_eq!(Tags::of(&twice, &IF_MATCH).unwrap_err().code(), "bad_precondition");
    }
}
