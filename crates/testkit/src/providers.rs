//! Identity providers in memory, for tests of who comes in. They say what a test tells them to; a real one is in `oidc`.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, PoisonError};

use rapport_app::sso::provider::{Answer, Bond, Provider, ProviderError, Providers};
use rapport_domain::sso::entry::{Claims, Reason};
use rapport_domain::time::Time;

/// What each issuer says about the next person who logs in.
#[derive(Debug, Default)]
pub struct TestProviders(Mutex<HashMap<String, Result<Claims, ProviderError>>>);

impl TestProviders {
    /// From now on, this is who logs in there.
    pub fn say(&self, issuer: &str, claims: Claims) {
        self.answer(issuer, Ok(claims));
    }

    /// From now on, nobody can log in there.
    pub fn fail(&self, issuer: &str, error: ProviderError) {
        self.answer(issuer, Err(error));
    }

    fn answer(&self, issuer: &str, answer: Result<Claims, ProviderError>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(issuer.to_owned(), answer);
    }

    fn answer_of(&self, provider: &Provider) -> Result<Claims, ProviderError> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nobody = Err(ProviderError::Refused(Reason::CodeRefused));
        answers.get(provider.issuer.as_str()).cloned().unwrap_or(nobody)
    }
}

impl Providers for TestProviders {
    /// A page whose address ends with the state.
    fn login_page<'a>(&'a self, provider: &'a Provider, bond: Bond<'a>, _: Time) -> Answer<'a, String> {
        let page = match self.answer_of(provider) {
            Err(ProviderError::Unreachable(reason)) => Err(ProviderError::Unreachable(reason)),
            _ => Ok(format!("{}/login?state={}", provider.issuer.as_str(), bond.state)),
        };
        Box::pin(ready(page))
    }

    fn claims<'a>(
        &'a self,
        provider: &'a Provider,
        _: &'a str,
        _: &'a str,
        _: Bond<'a>,
        _: Time,
    ) -> Answer<'a, Claims> {
        Box::pin(ready(self.answer_of(provider)))
    }

    fn test<'a>(&'a self, provider: &'a Provider, _: Time) -> Answer<'a, ()> {
        Box::pin(ready(self.answer_of(provider).map(drop)))
    }
}

/// Somebody with a verified address.
pub fn claims(subject: &str, email: &str) -> Claims {
    Claims {
        subject: subject.to_owned(),
        email: Some(email.to_owned()),
        email_verified: true,
        name: Some(format!("{subject} from the provider")),
        authenticated_at: None,
    }
}
