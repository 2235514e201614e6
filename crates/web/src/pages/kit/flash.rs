//! A message about what was just done, carried to the next page by a short-lived cookie that we sign.

use axum::http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rapport_app::vault::{Purpose, Vault};
use rapport_domain::credential::Presented;
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

impl Undo {
    /// On the board, which the script then doesn't load again.
    pub fn moves_a_card(&self) -> bool {
        self.action.starts_with("/pipeline/")
    }
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

    /// The message for this visitor, if we wrote it. Another site under the same domain can set cookies for ours,
    /// and must not put words or links on our pages.
    pub fn read(headers: &HeaderMap, vault: &Vault, session: Option<Presented>) -> Option<Self> {
        let (text, signature) = cookie::read(headers, NAME)?.split_once('.')?;
        let is_ours = |reader: Option<Presented>| {
            vault.has_signed(Purpose::Flash, &signed_parts(text, reader.as_ref()), signature)
        };
        if !is_ours(session) && !is_ours(None) {
            return None;
        }
        let text = percent_decode_str(text).decode_utf8().ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The cookie that carries it, without link and undo if it would be too long.
    fn cookie(&self, vault: &Vault, session: Option<Presented>, is_secure: bool) -> HeaderValue {
        let text = serde_json::to_string(self).unwrap_or_default();
        let text = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
        if text.len() > MAX_BYTES && (self.undo.is_some() || self.link.is_some()) {
            return Self { undo: None, link: None, ..self.clone() }.cookie(vault, session, is_secure);
        }
        let signature =
            vault.sign(Purpose::Flash, &signed_parts(&text, session.as_ref())).unwrap_or_default();
        cookie::write(NAME, &format!("{text}.{signature}"), Keep::Seconds(SECONDS), is_secure)
    }

    /// The cookie that removes it once it was shown.
    pub fn shown(is_secure: bool) -> HeaderValue {
        cookie::write(NAME, "", Keep::Not, is_secure)
    }
}

/// The text, and the session that it is for. Without the session, a member of one company could show people of
/// another a message that we signed.
fn signed_parts<'a>(text: &'a str, session: Option<&'a Presented>) -> [&'a [u8]; 2] {
    [text.as_bytes(), session.map_or(b"".as_slice(), |session| session.hash.as_bytes())]
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
    /// Redirects to a page that shows a message which is the same for everyone, whether they are logged in or not.
    pub fn done(&self, to: &str, flash: Flash) -> Response {
        self.redirect(to, &flash, None)
    }

    /// Redirects to a page that shows the message in this session only.
    pub fn done_for(&self, session: Presented, to: &str, flash: Flash) -> Response {
        self.redirect(to, &flash, Some(session))
    }

    fn redirect(&self, to: &str, flash: &Flash, session: Option<Presented>) -> Response {
        let mut response = Redirect::to(to).into_response();
        let cookie = flash.cookie(self.app().services().vault(), session, self.is_secure());
        response.headers_mut().append(SET_COOKIE, cookie);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::COOKIE;
    use rapport_domain::credential::{Kind, SecretHash};
    use rapport_domain::id::CompanyId;

    fn vault() -> Vault {
        Vault::new(&[7; 32])
    }

    fn session(number: u8) -> Presented {
        let (company, hash) = (CompanyId(1), SecretHash::from_bytes([number; 32]));
        Presented { kind: Kind::Session, company, hash }
    }

    fn value(flash: &Flash, session: Option<Presented>) -> String {
        let cookie = flash.cookie(&vault(), session, false);
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        pair.strip_prefix("flash=").unwrap().to_owned()
    }

    fn read(value: &str, session: Option<Presented>) -> Option<Flash> {
        let pair = HeaderValue::try_from(format!("flash={value}")).unwrap();
        Flash::read(&[(COOKIE, pair)].into_iter().collect(), &vault(), session)
    }

    #[test]
    fn a_flash_survives_its_cookie_and_stays_short() {
        let flash = Flash::good("Moved “Müller; <b>” to Lost. Done.")
            .undo("/accounts/x/move", vec![("status".to_owned(), "prospect".to_owned())]);
        assert_eq!(read(&value(&flash, Some(session(1))), Some(session(1))), Some(flash));
        let long = Flash::good("x").undo("/a", vec![("ids".to_owned(), "x".repeat(4_000))]);
        assert_eq!(read(&value(&long, Some(session(1))), Some(session(1))), Some(Flash::good("x")));
    }

    #[test]
    fn a_flash_that_we_did_not_write_is_not_shown() {
        let forged = r#"{"text":"Your session has expired.","link":{"text":"Log in","href":"/\\evil.test"}}"#;
        let forged = utf8_percent_encode(forged, NON_ALPHANUMERIC).to_string();
        let ours = value(&Flash::good("x"), Some(session(1)));
        let signature = ours.split_once('.').unwrap().1;
        let other_key = Flash::good("x").cookie(&Vault::new(&[8; 32]), Some(session(1)), false);
        let other_key = other_key.to_str().unwrap().split(['=', ';']).nth(1).unwrap().to_owned();
        for value in [
            forged.clone(),
            format!("{forged}."),
            format!("{forged}.{signature}"),
            format!("{forged}.{}", "0".repeat(64)),
            other_key,
        ] {
            assert_eq!(read(&value, Some(session(1))), None, "{value}");
        }
        assert_eq!(read(&ours, Some(session(1))), Some(Flash::good("x")));
    }

    #[test]
    fn a_flash_is_shown_only_in_the_session_it_is_for() {
        let theirs = value(&Flash::good("Moved “Call +1 900 now” to Lost."), Some(session(2)));
        assert_eq!(read(&theirs, Some(session(1))), None);
        assert_eq!(read(&theirs, None), None, "also not on the login page");
        let everyones = value(&Flash::good("You’re logged out."), None);
        for reader in [None, Some(session(1))] {
            assert_eq!(read(&everyones, reader), Some(Flash::good("You’re logged out.")));
        }
    }
}
