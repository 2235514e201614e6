//! A login with single sign-on, from the first click to the session.

use rapport_domain::company::Company;
use rapport_domain::credential::Presented;
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::id::FormId;
use rapport_domain::right::Right;
use rapport_domain::session::MAX_BROWSER_CHARS;
use rapport_domain::sso::entry::Reason;
use rapport_domain::sso::proof::is_after;
use rapport_domain::sso::{Mode, Settings, callback_path};
use rapport_store::sso::Sso;
use rapport_store::{Snapshot, Tx, claimed_domain, company, sso, submission};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::origin::Origin;
use crate::sso::admission::Admit;
use crate::sso::attempt::Attempt;
use crate::sso::confirmed;
use crate::sso::proof::ProveWithProvider;
use crate::sso::provider::{Provider, ProviderError};
use crate::sso::refusal;
use crate::vault::Owner;
use crate::{Answer, App};

/// Why nobody is logged in.
#[derive(Debug)]
pub enum NotIn {
    /// The reason is recorded already.
    Refused(Reason),
    Failed(Error),
}

impl From<Error> for NotIn {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A company whose people can log in with single sign-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub slug: String,
    pub name: String,
    /// Whether a password doesn't do.
    pub is_required: bool,
}

/// The company with this short name, if it offers single sign-on.
pub async fn offered(app: &App, project: &str) -> Result<Option<Offered>, Error> {
    let found = find(app, project).await?;
    Ok(found.map(|Found { company, sso, .. }| Offered {
        slug: company.slug.as_str().to_owned(),
        name: company.name,
        is_required: sso.settings.mode == Mode::Required,
    }))
}

/// The short name of the company that somebody means: by that name, by their email address, or by its domain. `None` if
/// there is no such company or it doesn't offer single sign-on, which is nobody else's business.
pub async fn project_of(app: &App, typed: &str) -> Result<Option<String>, Error> {
    let typed = typed.trim().to_lowercase();
    let host = typed.rsplit_once('@').map_or(typed.as_str(), |(_, host)| host);
    let Ok(domain) = EmailDomain::parse(host) else {
        return Ok(offered(app, &typed).await?.map(|offered| offered.slug));
    };
    let wanted = domain.clone();
    let Some(owner) = app.read_across(move |across| claimed_domain::owner(across, &wanted)).await? else {
        return Ok(None);
    };
    let found = find(app, &owner).await?.filter(|found| found.sso.settings.domains.contains(&domain));
    Ok(found.map(|_| owner))
}

struct Found {
    company: Company,
    sso: Sso,
    /// The client secret, encrypted.
    sealed: Vec<u8>,
}

/// Looks up a company that offers single sign-on.
async fn find(app: &App, project: &str) -> Result<Option<Found>, Error> {
    let project = project.to_owned();
    let company = app.read_across(move |across| company::by_slug(across, &project)).await?;
    let Some(company) = company else { return Ok(None) };
    let access = Access::System(company.id);
    let found = app.read(&access, Needs::Server, |snapshot, _| usable(snapshot));
    let Answer { reply, company, .. } = found.await?;
    Ok(reply.map(|(sso, sealed)| Found { company, sso, sealed }))
}

/// The company's single sign-on with its encrypted secret, if it is on and a domain is confirmed.
fn usable(snapshot: &mut Snapshot) -> Result<Option<(Sso, Vec<u8>)>, rapport_store::Error> {
    let Some(sso) = sso::get(snapshot)?.filter(|sso| sso.settings.mode != Mode::Off) else { return Ok(None) };
    if confirmed(snapshot, &sso.settings)?.is_empty() {
        return Ok(None);
    }
    Ok(sso::sealed_secret(snapshot)?.map(|sealed| (sso, sealed)))
}

impl Found {
    fn provider(&self) -> Provider {
        let Settings { issuer, client_id, .. } = &self.sso.settings;
        Provider { issuer: issuer.clone(), client_id: client_id.clone() }
    }

    fn redirect_uri(&self, app: &App) -> String {
        format!("{}{}", app.services().outside().base_url, callback_path(self.company.slug.as_str()))
    }
}

/// A login that was started.
pub struct Started {
    /// The provider's page.
    pub url: String,
    /// What the browser keeps until it comes back.
    pub cookie: String,
}

/// Starts a login. `next` is the page to go on to.
pub async fn start(app: &App, project: &str, next: &str, origin: Option<Origin>) -> Result<Started, NotIn> {
    let found = find(app, project).await?.ok_or(NotIn::Refused(Reason::Off))?;
    go_to_provider(app, &found, next, None, origin).await
}

/// Starts a proof: the person of a session that began with single sign-on logs in at the provider again.
pub async fn start_proof(
    app: &App,
    session: Presented,
    next: &str,
    origin: Option<Origin>,
) -> Result<Started, NotIn> {
    let access = Access::Credential(session);
    let asked = app.find(&access, Needs::Right(Right::Own), |_, viewer| Ok(viewer.caller.by_sso)).await?;
    let project = asked.viewer.caller.company.slug;
    let found = if asked.reply { find(app, project.as_str()).await? } else { None };
    let found = found.ok_or(NotIn::Refused(Reason::Off))?;
    go_to_provider(app, &found, next, Some(session), origin).await
}

