//! Where a webhook may point: a destination is checked once before it is stored, and its type says so.

use std::future::{Future, ready};
use std::pin::Pin;

use rapport_domain::destination::{AddressPolicy, Destination, Refusal};

/// Checks a destination before it is stored. It resolves names, so it doesn't run in a command.
pub trait DestinationCheck: Send + Sync + 'static {
    fn check<'a>(
        &'a self,
        destination: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;
}

/// A destination that passed the check. Only [`Services::check_destination`] makes one, so a command that
/// takes it can't be given anything else.
///
/// [`Services::check_destination`]: crate::Services::check_destination
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged(Destination);

impl Judged {
    pub(crate) async fn by(check: &dyn DestinationCheck, destination: Destination) -> Result<Self, Refusal> {
        check.check(&destination).await?;
        Ok(Self(destination))
    }

    /// The normalised URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host and the port.
    pub fn authority(&self) -> &str {
        self.0.authority()
    }
}

/// The check of a process that has no guard: strict about literal addresses, while names pass, because every
/// attempt checks them again.
pub(crate) struct LiteralsOnly;

impl DestinationCheck for LiteralsOnly {
    fn check<'a>(
        &'a self,
        destination: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>> {
        Box::pin(ready(destination.judge_literal(&AddressPolicy::default())))
    }
}

#[cfg(test)]
mod tests {
    use rapport_testkit::block_on;

    use super::*;

    #[test]
    fn without_a_guard_literal_addresses_are_judged_strictly() {
        for (url, expected) in [
            ("https://example.com/hook", Ok("https://example.com/hook")),
            ("https://93.184.215.14/", Ok("https://93.184.215.14/")),
            ("https://127.0.0.1/", Err("forbidden_address")),
            ("https://localhost/", Err("forbidden_address")),
            ("https://[fd00::1]/", Err("forbidden_address")),
        ] {
            let destination = Destination::parse(url).unwrap();
            let judged = block_on(Judged::by(&LiteralsOnly, destination));
            let found = judged.as_ref().map(Judged::as_str).map_err(Refusal::code);
            assert_eq!(found, expected, "{url}");
        }
    }
}
