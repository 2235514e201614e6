//! Logging in and out.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use rapport_app::session::{EndReplaced, EndSession, LogIn, Proven};
use rapport_app::sso::SSO_REQUIRED;
use rapport_app::sso::login::{Offered, offered};
use rapport_app::{Access, Error, Needs, Origin, failed_login, second_step};
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::invitation::Way;
use rapport_domain::member::Email;
use rapport_domain::second_factor::Factor;
use rapport_domain::session::COOKIE_DAYS;

use crate::pages::entry::sso::login_path;
use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::known_browser;
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::{Stranger, Visitor};
use crate::pages::{Pages, READ};

pub fn routes() -> Router<Pages> {
    Router::new().route("/login", get(show).post(log_in)).route("/logout", post(log_out))
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: PlainFrame,
    next: String,
    email: String,
    /// The short name of the company whose login is meant.
    project: String,
    error: Option<&'static str>,
    has_passkeys: bool,
    /// The company's single sign-on, if it is meant and offers it.
    sso: Option<Offered>,
}

impl LoginPage {
    fn new(pages: &Pages, stranger: &Stranger, next: String) -> Self {
        let frame = PlainFrame::new(stranger, pages);
        let has_passkeys = pages.app().services().passkeys().is_ok();
        let (email, project) = (String::new(), String::new());
        Self { frame, next, email, project, error: None, has_passkeys, sso: None }
    }

    /// The way to the company's provider.
    fn sso_path(&self, slug: &str) -> String {
        let next = url::form_urlencoded::byte_serialize(self.next.as_bytes());
        let next =
            if self.next == "/" { String::new() } else { format!("?next={}", next.collect::<String>()) };
        format!("/sso/{slug}{next}")
    }
}

/// The login page of somebody whose passkey wasn't accepted.
pub(super) fn refused(pages: &Pages, stranger: &Stranger, next: String, error: &'static str) -> Response {
    let page = LoginPage { error: Some(error), ..LoginPage::new(pages, stranger, next) };
    html(StatusCode::UNPROCESSABLE_ENTITY, page.render())
}

async fn show(
    State(pages): State<Pages>,
    stranger: Stranger,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = Form::of_query(query.as_deref());
    let (next, project) = (own_path(query.text("next")), query.text("project").to_owned());
    if let Some(session) = stranger.session {
        let access = Access::Credential(session);
        if pages.app().read(&access, READ, |_, _| Ok(())).await.is_ok() {
            return Ok(Redirect::to(&next).into_response());
        }
    }
    if pages.0.setup.is_open(&pages).await? {
        return Ok(Redirect::to("/setup").into_response());
    }
    let sso = pages.offered(&project).await?;
    let page = LoginPage { project, sso, ..LoginPage::new(&pages, &stranger, next) };
    Ok(html(StatusCode::OK, page.render()))
}

async fn log_in(State(pages): State<Pages>, stranger: Stranger, form: Form) -> Result<Response, Refusal> {
    let (next, typed) = (own_path(form.text("next")), form.text("email").trim().to_owned());
    let project = form.text("project").trim().to_lowercase();
    let email = Email::parse(&typed).ok();
    let proven = match &email {
        Some(email) => prove(&pages, &stranger, email, &project, form.text("password").to_owned()).await?,
        None => stranger.admit(&pages).map(|()| None)?,
    };
    let Some((proven, email)) = proven.zip(email) else {
        pages.note_failed_login(&typed, stranger.origin);
        let (sso, error) = (pages.offered(&project).await?, Some("Incorrect email or password."));
        let page = LoginPage { email: typed, project, error, sso, ..LoginPage::new(&pages, &stranger, next) };
        return Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()));
    };
    pages.admit(&stranger, proven, &email, Way::Existing, &next).await
}

/// Checks a password, unless there were too many attempts.
async fn prove(
    pages: &Pages,
    stranger: &Stranger,
    email: &Email,
    project: &str,
    password: String,
) -> Result<Option<Proven>, Refusal> {
    let attempt = stranger.attempt(pages, email);
    if attempt.browser.is_none() {
        stranger.admit(pages)?;
    }
    let guessing = &pages.0.limiter.guessing;
    let guess = guessing.admit(attempt, pages.app().now()).map_err(Refusal::too_many)?;
    let project = Some(project.to_owned()).filter(|project| !project.is_empty());
    let proven = match LogIn::look(pages.app(), email.clone(), project).await {
        Ok(looked) => pages.slowly(move |_| Ok(looked.check(&password))).await,
        Err(error) => Err(error),
    };
    guess.settle(matches!(proven, Ok(None)));
    proven.map_err(Refusal::of)
}

