//! Browsers in which a person has logged in before. Strangers who guess a password can't lock them out.
//!
//! The cookie holds a random name for the browser, signed together with the address that logged in. It proves nothing
//! else: logging in takes the password as before.

use axum::http::{HeaderMap, HeaderValue};
use rapport_app::vault::Purpose;
use rapport_domain::id::base32;
use rapport_domain::member::Email;

use crate::pages::Pages;
use crate::pages::kit::cookie::{self, Keep};

const NAME: &str = "browser";
/// Browsers keep no cookie for longer.
const KEEP: Keep = Keep::Days(400);

/// The cookie as it was sent.
#[derive(Debug, Clone, Default)]
pub struct KnownBrowser(Option<(String, String)>);

impl KnownBrowser {
    pub fn of(headers: &HeaderMap) -> Self {
        let sent = cookie::read(headers, NAME).and_then(|value| value.split_once('.'));
        Self(sent.map(|(name, signature)| (name.to_owned(), signature.to_owned())))
    }

    /// The browser's name, if this address has logged in there before.
    pub fn name_for(&self, pages: &Pages, email: &Email) -> Option<&str> {
        let (name, signature) = self.0.as_ref()?;
        let vault = pages.app().services().vault();
        vault.has_signed(Purpose::Browser, &parts(name, email), signature).then_some(name)
    }
}

/// The cookie for a browser in which this address has just logged in.
pub fn remember(pages: &Pages, email: &Email) -> Option<HeaderValue> {
    let name = base32().encode(&pages.app().services().random::<16>());
    let signature = pages.app().services().vault().sign(Purpose::Browser, &parts(&name, email))?;
    Some(cookie::write(NAME, &format!("{name}.{signature}"), KEEP, pages.is_secure()))
}

fn parts<'a>(name: &'a str, email: &'a Email) -> [&'a [u8]; 2] {
    [name.as_bytes(), email.as_str().as_bytes()]
}
