//! The mail settings: the server that mail is sent through, the sender, and the relay that inbound mail comes from.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use rapport_domain::sender_check::{BadRelay, Relay};
use rapport_jobs::{MailServer, Security};
use serde::de::{Deserialize, Deserializer, Error as _};
use url::Url;

/// What is shown in the place of a password.
pub(crate) const HIDDEN: &str = "****";

/// The mail server; none by default. Displayed without its password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SmtpUrl(Option<MailServer>);

impl SmtpUrl {
    pub fn server(&self) -> Option<&MailServer> {
        self.0.as_ref()
    }
}

/// The schemes, how each one is encrypted, and its default port.
const SCHEMES: [(&str, Security, u16); 3] =
    [("smtps", Security::Tls, 465), ("smtp", Security::StartTls, 587), ("smtp+plain", Security::Plain, 25)];

impl FromStr for SmtpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let form = || "must be smtps://, smtp:// or smtp+plain://, then [user:password@]host".to_owned();
        let url = Url::parse(text).map_err(|_| form())?;
        let scheme = SCHEMES.iter().find(|(scheme, ..)| *scheme == url.scheme());
        let (_, security, port) = *scheme.ok_or_else(form)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(form)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err("must not contain anything after the host and port".to_owned());
        }
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() => Some((decoded(user)?, decoded(password)?)),
            _ => return Err("must give both a user and a password, or neither".to_owned()),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self(Some(MailServer { host, port: url.port().unwrap_or(port), security, login })))
    }
}

/// The user or password of a URL.
pub(crate) fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| "the user or password is not UTF-8".to_owned())
}

impl fmt::Display for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(MailServer { host, port, security, login }) = &self.0 else { return Ok(()) };
        let scheme =
            SCHEMES.iter().find(|(_, known, _)| known == security).map_or("smtp", |(scheme, ..)| scheme);
        write!(f, "{scheme}://")?;
        if let Some((user, _)) = login {
            let user = percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC);
            write!(f, "{user}:{HIDDEN}@")?;
        }
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The sender of mail: an address, with or without a name. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailFrom(String);

impl MailFrom {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MailFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() {
            rapport_jobs::mailer::check_sender(text).map_err(|error| error.to_string())?;
        }
        Ok(Self(text.to_owned()))
    }
}

/// The relay that checks the senders of inbound mail. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedRelay(Option<Relay>);

impl TrustedRelay {
    pub fn relay(&self) -> Option<&Relay> {
        self.0.as_ref()
    }

    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("", Relay::as_str)
    }
}

impl FromStr for TrustedRelay {
    type Err = BadRelay;

    fn from_str(text: &str) -> Result<Self, BadRelay> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|relay| Self(Some(relay))) }
    }
}

macro_rules! read_from_text {
    ($($name:ty),+) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )+};
}

read_from_text!(SmtpUrl, MailFrom, TrustedRelay);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_says_how_it_is_encrypted_and_the_password_is_hidden() {
        let table = [
            ("smtps://u:p@mail.acme.test", Security::Tls, 465, "smtps://u:****@mail.acme.test:465"),
            ("smtp://u:p@mail.acme.test", Security::StartTls, 587, "smtp://u:****@mail.acme.test:587"),
            ("smtp://mail.acme.test:2525", Security::StartTls, 2525, "smtp://mail.acme.test:2525"),
            ("smtp+plain://127.0.0.1", Security::Plain, 25, "smtp+plain://127.0.0.1:25"),
            ("smtp+plain://[::1]:1025", Security::Plain, 1025, "smtp+plain://[::1]:1025"),
        ];
        for (text, security, port, shown) in table {
            let url: SmtpUrl = text.parse().unwrap();
            let server = url.server().unwrap();
            assert_eq!((server.security, server.port), (security, port), "{text}");
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
        }
    }

    #[test]
    fn users_and_passwords_may_hold_anything() {
        let url: SmtpUrl = "smtp://ana%40acme.test:p%3A%2F%40%25@mail.acme.test".parse().unwrap();
        let login = url.server().unwrap().login.clone();
        assert_eq!(login, Some(("ana@acme.test".to_owned(), "p:/@%".to_owned())));
        assert_eq!(url.to_string(), "smtp://ana%40acme%2Etest:****@mail.acme.test:587");
    }

    #[test]
    fn invalid_mail_servers_are_refused_without_showing_them() {
        for bad in [
            "mail.acme.test",
            "http://mail.acme.test",
            "smtp://",
            "smtp://u@mail.acme.test",
            "smtp://:hunter2@mail.acme.test",
            "smtp://u:hunter2@mail.acme.test/path",
            "smtp://u:hunter2@mail.acme.test?tls=no",
        ] {
            let message = bad.parse::<SmtpUrl>().unwrap_err();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn a_sender_is_one_address() {
        for good in ["", "rapport@acme.test", "Rapport <rapport@acme.test>"] {
            assert_eq!(good.parse::<MailFrom>().unwrap().as_str(), good);
        }
        for bad in ["rapport", "a@acme.test, b@acme.test", "Rapport <>", "x\r\nBcc: y@acme.test"] {
            assert!(bad.parse::<MailFrom>().is_err(), "{bad}");
        }
    }
}
