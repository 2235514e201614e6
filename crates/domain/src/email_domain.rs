//! The domain of an email address, such as `acme.com`.

use crate::destination::{Destination, Host};
use crate::invalid::Fault;
use crate::member::Email;
use crate::text::refuse_nul;

/// A domain that mail goes to: lower-case ASCII (punycode), without a trailing dot. Its subdomains are other domains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmailDomain(String);

impl EmailDomain {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        refuse_nul(text)?;
        let bad = || Fault::new("bad_host", "must be a domain such as acme.com");
        if text.contains([':', '/', '?', '@']) {
            return Err(bad());
        }
        // URLs have the same names, in any script.
        let found = Destination::parse(&format!("https://{text}/")).map_err(|_| bad())?;
        match found.host() {
            Host::Name(name) if name.contains('.') => Ok(Self(name.to_owned())),
            Host::Name(_) | Host::Ip(_) => Err(bad()),
        }
    }

    /// The domain of an address; `None` if no mail could be sent to it.
    pub fn of(email: &Email) -> Option<Self> {
        let (_, host) = email.as_str().rsplit_once('@')?;
        Self::parse(host).ok()
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_a_name_with_a_dot() {
        let table = [
            ("acme.com", "acme.com"),
            ("ACME.Com.", "acme.com"),
            ("mail.acme.co.uk", "mail.acme.co.uk"),
            ("bücher.example", "xn--bcher-kva.example"),
        ];
        for (text, expected) in table {
            assert_eq!(EmailDomain::parse(text).unwrap().as_str(), expected, "{text}");
        }
        for bad in [
            "",
            "acme",
            "localhost",
            "acme.com/x",
            "acme.com:443",
            "ana@acme.com",
            "127.0.0.1",
            "2130706433",
            "[::1]",
            "acme..com",
            "-acme.com",
            ".acme.com",
            "acme .com",
            "acme.com#x",
            "*.acme.com",
        ] {
            assert_eq!(EmailDomain::parse(bad).unwrap_err().code, "bad_host", "{bad}");
        }
        assert_eq!(EmailDomain::parse("acme\0.com").unwrap_err().code, "nul_character");
    }

    #[test]
    fn an_address_has_one_domain() {
        let domain = |text: &str| EmailDomain::of(&Email::parse(text).unwrap());
        let named = |text: &str| Some(EmailDomain::parse(text).unwrap());
        assert_eq!(domain("Ana@Acme.com"), named("acme.com"));
        assert_eq!(domain("ana@mail.acme.com"), named("mail.acme.com"), "a subdomain is another domain");
        assert_eq!(domain("ana@bücher.example"), named("xn--bcher-kva.example"));
        assert_eq!(domain("ana@acme"), None);
        assert_eq!(domain("acme.com@evil.test"), named("evil.test"));
    }
}
