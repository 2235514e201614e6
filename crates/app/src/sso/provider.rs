//! What use cases ask of a company's identity provider.

use std::future::{Future, ready};
use std::pin::Pin;

use rapport_domain::sso::entry::{Claims, Reason};
use rapport_domain::sso::{Issuer, Mode, Settings};
use rapport_domain::time::Time;

/// A provider, and how it knows us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub issuer: Issuer,
    pub client_id: String,
}

impl Provider {
    /// Whether a company's people log in here.
    pub(crate) fn is_of(&self, settings: &Settings) -> bool {
        let Self { issuer, client_id } = self;
        settings.mode != Mode::Off && settings.issuer == *issuer && settings.client_id == *client_id
    }
}

/// What binds one login together: the provider repeats the state and the nonce, and only who knows the verifier can use
/// the code.
#[derive(Clone, Copy)]
pub struct Bond<'a> {
    pub redirect_uri: &'a str,
    pub state: &'a str,
    pub nonce: &'a str,
    pub verifier: &'a str,
    /// Whether the provider has to ask the person again, even if it knows who they are.
    pub asks_again: bool,
}

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;

/// Talks to providers. It owns the sockets, decides where it may connect, and checks what comes back.
pub trait Providers: Send + Sync + 'static {
    /// The address where a person logs in.
    fn login_page<'a>(&'a self, provider: &'a Provider, bond: Bond<'a>, now: Time) -> Answer<'a, String>;

    /// Exchanges the code of a login for what the provider says about the person. Issuer, audience, nonce, signature and
    /// expiry are checked.
    fn claims<'a>(
        &'a self,
        provider: &'a Provider,
        client_secret: &'a str,
        code: &'a str,
        bond: Bond<'a>,
        now: Time,
    ) -> Answer<'a, Claims>;

    /// Asks the provider how it is set up, and whether we can work with that.
    fn test<'a>(&'a self, provider: &'a Provider, now: Time) -> Answer<'a, ()>;
}

/// For a process that has no sockets of its own.
pub(crate) struct NoProviders;

impl NoProviders {
    fn refuse<'a, T: Send + 'a>() -> Answer<'a, T> {
        Box::pin(ready(Err(ProviderError::Own("this process can't reach providers".to_owned()))))
    }
}

impl Providers for NoProviders {
    fn login_page<'a>(&'a self, _: &'a Provider, _: Bond<'a>, _: Time) -> Answer<'a, String> {
        Self::refuse()
    }

    fn claims<'a>(
        &'a self,
        _: &'a Provider,
        _: &'a str,
        _: &'a str,
        _: Bond<'a>,
        _: Time,
    ) -> Answer<'a, Claims> {
        Self::refuse()
    }

    fn test<'a>(&'a self, _: &'a Provider, _: Time) -> Answer<'a, ()> {
        Self::refuse()
    }
}

/// Why a provider is of no use. The text is for the company's owners. It says nothing about the network that the service
/// runs in, which they could otherwise explore by entering addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// There was no answer, for the reason given, which is for the log only.
    #[error(
        "we couldn't reach the provider; check the issuer URL, and that this server can open it over https. If the \
         provider isn't on the public internet, the server's administrator has to allow it (--allow-sso)"
    )]
    Unreachable(String),
    #[error("the provider's {0} returned status {1}; check the issuer URL")]
    Answered(&'static str, u16),
    #[error("the provider's {0} isn't what OpenID Connect requires; check the issuer URL")]
    Malformed(&'static str),
    #[error(
        "the provider names another issuer than you; copy the issuer exactly as the provider shows it, also the slash \
         at the end if there is one"
    )]
    OtherIssuer,
    #[error("the provider's {0} must be an https URL")]
    BadEndpoint(&'static str),
    #[error("the provider publishes no key that we can check its signatures with")]
    NoKey,
    #[error("the provider signs with none of the algorithms that we accept; choose RS256 or ES256 there")]
    NoAlgorithm,
    /// A login was not confirmed.
    #[error("{}", .0.sentence())]
    Refused(Reason),
    #[error("too many logins are in progress; try again in a moment")]
    Busy,
    /// A fault on our side.
    #[error("we can't reach providers right now; ask the server's administrator")]
    Own(String),
}

impl ProviderError {
    /// Why somebody doesn't come in.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Unreachable(_) | Self::Busy | Self::Own(_) => Reason::ProviderUnreachable,
            Self::Answered(..)
            | Self::Malformed(_)
            | Self::OtherIssuer
            | Self::BadEndpoint(_)
            | Self::NoKey
            | Self::NoAlgorithm => Reason::ProviderFaulty,
            Self::Refused(reason) => *reason,
        }
    }

    /// What the log says beyond that.
    pub fn for_log(&self) -> &str {
        match self {
            Self::Unreachable(reason) | Self::Own(reason) => reason,
            Self::Answered(what, _) | Self::Malformed(what) | Self::BadEndpoint(what) => what,
            Self::OtherIssuer => "another issuer",
            Self::NoKey => "no key",
            Self::NoAlgorithm => "no algorithm",
            Self::Refused(reason) => reason.as_str(),
            Self::Busy => "busy",
        }
    }
}
