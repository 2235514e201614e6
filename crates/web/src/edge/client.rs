//! Who sent a request: the one place that decides a client's address. Rate limits, login throttling, live streams, slow
//! bodies, the audit log and the access log all use the result.
//!
//! It is the other end of the connection, unless that is a proxy the operator trusts. Then the proxy says who sent the
//! request to it, and if that is a trusted proxy too, what that one was told, and so on. The list in the header is
//! therefore read from its end. Everything before the first address that isn't trusted may be invented.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::http::Extensions;
use axum::http::header::{self, HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::edge::forwarded::{self, Element};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The client of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    pub address: IpAddr,
    pub scheme: Option<Scheme>,
}

impl Client {
    /// The client as the server noted it. A request without a connection has none.
    pub fn of(extensions: &Extensions) -> Self {
        let nobody = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), scheme: None };
        extensions.get::<Self>().copied().unwrap_or(nobody)
    }
}

/// How the client reached the outermost trusted proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn read(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| scheme.as_str().eq_ignore_ascii_case(text.trim()))
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The networks whose word about other addresses is believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks.into())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request that came over a connection from `peer`. Never fails: what cannot be understood is
    /// ignored.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let direct = Client { address: peer.to_canonical(), scheme: None };
        if !self.contains(peer) {
            return direct;
        }
        match (headers.contains_key(header::FORWARDED), headers.contains_key(&X_FORWARDED_FOR)) {
            (true, false) => self.of_forwarded(direct, headers),
            (false, _) => self.of_x_forwarded(direct, headers),
            (true, true) => {
                // Most proxies write one of the two and pass on the other as the client sent it. Nothing says which is
                // which, so they count only if they agree.
                let told = self.of_x_forwarded(direct, headers);
                if self.of_forwarded(direct, headers).address == told.address { told } else { direct }
            }
        }
    }

    fn of_x_forwarded(&self, direct: Client, headers: &HeaderMap) -> Client {
        let mut client = direct;
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let hops = lines.flat_map(|line| line.to_str().unwrap_or("").rsplit(','));
        for hop in hops {
            let Some(address) = address(hop.trim()) else { break };
            client.address = address;
            if !self.contains(address) {
                break;
            }
        }
        let proto = headers.get_all(X_FORWARDED_PROTO).iter().next_back();
        let proto = proto.and_then(|value| value.to_str().ok()).and_then(|value| value.rsplit(',').next());
        Client { scheme: proto.and_then(Scheme::read), ..client }
    }

    fn of_forwarded(&self, direct: Client, headers: &HeaderMap) -> Client {
        let mut client = direct;
        let lines = headers.get_all(header::FORWARDED).iter().rev();
        for line in lines {
            let Some(elements) = line.to_str().ok().and_then(forwarded::elements) else { return client };
            for Element { sender, proto } in elements.into_iter().rev() {
                let Some(address) = sender.as_deref().and_then(address) else { return client };
                client = Client { address, scheme: proto.as_deref().and_then(Scheme::read) };
                if !self.contains(address) {
                    return client;
                }
            }
        }
        client
    }
}

/// An address in any form that proxies write: with or without port, IPv6 with or without brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests;
