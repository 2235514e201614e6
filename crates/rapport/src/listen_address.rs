//! The address to listen on: an IP address or a host name, and a port.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use crate::option_value::{BaseUrl, read_from_text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

impl ListenAddress {
    /// The addresses to try in turn. IPv4 comes first, so that `localhost` means the same as the default.
    pub fn candidates(&self) -> io::Result<Vec<SocketAddr>> {
        let mut addresses: Vec<SocketAddr> = match &self.host {
            Host::Ip(ip) => vec![SocketAddr::new(*ip, self.port)],
            Host::Name(name) => (name.as_str(), self.port).to_socket_addrs()?.collect(),
        };
        addresses.sort_by_key(SocketAddr::is_ipv6);
        Ok(addresses)
    }

    /// A URL that a person on this machine can open.
    pub fn base_url(&self) -> BaseUrl {
        match &self.host {
            Host::Ip(ip) => BaseUrl::of_listener(SocketAddr::new(*ip, self.port)),
            Host::Name(name) => BaseUrl::of_host(name, self.port),
        }
    }

    /// The same once it is known which address and port were taken.
    pub fn base_url_at(&self, listening: SocketAddr) -> BaseUrl {
        match &self.host {
            Host::Ip(_) => BaseUrl::of_listener(listening),
            Host::Name(name) => BaseUrl::of_host(name, listening.port()),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: Host::Ip(address.ip()), port: address.port() });
        }
        let form = "must be an address and a port, such as 127.0.0.1:8080, localhost:8080 or :8080";
        let (host, port) = text.rsplit_once(':').ok_or(form)?;
        let port = port.parse().map_err(|_| form)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let host = match host {
            "" => Host::Ip(Ipv4Addr::UNSPECIFIED.into()),
            name if name.chars().all(is_name) => Host::Name(name.to_owned()),
            _ => return Err(form.to_owned()),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => fmt::Display::fmt(&SocketAddr::new(*ip, self.port), f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

read_from_text!(ListenAddress);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_or_a_name_and_a_port() {
        let table = [
            ("127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("[::1]:80", "[::1]:80", "http://[::1]:80"),
            (":8080", "0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("localhost:8080", "localhost:8080", "http://localhost:8080"),
            ("crm.acme.test:80", "crm.acme.test:80", "http://crm.acme.test:80"),
        ];
        for (text, shown, url) in table {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.base_url().as_str()), (shown, url), "{text}");
        }
        let listening = SocketAddr::from(([127, 0, 0, 1], 4711));
        for (text, url) in
            [("localhost:0", "http://localhost:4711"), ("127.0.0.1:0", "http://127.0.0.1:4711")]
        {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.base_url_at(listening).as_str(), url);
        }
        for bad in ["", "8080", "localhost", "localhost:", ":", ":99999", "a b:1", "::1:80", "http://a:1"] {
            assert!(bad.parse::<ListenAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_stands_for_its_addresses() {
        let candidates = |text: &str| text.parse::<ListenAddress>().unwrap().candidates();
        let local = candidates("localhost:80").unwrap();
        assert!(!local.is_empty() && local.iter().all(|address| address.ip().is_loopback()), "{local:?}");
        assert!(local.is_sorted_by_key(SocketAddr::is_ipv6), "{local:?}");
        assert!(candidates("no-such-host.invalid:80").is_err());
    }
}
