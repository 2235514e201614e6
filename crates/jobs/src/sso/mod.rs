//! Talks to companies' identity providers (OpenID Connect): over HTTPS, to checked addresses only, without following
//! redirects, with one deadline for everything. A company's owner chooses the provider, so nothing that comes from it is
//! trusted before its signature was checked, and none of its addresses is dialled before the guard has looked at it.
//!
//! `memory` keeps what providers say about themselves for a while; `turns` keeps a slow one from holding up the others.

mod memory;
mod turns;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use openidconnect::core::{
    CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreErrorResponseType,
    CoreIdToken, CoreIdTokenClaims, CoreIdTokenVerifier, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreRequestTokenError, CoreUserInfoClaims,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, DiscoveryError,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, Nonce, OAuth2TokenResponse as _,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, SignatureVerificationError, TokenResponse as _,
    UserInfoError,
};
use rapport_app::sso::provider::{Answer, Bond, Provider, ProviderError, Providers};
use rapport_domain::destination::Destination;
use rapport_domain::sso::Issuer;
use rapport_domain::sso::entry::{Claims, Reason};
use rapport_domain::time::Time;
use tokio_util::task::TaskTracker;

use crate::guard::Guard;
use crate::https::{Https, NotSent};
use memory::Memory;
use turns::Turns;
use wire::Wire;

/// How long a login may wait for a provider.
const MAX_SECONDS: u64 = 10;
const CONFIGURATION: &str = "configuration";
/// The signatures that we accept, if the provider says that it uses them. Never one with the client secret as its key,
/// and never none.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// A client made from what a provider says about itself.
type ProviderClient = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

pub struct SingleSignOn {
    wire: Wire,
    total: Duration,
    memory: Memory,
    turns: Turns,
}

impl SingleSignOn {
    pub fn new(guard: Arc<Guard>, tls: rustls::ClientConfig, tasks: TaskTracker) -> Self {
        let wire = Wire(Https::new(guard, tls, tasks, "--allow-sso"));
        let total = Duration::from_secs(MAX_SECONDS);
        Self { wire, total, memory: Memory::default(), turns: Turns::default() }
    }

    /// Sets another deadline, for tests.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// Does something with a provider when it is its turn, and not for too long.
    async fn with<T>(
        &self,
        issuer: &Issuer,
        work: impl Future<Output = Result<T, ProviderError>> + Send,
    ) -> Result<T, ProviderError> {
        let _turn = self.turns.take(issuer).ok_or(ProviderError::Busy)?;
        let late =
            || Err(ProviderError::Unreachable(format!("no answer within {} s", self.total.as_secs_f32())));
        tokio::time::timeout(self.total, work).await.unwrap_or_else(|_| late())
    }

    /// What a provider says about itself, with its keys.
    async fn described(&self, issuer: &Issuer, now: Time) -> Result<CoreProviderMetadata, ProviderError> {
        match self.memory.recall(issuer, now) {
            Some(known) => known,
            None => self.ask(issuer, now).await,
        }
    }

    /// Asks the provider itself.
    async fn ask(&self, issuer: &Issuer, now: Time) -> Result<CoreProviderMetadata, ProviderError> {
        let answer = self.discover(issuer).await;
        self.memory.remember(issuer, &answer, now);
        answer
    }

    async fn discover(&self, issuer: &Issuer) -> Result<CoreProviderMetadata, ProviderError> {
        let url = IssuerUrl::new(issuer.as_str().to_owned());
        let url = url.map_err(|_| ProviderError::Malformed("issuer URL"))?;
        let found = CoreProviderMetadata::discover_async(url, &self.wire).await.map_err(not_discovered)?;
        check(&found)?;
        Ok(found)
    }

    /// The same with the keys that the provider publishes now, unless we asked a moment ago.
    async fn with_new_keys(
        &self,
        issuer: &Issuer,
        known: &CoreProviderMetadata,
        now: Time,
    ) -> Result<Option<CoreProviderMetadata>, ProviderError> {
        if !self.memory.may_ask_for_keys(issuer, now) {
            return Ok(None);
        }
        let keys =
            CoreJsonWebKeySet::fetch_async(known.jwks_uri(), &self.wire).await.map_err(not_discovered)?;
        let known = known.clone().set_jwks(keys);
        self.memory.replace_keys(issuer, &known);
        Ok(Some(known))
    }

