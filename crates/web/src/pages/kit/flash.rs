//! A message about what was just done, carried to the next page by a short-lived cookie.

use axum::http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::pages::Pages;
use crate::pages::kit::cookie::{self, Keep};

pub const NAME: &str = "flash";
/// Long enough to reach the next page.
const SECONDS: i64 = 60;
/// Browsers drop longer cookies.
const MAX_BYTES: usize = 3_500;

/// A message on the next page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flash {
    pub text: String,
    #[serde(default)]
    pub is_bad: bool,
    #[serde(default)]
    pub undo: Option<Undo>,
    #[serde(default)]
    pub link: Option<Link>,
}

/// A form that undoes what was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    pub action: String,
    pub fields: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub text: String,
    pub href: String,
}

impl Flash {
    pub fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_bad: false, undo: None, link: None }
    }

    pub fn bad(text: impl Into<String>) -> Self {
        Self { is_bad: true, ..Self::good(text) }
    }

    /// Adds an undo button.
    pub fn undo(self, action: impl Into<String>, fields: Vec<(String, String)>) -> Self {
        Self { undo: Some(Undo { action: action.into(), fields }), ..self }
    }

    pub fn link(self, text: impl Into<String>, href: impl Into<String>) -> Self {
        Self { link: Some(Link { text: text.into(), href: href.into() }), ..self }
    }

    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let text = percent_decode_str(cookie::read(headers, NAME)?).decode_utf8().ok()?;
        let flash: Self = serde_json::from_str(&text).ok()?;
        // Only links to our own pages, in case the cookie was forged.
        let ours = |path: &str| path.starts_with('/') && !path.starts_with("//");
        let paths =
            flash.undo.iter().map(|undo| &undo.action).chain(flash.link.iter().map(|link| &link.href));
        paths.into_iter().all(|path| ours(path)).then_some(flash)
    }

    /// The cookie that carries it, without link and undo if it would be too long.
    fn cookie(&self, is_secure: bool) -> HeaderValue {
        let text = serde_json::to_string(self).unwrap_or_default();
        let value = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
        if value.len() > MAX_BYTES && (self.undo.is_some() || self.link.is_some()) {
            return Self { undo: None, link: None, ..self.clone() }.cookie(is_secure);
        }
        cookie::write(NAME, &value, Keep::Seconds(SECONDS), is_secure)
    }

    /// The cookie that removes it once it was shown.
    pub fn shown(is_secure: bool) -> HeaderValue {
        cookie::write(NAME, "", Keep::Not, is_secure)
    }
}

impl From<&str> for Flash {
    fn from(text: &str) -> Self {
        Self::good(text)
    }
}

impl From<String> for Flash {
    fn from(text: String) -> Self {
        Self::good(text)
    }
}

impl Pages {
    /// Redirects to a page that shows the message.
    pub fn done(&self, to: &str, flash: Flash) -> Response {
        let mut response = Redirect::to(to).into_response();
        response.headers_mut().append(SET_COOKIE, flash.cookie(self.is_secure()));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::COOKIE;

    fn carried(flash: &Flash) -> Option<Flash> {
        let cookie = flash.cookie(false);
        let pair = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        Flash::read(&[(COOKIE, HeaderValue::try_from(pair).unwrap())].into_iter().collect())
    }

    #[test]
    fn a_flash_survives_its_cookie() {
        let flash = Flash::good("Moved “Müller; <b>” to Lost")
            .undo("/accounts/x/move", vec![("status".to_owned(), "prospect".to_owned())]);
        assert_eq!(carried(&flash), Some(flash));
    }

    #[test]
    fn it_leads_nowhere_else_and_stays_short() {
        assert_eq!(carried(&Flash::good("x").link("y", "https://evil.test/")), None);
        assert_eq!(carried(&Flash::good("x").undo("//evil.test/", Vec::new())), None);
        let long = Flash::good("x").undo("/a", vec![("ids".to_owned(), "x".repeat(4_000))]);
        assert_eq!(carried(&long), Some(Flash::good("x")));
    }
}