async fn go_to_provider(
    app: &App,
    found: &Found,
    next: &str,
    session: Option<Presented>,
    origin: Option<Origin>,
) -> Result<Started, NotIn> {
    let services = app.services();
    let attempt = Attempt::new(services, found.company.id, next, session);
    let redirect_uri = found.redirect_uri(app);
    let page =
        services.providers().login_page(&found.provider(), attempt.bond(&redirect_uri), app.now()).await;
    match page {
        Ok(url) => Ok(Started { url, cookie: attempt.to_cookie(services.vault()) }),
        Err(error) => Err(refuse_provider(app, found, &error, origin).await),
    }
}

/// What a browser brings back from the provider. Not shown in logs: it contains secrets.
#[derive(Clone, Copy, Default)]
pub struct Returned<'a> {
    pub cookie: Option<&'a str>,
    pub state: &'a str,
    pub code: &'a str,
    /// The provider's word for what went wrong.
    pub error: &'a str,
    /// Who the provider says it is.
    pub issuer: &'a str,
    pub browser: Option<&'a str>,
    /// The session that it has.
    pub session: Option<Presented>,
}

/// A person who is logged in.
pub struct SignedIn {
    /// The text for the cookie of a new session. `None` if they have proved again, in the session they have, who they are.
    pub session: Option<String>,
    /// The page to go on to.
    pub next: String,
}

/// Completes a login: checks that this browser started it, lets the provider say who it is, and begins the session.
pub async fn finish(
    app: &App,
    project: &str,
    returned: Returned<'_>,
    origin: Option<Origin>,
) -> Result<SignedIn, NotIn> {
    let found = find(app, project).await?.ok_or(NotIn::Refused(Reason::Off))?;
    match try_finish(app, &found, returned, origin).await {
        Ok(signed_in) => Ok(signed_in),
        Err(Failure::Refused(reason)) => Err(refuse(app, &found, reason, origin).await),
        Err(Failure::Provider(error)) => Err(refuse_provider(app, &found, &error, origin).await),
        Err(Failure::Own(error)) => Err(NotIn::Failed(error)),
    }
}

enum Failure {
    Refused(Reason),
    Provider(ProviderError),
    Own(Error),
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::Refused(reason)
    }
}

async fn try_finish(
    app: &App,
    found: &Found,
    returned: Returned<'_>,
    origin: Option<Origin>,
) -> Result<SignedIn, Failure> {
    let (services, now) = (app.services(), app.now());
    let Returned { cookie, state, code, error, issuer, browser, session } = returned;
    let attempt = cookie.and_then(|cookie| Attempt::from_cookie(services.vault(), cookie, state, now));
    let attempt = attempt.filter(|attempt| attempt.company == found.company.id).ok_or(Reason::WrongState)?;
    let asked = session.filter(|session| attempt.is_for(session));
    if attempt.is_proof() && asked.is_none() {
        return Err(Reason::WrongState.into());
    }
    // RFC 9207: an answer of another provider must not be taken to this one.
    if !issuer.is_empty() && issuer != found.sso.settings.issuer.as_str() {
        return Err(Reason::WrongIssuer.into());
    }
    let access = Access::System(found.company.id);
    if !app.write_from(&access, origin, UseAttempt(attempt.form)).await.map_err(Failure::Own)? {
        return Err(Reason::Replayed.into());
    }
    match error {
        "" if !code.is_empty() => {}
        "access_denied" => return Err(Reason::Cancelled.into()),
        _ => return Err(Reason::ProviderRefused.into()),
    }
    let secret = services.vault().open(Owner::SsoClient(found.sso.id), &found.sealed);
    let secret = secret.map_err(|_| Reason::SecretUnreadable)?;
    let (provider, redirect_uri) = (found.provider(), found.redirect_uri(app));
    let claims = services.providers().claims(&provider, &secret, code, attempt.bond(&redirect_uri), now);
    let claims = claims.await.map_err(Failure::Provider)?;
    if let Some(session) = asked {
        if !is_after(claims.authenticated_at, attempt.started_at()) {
            return Err(Reason::NotAskedAgain.into());
        }
        let proof = ProveWithProvider { provider, claims, session };
        let proved = app.write_from(&Access::Credential(session), origin, proof).await;
        proved.map_err(Failure::Own)??;
        return Ok(SignedIn { session: None, next: attempt.next });
    }
    let browser = browser.map(|text| text.chars().take(MAX_BROWSER_CHARS).collect());
    let admitted = app.write_from(&access, origin, Admit { provider, claims, browser }).await;
    let session = admitted.map_err(Failure::Own)??;
    Ok(SignedIn { session: Some(session), next: attempt.next })
}

async fn refuse_provider(app: &App, found: &Found, error: &ProviderError, origin: Option<Origin>) -> NotIn {
    tracing::info!(company = found.company.id.0, reason = error.for_log(), "provider failed");
    refuse(app, found, error.reason(), origin).await
}

async fn refuse(app: &App, found: &Found, reason: Reason, origin: Option<Origin>) -> NotIn {
    if let Err(error) = refusal::record(app, found.company.id, reason, origin).await {
        crate::log_failure!(error, "failed to record a refused login");
    }
    NotIn::Refused(reason)
}

/// Makes an attempt count once: returns whether this is the first time.
struct UseAttempt(FormId);

impl Command for UseAttempt {
    type Reply = bool;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<bool, Error> {
        Ok(submission::take(tx, self.0)?)
    }
}
