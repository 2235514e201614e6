//! The visitor of a page: the session in their cookie, and other facts from the request.

use axum::extract::FromRequestParts;
use axum::http::header::{self, HeaderMap};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{Method, Uri};
use rapport_app::{Access, Caller, Error, Origin};
use rapport_domain::credential::Presented;
use rapport_domain::history::Actor;
use rapport_domain::member::Email;

use crate::edge::access_log::Who;
use crate::edge::auth::Scheme;
use crate::edge::front::origin_of;
use crate::edge::guessing::Attempt;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::Verdict;
use crate::pages::Pages;
use crate::pages::kit::cookie;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::known_browser::KnownBrowser;
use crate::pages::kit::refusal::Refusal;
use crate::pages::shell::guide;
use crate::pages::shell::theme::Theme;

/// The script sets this header when it only checks for changes. Such a request neither shows nor clears the flash.
const LIVE: &str = "x-live";

/// A visitor with a session, which the use case verifies.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub session: Presented,
    pub look: Look,
    pub origin: Origin,
    /// Named in the access log, if there is one.
    who: Option<Who>,
    /// The page to return to after logging in.
    next: Option<String>,
}

impl Visitor {
    pub fn access(&self) -> Access {
        Access::Credential(self.session)
    }

    /// The page that a form was sent from, or the dashboard.
    pub fn page_before(&self) -> &str {
        self.next.as_deref().unwrap_or("/")
    }

    /// Tells the access log who this turned out to be.
    pub fn is_known(&self, caller: &Caller) {
        if let (Some(who), Actor::Person { id, .. }) = (&self.who, &caller.actor) {
            who.is_person(*id);
        }
    }

    /// The response for an error. If the session has ended, the visitor is asked to log in; if it lacks a second factor,
    /// for that.
    pub fn refused(&self, error: Error) -> Refusal {
        match error {
            Error::Unauthenticated => Refusal::LogIn { next: self.next.clone() },
            error if error.is_lack_of_factor() => Refusal::SecondFactor { next: self.next.clone() },
            error => Refusal::Page(Problem::for_caller(error, Scheme::Token, self.session, self.origin)),
        }
    }
}

impl Visitor {
    /// An attempt at the password of this address.
    pub fn attempt<'a>(&'a self, pages: &Pages, email: &'a Email) -> Attempt<'a> {
        Attempt { email, address: self.origin.address, browser: self.look.known.name_for(pages, email) }
    }
}

impl FromRequestParts<Pages> for Visitor {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Self, Refusal> {
        let next = match parts.method {
            Method::GET => Some(path_of(&parts.uri)),
            // Return to the page with the form, not to the form's target.
            _ => page_before(&parts.headers),
        };
        let origin = origin_of(parts);
        let session = session(&parts.headers, pages).ok_or_else(|| Refusal::LogIn { next: next.clone() })?;
        let who = parts.extensions.get::<Who>().cloned();
        if let Some(who) = &who {
            who.is_of(session.company);
        }
        let (verdict, _) = pages.0.limiter.admit_credential(&session.hash, origin.address, pages.app().now());
        if let Verdict::Wait(_, seconds) = verdict {
            return Err(Refusal::too_many(seconds));
        }
        let look = Look::of(&parts.headers, pages, Some(session));
        Ok(Self { session, look, origin, who, next })
    }
}

/// Facts from the request besides the session.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub theme: Theme,
    pub hides_guide: bool,
    pub flash: Option<Flash>,
    pub browser: Option<String>,
    pub known: KnownBrowser,
}

impl Look {
    fn of(headers: &HeaderMap, pages: &Pages, session: Option<Presented>) -> Self {
        let vault = pages.app().services().vault();
        let is_live = headers.contains_key(LIVE);
        let browser = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        Self {
            theme: Theme::read(headers),
            hides_guide: guide::is_hidden(headers),
            flash: if is_live { None } else { Flash::read(headers, vault, session) },
            browser: browser.map(str::to_owned),
            known: KnownBrowser::of(headers),
        }
    }
}

/// A visitor who need not be logged in.
#[derive(Debug, Clone)]
pub struct Stranger {
    pub look: Look,
    pub origin: Origin,
    /// Their session, if they have one.
    pub session: Option<Presented>,
}

impl Stranger {
    /// An attempt at the password of this address.
    pub fn attempt<'a>(&'a self, pages: &Pages, email: &'a Email) -> Attempt<'a> {
        Attempt { email, address: self.origin.address, browser: self.look.known.name_for(pages, email) }
    }

    /// Whether this address has logged in with this browser before.
    pub fn knows(&self, pages: &Pages, email: &Email) -> bool {
        self.look.known.name_for(pages, email).is_some()
    }

    /// Applies the rate limit for actions without a login, such as trying a password.
    pub fn admit(&self, pages: &Pages) -> Result<(), Refusal> {
        match pages.0.limiter.admit_stranger(self.origin.address, pages.app().now()) {
            Verdict::Pass(_) => Ok(()),
            Verdict::Wait(_, seconds) => Err(Refusal::too_many(seconds)),
        }
    }
}

impl FromRequestParts<Pages> for Stranger {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Self, Refusal> {
        let session = session(&parts.headers, pages);
        let look = Look::of(&parts.headers, pages, session);
        Ok(Self { look, origin: origin_of(parts), session })
    }
}

fn session(headers: &HeaderMap, pages: &Pages) -> Option<Presented> {
    let name = cookie::session_name(pages.is_secure());
    rapport_app::session::read_cookie(cookie::read(headers, name)?)
}

/// The page on this service that a form was sent from.
fn page_before(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let page: Uri = text(header::REFERER)?.parse().ok()?;
    (page.authority().map(Authority::as_str) == text(header::HOST)).then(|| path_of(&page))
}

pub fn path_of(uri: &Uri) -> String {
    uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}
