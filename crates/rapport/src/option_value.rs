//! Setting values that need parsing: each has one text form, whatever source it comes from.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use ipnet::IpNet;
use rapport_store::Database;
use tracing_subscriber::EnvFilter;
use url::Url;

/// The database to use. Displayed without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseAddress(pub Database);

impl DatabaseAddress {
    pub fn is_sqlite(&self) -> bool {
        matches!(self.0, Database::Sqlite(_))
    }
}

impl FromStr for DatabaseAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Database::postgres(text).map(Self);
        }
        let path = text.strip_prefix("sqlite:").ok_or("must be sqlite:PATH or postgres://…")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.starts_with(":memory:") {
            return Err("must name a file: sqlite:PATH".to_owned());
        }
        Ok(Self(Database::Sqlite(PathBuf::from(path))))
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The URL that people and programs use: a scheme and a host, without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// A URL that a person on this machine can open.
    pub fn of_listener(address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Self(format!("http://{ip}:{}", address.port()))
    }

    /// The same for a name.
    pub fn of_host(name: &str, port: u16) -> Self {
        Self(format!("http://{name}:{port}"))
    }

    /// The same with https if the listener speaks TLS.
    pub fn over_tls(self, is_tls: bool) -> Self {
        if is_tls { Self(self.0.replacen("http://", "https://", 1)) } else { self }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("must begin with http:// or https:// and name a host".to_owned());
        }
        let bare = url.username().is_empty() && url.password().is_none();
        if !bare || url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err("must be a scheme, a host and at most a port: https://crm.acme.test".to_owned());
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

/// A network in CIDR form. A single address is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let network = network.map_err(|_| "must be an address or a network such as 10.0.0.0/8".to_owned())?;
        Ok(Self(network))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Which events are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A filter accepts any word as the name of a target, so a mistyped level would log nothing.
        let is_level = |word: &str| word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
        let bare_words = text.split(',').map(str::trim).filter(|part| !part.contains(['=', '[', ':', '_']));
        if let Some(word) = bare_words.into_iter().find(|word| !is_level(word)) {
            return Err(format!("{word:?} is not a level; use off, error, warn, info, debug or trace"));
        }
        EnvFilter::builder().parse(text).map_err(|error| error.to_string())?;
        Ok(Self(text.to_owned()))
    }
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

impl LogFormat {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(text, false).map_err(|_| "must be text or json".to_owned())
    }
}

macro_rules! read_from_text {
    ($($name:ty),+) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                <Self as std::str::FromStr>::from_str(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

pub(crate) use read_from_text;

read_from_text!(DatabaseAddress, BaseUrl, Network, LogFilter, LogFormat);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_addresses_are_shown_without_their_password() {
        let table = [
            ("sqlite:data/x.db", "sqlite:data/x.db"),
            ("sqlite:///data/x.db", "sqlite:/data/x.db"),
            ("postgres://h/db", "postgres://h/db"),
            ("postgres://u@h/db", "postgres://u@h/db"),
            ("postgres://u:pw@h:1/db", "postgres://u:****@h:1/db"),
            (
                "postgresql://u:p:w/x%401@h:1,i:2/db?sslmode=disable",
                "postgresql://u:****@h:1,i:2/db?sslmode=disable",
            ),
            ("postgres://h/db?user=u&password=pw", "postgres://h/db?user=u&password=****"),
        ];
        for (text, shown) in table {
            assert_eq!(text.parse::<DatabaseAddress>().unwrap().to_string(), shown, "{text}");
        }
        for bad in ["", "x.db", "sqlite:", "sqlite::memory:", "mysql://h/db", "postgres://u:p@w@h/db"] {
            assert!(bad.parse::<DatabaseAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_alone_is_a_network_of_one() {
        let table = [("127.0.0.1", "127.0.0.1/32"), ("::1", "::1/128"), ("10.0.0.0/8", "10.0.0.0/8")];
        for (text, shown) in table {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), shown);
        }
        assert!("10.0.0.0/33".parse::<Network>().is_err());
        assert!("localhost".parse::<Network>().is_err());
    }

    #[test]
    fn base_urls_are_a_scheme_and_a_host() {
        assert_eq!("https://crm.acme.test/".parse::<BaseUrl>().unwrap().as_str(), "https://crm.acme.test");
        for bad in ["crm.acme.test", "ftp://a", "https://a/b", "https://a/?b", "https://u@a/", "https://a/#b"]
        {
            assert!(bad.parse::<BaseUrl>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_default_base_url_can_be_opened() {
        let table = [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:80", "http://[::1]:80"),
        ];
        for (address, url) in table {
            assert_eq!(BaseUrl::of_listener(address.parse().unwrap()).as_str(), url);
        }
    }

    #[test]
    fn log_filters_with_a_mistyped_level_are_refused() {
        for good in ["info", "warn,rapport_web=debug", "off", "rapport_store"] {
            assert!(good.parse::<LogFilter>().is_ok(), "{good}");
        }
        for bad in ["inof", "info,rapport_web=loud"] {
            assert!(bad.parse::<LogFilter>().is_err(), "{bad}");
        }
    }
}
