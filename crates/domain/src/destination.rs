//! Where a webhook may be sent: URLs that pass the checks, and the addresses that may be dialled.
//!
//! Pure: text and addresses in, a verdict out. The delivery engine resolves names, connects only to the
//! checked address and reads the operator's allow list.
//!
//! Addresses decide. The WHATWG parser first normalises the spelling (`0x7f.1`, `2130706433` and full-width
//! digits all become 127.0.0.1), then the address is checked; names are checked by the addresses they resolve
//! to. The one exception is `localhost`, which means loopback whatever a resolver says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;
use url::{ParseError, Position, Url};

/// The longest URL a webhook may have, in bytes, as given and as normalised.
pub const MAX_URL_BYTES: usize = 2048;

/// The longest host name and label that DNS can carry (RFC 1035), in bytes.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

const SCHEME_PREFIX: &str = "https://";
const HTTPS_PORT: u16 = 443;

/// A well-formed webhook URL: https, a host, no user info, no fragment. Whether its host may be dialled is a
/// separate question: see [`Destination::judge_literal`] and [`Destination::judge_all`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    url: Url,
}

/// The host of a destination: a name still to be resolved, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Host<'a> {
    /// Lower-case ASCII (punycode), without a trailing dot.
    Name(&'a str),
    Ip(IpAddr),
}

/// The addresses that may be dialled: global unicast, and those the operator of the server allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    pub allowed: Vec<IpNet>,
}

/// Why a destination is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    #[error("the URL contains whitespace, a control character or a backslash")]
    BadCharacter,
    #[error("the URL must begin with https://")]
    NotHttps,
    #[error("the URL must not contain a fragment (#)")]
    Fragment,
    #[error("the URL must not contain a user name or password (@)")]
    UserInfo,
    #[error("the URL has no host")]
    MissingHost,
    #[error("the URL's host is not valid: {0}")]
    BadHost(String),
    #[error("the URL's port must be a number from 1 to 65535")]
    BadPort,
    #[error("the URL is not valid: {0}")]
    BadUrl(String),
    #[error("the address {address} is not public ({range}); --allow-destination {address} allows it")]
    ForbiddenAddress { address: IpAddr, range: &'static str },
    #[error("the host does not resolve to any address")]
    NoAddress,
}

impl Refusal {
    /// A stable word for programs; the human-readable text may change, this doesn't.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::BadCharacter => "bad_character",
            Self::NotHttps => "not_https",
            Self::Fragment => "fragment",
            Self::UserInfo => "userinfo",
            Self::MissingHost => "missing_host",
            Self::BadHost(_) => "bad_host",
            Self::BadPort => "bad_port",
            Self::BadUrl(_) => "bad_url",
            Self::ForbiddenAddress { .. } => "forbidden_address",
            Self::NoAddress => "no_address",
        }
    }
}

impl Destination {
    /// Parses and normalises. Anything a lenient parser would quietly repair (missing slashes, inner tabs,
    /// backslashes, an empty user name) is rejected, because two programs may repair it differently.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        check_raw_text(text)?;
        let mut url = Url::parse(text).map_err(refusal_of_parse_error)?;
        if url.port() == Some(0) {
            return Err(Refusal::BadPort);
        }
        if let Some(url::Host::Domain(name)) = url.host() {
            check_name(name)?;
            // TLS names have no trailing dot (RFC 6066), so neither does ours.
            if let Some(undotted) = name.strip_suffix('.').map(str::to_owned) {
                url.set_host(Some(&undotted)).map_err(refusal_of_parse_error)?;
            }
        }
        // Percent-encoding and punycode make a URL longer.
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(Refusal::TooLong);
        }
        Ok(Self { url })
    }

    pub fn host(&self) -> Host<'_> {
        match self.url.host() {
            Some(url::Host::Ipv4(address)) => Host::Ip(address.into()),
            Some(url::Host::Ipv6(address)) => Host::Ip(address.into()),
            Some(url::Host::Domain(name)) => Host::Name(name),
            None => unreachable!("an https URL is only parsed with a host"),
        }
    }

    /// The port to dial; 443 if the URL doesn't give one.
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or(HTTPS_PORT)
    }

    /// Host and port as in a `Host` header: the default port is omitted.
    pub fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// The request target: the path, at least `/`, and the query if there is one.
    pub fn path_and_query(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }

    /// The normalised URL; parsing it again gives the same destination.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Checks what can be checked without resolving: a literal address, or a `localhost` name, which counts
    /// as both loopback addresses. Any other name passes.
    pub fn judge_literal(&self, policy: &AddressPolicy) -> Result<(), Refusal> {
        match self.host() {
            Host::Ip(address) => policy.judge(address),
            Host::Name(name) if is_localhost(name) => {
                policy.judge(Ipv4Addr::LOCALHOST.into())?;
                policy.judge(Ipv6Addr::LOCALHOST.into())
            }
            Host::Name(_) => Ok(()),
        }
    }

    /// Checks the addresses that the host resolved to. One refused address is enough to refuse the
    /// destination, because the resolver decides which one comes first next time.
    pub fn judge_all(&self, addresses: &[IpAddr], policy: &AddressPolicy) -> Result<(), Refusal> {
        self.judge_literal(policy)?;
        if addresses.is_empty() {
            return Err(Refusal::NoAddress);
        }
        addresses.iter().try_for_each(|address| policy.judge(*address))
    }
}

impl AddressPolicy {
    /// Whether this address may be dialled.
    pub fn judge(&self, address: IpAddr) -> Result<(), Refusal> {
        match forbidden_range(address) {
            Some(range) if !self.allows(address) => Err(Refusal::ForbiddenAddress { address, range }),
            _ => Ok(()),
        }
    }

