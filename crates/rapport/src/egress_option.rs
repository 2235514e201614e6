//! The proxy that webhooks are sent through.

use std::fmt;
use std::str::FromStr;

use rapport_jobs::EgressProxy;
use url::Url;

use crate::mail_option::{HIDDEN, decoded};
use crate::option_value::read_from_text;

/// The port of a proxy that names none, as for any http URL.
const DEFAULT_PORT: u16 = 80;

/// The egress proxy; none by default. Displayed without its password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EgressUrl(Option<EgressProxy>);

impl EgressUrl {
    pub fn proxy(&self) -> Option<&EgressProxy> {
        self.0.as_ref()
    }
}

impl FromStr for EgressUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let form = || "must be http://[user:password@]host[:port]".to_owned();
        let url = Url::parse(text).map_err(|_| form())?;
        if url.scheme() != "http" {
            return Err(form());
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(form)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err("must not contain anything after the host and port".to_owned());
        }
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() => Some((decoded(user)?, decoded(password)?)),
            _ => return Err("must give both a user and a password, or neither".to_owned()),
        };
        if login.as_ref().is_some_and(|(user, _)| user.contains(':')) {
            return Err("the user must not contain a colon".to_owned());
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self(Some(EgressProxy { host, port: url.port().unwrap_or(DEFAULT_PORT), login })))
    }
}

impl fmt::Display for EgressUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(proxy) = &self.0 else { return Ok(()) };
        f.write_str("http://")?;
        if let Some((user, _)) = &proxy.login {
            let user = percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC);
            write!(f, "{user}:{HIDDEN}@")?;
        }
        fmt::Display::fmt(proxy, f)
    }
}

impl fmt::Debug for EgressUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

read_from_text!(EgressUrl);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_host_with_or_without_a_login_and_the_password_is_hidden() {
        let table = [
            ("http://proxy.acme.test", "http://proxy.acme.test:80"),
            ("http://proxy.acme.test:8080/", "http://proxy.acme.test:8080"),
            ("http://proxy.acme.test:80", "http://proxy.acme.test:80"),
            ("http://[::1]:3128", "http://[::1]:3128"),
            ("http://rapport:p%40ss@10.0.0.5:3128", "http://rapport:****@10.0.0.5:3128"),
            ("", ""),
        ];
        for (text, shown) in table {
            let url: EgressUrl = text.parse().unwrap();
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
        let url: EgressUrl = "http://rapport:p%40ss%3A@10.0.0.5".parse().unwrap();
        assert_eq!(url.proxy().unwrap().login, Some(("rapport".to_owned(), "p@ss:".to_owned())));
    }

    #[test]
    fn other_proxies_are_refused_without_showing_them() {
        for bad in [
            "proxy.acme.test:3128",
            "https://proxy.acme.test",
            "socks5://proxy.acme.test",
            "http://",
            "http://u@proxy.acme.test",
            "http://:hunter2@proxy.acme.test",
            "http://u%3Av:hunter2@proxy.acme.test",
            "http://u:hunter2@proxy.acme.test/path",
            "http://u:hunter2@proxy.acme.test?x=y",
        ] {
            let message = bad.parse::<EgressUrl>().unwrap_err();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