    async fn find_login_page(
        &self,
        provider: &Provider,
        bond: Bond<'_>,
        now: Time,
    ) -> Result<String, ProviderError> {
        let described = self.described(&provider.issuer, now).await?;
        let client = client(provider, &described, None, bond.redirect_uri)?;
        let (state, nonce) = (bond.state.to_owned(), bond.nonce.to_owned());
        let verifier = PkceCodeVerifier::new(bond.verifier.to_owned());
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let asked = client.authorize_url(flow, move || CsrfToken::new(state), move || Nonce::new(nonce));
        let asked = asked.add_scopes(["email", "profile"].map(|scope| Scope::new(scope.to_owned())));
        let asked = if bond.asks_again {
            asked.add_prompt(CoreAuthPrompt::Login).set_max_age(Duration::ZERO)
        } else {
            asked
        };
        let (url, ..) =
            asked.set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier)).url();
        Ok(url.into())
    }

    async fn redeem(
        &self,
        provider: &Provider,
        client_secret: &str,
        code: &str,
        bond: Bond<'_>,
        now: Time,
    ) -> Result<Claims, ProviderError> {
        let described = self.described(&provider.issuer, now).await?;
        let client = client(provider, &described, Some(client_secret), bond.redirect_uri)?;
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned()));
        let request = request.map_err(|_| ProviderError::BadEndpoint("token endpoint"))?;
        let request = request.set_pkce_verifier(PkceCodeVerifier::new(bond.verifier.to_owned()));
        let tokens = request.request_async(&self.wire).await.map_err(not_redeemed)?;
        let token = tokens.id_token().ok_or(ProviderError::Refused(Reason::BadToken))?;
        let nonce = Nonce::new(bond.nonce.to_owned());
        let mut checked = verified(provider, &described, token, &nonce, now);
        if is_unknown_key(&checked)
            && let Some(described) = self.with_new_keys(&provider.issuer, &described, now).await?
        {
            checked = verified(provider, &described, token, &nonce, now);
        }
        let claims = checked.map_err(|error| ProviderError::Refused(reason(&error)))?;
        let person = Claims {
            subject: claims.subject().to_string(),
            email: claims.email().map(|email| email.to_string()),
            email_verified: claims.email_verified() == Some(true),
            name: claims.name().and_then(|name| name.get(None)).map(|name| name.to_string()),
            authenticated_at: claims.auth_time().map(|at| Time::from_micros(at.timestamp_micros())),
        };
        if person.email.is_some() || client.user_info_url().is_none() {
            return Ok(person);
        }
        // Some providers say in the token only who somebody is, and the rest here.
        let subject = Some(claims.subject().clone());
        let request = client.user_info(tokens.access_token().clone(), subject);
        let request = request.map_err(|_| ProviderError::BadEndpoint("userinfo endpoint"))?;
        let info: CoreUserInfoClaims = request.request_async(&self.wire).await.map_err(not_told)?;
        Ok(Claims {
            email: info.email().map(|email| email.to_string()),
            email_verified: info.email_verified() == Some(true),
            name: info.name().and_then(|name| name.get(None)).map(|name| name.to_string()).or(person.name),
            ..person
        })
    }
}

impl Providers for SingleSignOn {
    fn login_page<'a>(&'a self, provider: &'a Provider, bond: Bond<'a>, now: Time) -> Answer<'a, String> {
        Box::pin(self.with(&provider.issuer, self.find_login_page(provider, bond, now)))
    }

    fn claims<'a>(
        &'a self,
        provider: &'a Provider,
        client_secret: &'a str,
        code: &'a str,
        bond: Bond<'a>,
        now: Time,
    ) -> Answer<'a, Claims> {
        Box::pin(self.with(&provider.issuer, self.redeem(provider, client_secret, code, bond, now)))
    }

    fn test<'a>(&'a self, provider: &'a Provider, now: Time) -> Answer<'a, ()> {
        Box::pin(self.with(&provider.issuer, async move { self.ask(&provider.issuer, now).await.map(drop) }))
    }
}

/// Checks that we can work with what a provider says about itself.
fn check(described: &CoreProviderMetadata) -> Result<(), ProviderError> {
    let token = described.token_endpoint().ok_or(ProviderError::BadEndpoint("token endpoint"))?;
    let endpoints = [
        ("authorization endpoint", Some(described.authorization_endpoint().as_str())),
        ("token endpoint", Some(token.as_str())),
        ("userinfo endpoint", described.userinfo_endpoint().map(|url| url.as_str())),
    ];
    for (name, url) in endpoints {
        if url.is_some_and(|url| Destination::parse(url).is_err()) {
            return Err(ProviderError::BadEndpoint(name));
        }
    }
    if described.jwks().keys().is_empty() {
        return Err(ProviderError::NoKey);
    }
    if accepted(described).next().is_none() {
        return Err(ProviderError::NoAlgorithm);
    }
    Ok(())
}