    /// A mapped address is dialled as the IPv4 address inside it, so allowing either one allows it.
    fn allows(&self, address: IpAddr) -> bool {
        let names = |candidate: IpAddr| self.allowed.iter().any(|net| net.contains(&candidate));
        names(address) || names(address.to_canonical())
    }
}

/// The checks that need the original text, before the parser strips, repairs or drops anything.
fn check_raw_text(text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_URL_BYTES {
        return Err(Refusal::TooLong);
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(Refusal::BadCharacter);
    }
    let has_scheme =
        text.get(..SCHEME_PREFIX.len()).is_some_and(|head| head.eq_ignore_ascii_case(SCHEME_PREFIX));
    if !has_scheme {
        return Err(Refusal::NotHttps);
    }
    if text.contains('#') {
        return Err(Refusal::Fragment);
    }
    let rest = &text[SCHEME_PREFIX.len()..];
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Refusal::UserInfo);
    }
    // The parser would skip further slashes and treat the first path segment as the host.
    if authority.is_empty() {
        return Err(Refusal::MissingHost);
    }
    Ok(())
}

fn refusal_of_parse_error(error: ParseError) -> Refusal {
    match error {
        ParseError::EmptyHost => Refusal::MissingHost,
        ParseError::InvalidPort => Refusal::BadPort,
        ParseError::IdnaError
        | ParseError::InvalidIpv4Address
        | ParseError::InvalidIpv6Address
        | ParseError::InvalidDomainCharacter => Refusal::BadHost(error.to_string()),
        _ => Refusal::BadUrl(error.to_string()),
    }
}

/// The URL standard allows hosts that neither DNS nor a certificate can contain; they are refused here rather
/// than at each attempt.
fn check_name(name: &str) -> Result<(), Refusal> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label_is_good = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > MAX_NAME_BYTES || !name.split('.').all(label_is_good) {
        return Err(Refusal::BadHost("not a host name".to_owned()));
    }
    Ok(())
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn forbidden_range(address: IpAddr) -> Option<&'static str> {
    let listed = match address {
        IpAddr::V4(v4) => FORBIDDEN_V4.iter().find(|(net, _)| net.contains(&v4)).map(|(_, name)| *name),
        IpAddr::V6(v6) => FORBIDDEN_V6.iter().find(|(net, _)| net.contains(&v6)).map(|(_, name)| *name),
    };
    listed.or_else(|| match address {
        IpAddr::V6(v6) if is_isatap(v6) => Some("ISATAP"),
        IpAddr::V6(v6) if !GLOBAL_UNICAST_V6.contains(&v6) => Some("outside global unicast"),
        _ => None,
    })
}

/// An ISATAP interface id (RFC 5214) embeds an IPv4 address under any prefix.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, high, low, _, _] = address.segments();
    matches!(high, 0x0000 | 0x0200) && low == 0x5efe
}

const GLOBAL_UNICAST_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// From the IANA IPv4 special-purpose and multicast registries, more specific ranges first because the first
/// match names the range. The three globally reachable rows of the registry (AS112 and AMT) aren't listed;
/// 192.0.0.0/24 is refused entirely, since its two anycast addresses aren't receivers.
const FORBIDDEN_V4: &[(Ipv4Net, &str)] = &[
    (v4([169, 254, 169, 254], 32), "cloud metadata"),
    (v4([169, 254, 170, 2], 32), "cloud metadata"),
    (v4([169, 254, 170, 23], 32), "cloud metadata"),
    (v4([100, 100, 100, 200], 32), "cloud metadata"),
    (v4([192, 0, 0, 192], 32), "cloud metadata"),
    // Public according to the registry, but inside its cloud it is the host's own control service.
    (v4([168, 63, 129, 16], 32), "cloud metadata"),
    (v4([0, 0, 0, 0], 8), "this network"),
    (v4([10, 0, 0, 0], 8), "private"),
    (v4([100, 64, 0, 0], 10), "carrier-grade NAT"),
    (v4([127, 0, 0, 0], 8), "loopback"),
    (v4([169, 254, 0, 0], 16), "link-local"),
    (v4([172, 16, 0, 0], 12), "private"),
    (v4([192, 0, 0, 0], 24), "protocol assignments"),
    (v4([192, 0, 2, 0], 24), "documentation"),
    (v4([192, 88, 99, 0], 24), "6to4 relay"),
    (v4([192, 168, 0, 0], 16), "private"),
    (v4([198, 18, 0, 0], 15), "benchmarking"),
    (v4([198, 51, 100, 0], 24), "documentation"),
    (v4([203, 0, 113, 0], 24), "documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([255, 255, 255, 255], 32), "broadcast"),
    (v4([240, 0, 0, 0], 4), "reserved"),
];

/// From the IANA IPv6 special-purpose registry and address space. Forms that embed an IPv4 address are
/// refused entirely: a receiver with a public IPv4 address can be reached by that address.
const FORBIDDEN_V6: &[(Ipv6Net, &str)] = &[
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), "cloud metadata"),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128), "cloud metadata"),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), "cloud metadata"),
    (v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), "cloud metadata"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "IPv4-compatible"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "IPv4-mapped"),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), "IPv4-translated"),
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "NAT64"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "local NAT64"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discard-only"),
    (v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64), "dummy prefix"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "Teredo"),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), "benchmarking"),
    (v6([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28), "ORCHID"),
    (v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28), "ORCHID"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "protocol assignments"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "6to4"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "segment routing"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique local"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
];

const fn v4(octets: [u8; 4], prefix_len: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), prefix_len)
}

const fn v6(segments: [u16; 8], prefix_len: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), prefix_len)
}

#[cfg(test)]
mod tests;
