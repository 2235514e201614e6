//! Where passkeys work. A passkey is bound to the host name of the service, so it needs one that doesn't change.

use url::{Host, Url};

/// Why this service can't offer passkeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPasskeys {
    #[error("passkeys need a host name, and this service is opened by an IP address")]
    NoHostName,
    #[error("passkeys need https, and this service is opened over http")]
    NotSecure,
}

/// The host name that passkeys for this base URL are bound to.
pub fn relying_party(base_url: &str) -> Result<String, NoPasskeys> {
    let url = Url::parse(base_url).map_err(|_| NoPasskeys::NoHostName)?;
    let Some(Host::Domain(name)) = url.host() else { return Err(NoPasskeys::NoHostName) };
    // Browsers trust the own machine without https.
    let is_local = name == "localhost" || name.ends_with(".localhost");
    if url.scheme() != "https" && !is_local {
        return Err(NoPasskeys::NotSecure);
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_need_https_and_a_host_name() {
        let table = [
            ("https://crm.acme.test", Ok("crm.acme.test")),
            ("https://crm.acme.test:8443", Ok("crm.acme.test")),
            ("https://crm", Ok("crm")),
            ("http://localhost:8080", Ok("localhost")),
            ("http://crm.localhost", Ok("crm.localhost")),
            ("http://crm.acme.test", Err(NoPasskeys::NotSecure)),
            ("http://127.0.0.1:8080", Err(NoPasskeys::NoHostName)),
            ("https://192.0.2.7", Err(NoPasskeys::NoHostName)),
            ("https://[2001:db8::1]", Err(NoPasskeys::NoHostName)),
            ("", Err(NoPasskeys::NoHostName)),
        ];
        for (base_url, expected) in table {
            assert_eq!(relying_party(base_url), expected.map(str::to_owned), "{base_url}");
        }
    }
}