/// The signatures that the provider uses and we accept.
fn accepted(described: &CoreProviderMetadata) -> impl Iterator<Item = CoreJwsSigningAlgorithm> {
    let used = described.id_token_signing_alg_values_supported();
    ALGORITHMS.into_iter().filter(move |algorithm| used.contains(algorithm))
}

fn client(
    provider: &Provider,
    described: &CoreProviderMetadata,
    client_secret: Option<&str>,
    redirect_uri: &str,
) -> Result<ProviderClient, ProviderError> {
    let id = ClientId::new(provider.client_id.clone());
    let secret = client_secret.map(|secret| ClientSecret::new(secret.to_owned()));
    let redirect = RedirectUrl::new(redirect_uri.to_owned());
    let redirect = redirect.map_err(|error| ProviderError::Own(format!("the base URL: {error}")))?;
    let methods = described.token_endpoint_auth_methods_supported();
    let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
    let is_posted =
        !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost);
    let how = if is_posted { AuthType::RequestBody } else { AuthType::BasicAuth };
    let client = CoreClient::from_provider_metadata(described.clone(), id, secret);
    Ok(client.set_redirect_uri(redirect).set_auth_type(how))
}

/// The claims of a token whose issuer, audience, signature, expiry and nonce are right.
fn verified(
    provider: &Provider,
    described: &CoreProviderMetadata,
    token: &CoreIdToken,
    nonce: &Nonce,
    now: Time,
) -> Result<CoreIdTokenClaims, ClaimsVerificationError> {
    let id = ClientId::new(provider.client_id.clone());
    let (issuer, keys) = (described.issuer().clone(), described.jwks().clone());
    // A public client's verifier accepts no signature with the client secret.
    let verifier =
        CoreIdTokenVerifier::new_public_client(id, issuer, keys).set_allowed_algs(accepted(described));
    let now = chrono::DateTime::from_timestamp_micros(now.as_micros()).unwrap_or_default();
    token.claims(&verifier.set_time_fn(move || now), nonce).cloned()
}

fn is_unknown_key<T>(checked: &Result<T, ClaimsVerificationError>) -> bool {
    let Err(ClaimsVerificationError::SignatureVerification(error)) = checked else { return false };
    *error == SignatureVerificationError::NoMatchingKey
}

/// Errors contain parts of the token, so only the reason is passed on.
fn reason(error: &ClaimsVerificationError) -> Reason {
    match error {
        ClaimsVerificationError::Expired(_) => Reason::ExpiredToken,
        ClaimsVerificationError::InvalidAudience(_) => Reason::WrongAudience,
        ClaimsVerificationError::InvalidIssuer(_) => Reason::WrongIssuer,
        ClaimsVerificationError::InvalidNonce(_) => Reason::WrongNonce,
        ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey) => {
            Reason::UnknownKey
        }
        ClaimsVerificationError::SignatureVerification(_) => Reason::BadSignature,
        _ => Reason::BadToken,
    }
}

fn not_sent(error: NotSent) -> ProviderError {
    match error {
        NotSent::Unreachable(reason) => ProviderError::Unreachable(reason),
        NotSent::Own(reason) => ProviderError::Own(reason),
    }
}

fn not_discovered(error: DiscoveryError<NotSent>) -> ProviderError {
    match error {
        DiscoveryError::Request(error) => not_sent(error),
        DiscoveryError::Response(status, ..) if !status.is_success() => {
            ProviderError::Answered(CONFIGURATION, status.as_u16())
        }
        DiscoveryError::Validation(_) => ProviderError::OtherIssuer,
        _ => ProviderError::Malformed(CONFIGURATION),
    }
}

fn not_redeemed(error: CoreRequestTokenError<NotSent>) -> ProviderError {
    use CoreErrorResponseType::{InvalidClient, UnauthorizedClient};
    match error {
        CoreRequestTokenError::Request(error) => not_sent(error),
        CoreRequestTokenError::ServerResponse(answer) => {
            let is_ours = matches!(answer.error(), InvalidClient | UnauthorizedClient);
            ProviderError::Refused(if is_ours { Reason::ClientRefused } else { Reason::CodeRefused })
        }
        CoreRequestTokenError::Parse(..) => ProviderError::Refused(Reason::BadToken),
        CoreRequestTokenError::Other(_) => ProviderError::Malformed("token endpoint"),
    }
}

fn not_told(error: UserInfoError<NotSent>) -> ProviderError {
    match error {
        UserInfoError::Request(error) => not_sent(error),
        UserInfoError::ClaimsVerification(_) => ProviderError::Refused(Reason::BadToken),
        _ => ProviderError::Malformed("userinfo endpoint"),
    }
}