impl Pages {
    /// The single sign-on of the company with this short name.
    async fn offered(&self, project: &str) -> Result<Option<Offered>, Refusal> {
        if project.is_empty() {
            return Ok(None);
        }
        offered(self.app(), project).await.map_err(Refusal::of)
    }

    /// Logs a failed login now and records it later: the response must not take longer for an address that is known.
    pub fn note_failed_login(&self, typed: &str, origin: Origin) {
        let Some(email) = failed_login::log(typed, origin) else { return };
        let app = self.app().clone();
        tokio::spawn(async move {
            if let Err(error) = failed_login::record(&app, email, origin).await {
                rapport_app::log_failure!(error, "failed to record a failed login");
            }
        });
    }

    /// The same for a second factor of a person who is known.
    pub fn note_failed_factor(&self, person: PersonId, factor: Factor, origin: Origin) {
        let app = self.app().clone();
        tokio::spawn(async move {
            if let Err(error) = failed_login::record_factor(&app, person, factor, origin).await {
                rapport_app::log_failure!(error, "failed to record a failed login");
            }
        });
    }

    /// Lets a person in who gave the password of this address, or asks for their second factor. They are told by mail if
    /// they never logged in with this browser before.
    pub async fn admit(
        &self,
        stranger: &Stranger,
        proven: Proven,
        email: &Email,
        login: Way,
        next: &str,
    ) -> Result<Response, Refusal> {
        if let Some(ticket) = second_step::begin(self.app(), proven).await.map_err(Refusal::of)? {
            return Ok(self.ask_second(&ticket, next));
        }
        let command = proven.begin(stranger.look.browser.as_deref());
        let command = command.announced(login == Way::Existing && !stranger.knows(self, email));
        match self.write_as(&proven.access(), stranger.origin, command).await {
            Ok(begun) => Ok(self.begun(stranger, &begun, email, next).await),
            Err(error) => self.not_begun(proven.company, next, error).await,
        }
    }

    /// Starts a session in this browser, remembers the browser, and redirects to a page.
    pub async fn begun(&self, stranger: &Stranger, session: &str, email: &Email, next: &str) -> Response {
        self.end_before(stranger).await;
        let mut response = Redirect::to(next).into_response();
        response.headers_mut().append(SET_COOKIE, self.session_cookie(session));
        if let Some(browser) = known_browser::remember(self, email) {
            response.headers_mut().append(SET_COOKIE, browser);
        }
        response
    }

    /// Ends the session that this browser had. The person who used it before is no longer logged in here.
    pub async fn end_before(&self, stranger: &Stranger) {
        let Some(before) = stranger.session else { return };
        // It does not matter whether it had already ended.
        let _ = self.write_as(&Access::Credential(before), stranger.origin, EndReplaced(before)).await;
    }

    /// Leads somebody whose password or passkey is right to the single sign-on that their company requires, if that is
    /// what keeps them out.
    pub async fn not_begun(&self, company: CompanyId, next: &str, error: Error) -> Result<Response, Refusal> {
        let Error::Forbidden { code: SSO_REQUIRED, .. } = error else { return Err(Refusal::of(error)) };
        let found = self.app().read(&Access::System(company), Needs::Server, |_, _| Ok(())).await;
        let company = found.map_err(Refusal::of)?.company;
        let text = format!("{} requires single sign-on.", company.name);
        Ok(self.done(&login_path(company.slug.as_str(), next), Flash::bad(text)))
    }

    pub fn session_cookie(&self, text: &str) -> axum::http::HeaderValue {
        let is_secure = self.is_secure();
        cookie::write(cookie::session_name(is_secure), text, Keep::Days(COOKIE_DAYS), is_secure)
    }
}

async fn log_out(State(pages): State<Pages>, visitor: Visitor) -> Response {
    // It does not matter whether the session had already ended.
    let _ = pages.write_as(&visitor.access(), visitor.origin, EndSession(visitor.session)).await;
    let mut response = pages.done("/login", Flash::good("You’re logged out."));
    let is_secure = pages.is_secure();
    let gone = cookie::write(cookie::session_name(is_secure), "", Keep::Not, is_secure);
    response.headers_mut().append(SET_COOKIE, gone);
    response
}
