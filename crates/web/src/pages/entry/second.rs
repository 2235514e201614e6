//! The second step of logging in: a code or a passkey, after the password or in a session that lacks it. And the page that
//! a person gets whose company requires a second factor, while they have none.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::passkey::{self, Aim};
use rapport_app::read::factors::{Holder, Step};
use rapport_app::read::profile::Workplace;
use rapport_app::second_step::{Asked, Completed, Shown, Standing};
use rapport_app::session;
use rapport_domain::second_factor::{Code, FIRST_STEP_SECONDS, Factor};

use crate::edge::guessing::Guess;
use crate::pages::Pages;
use crate::pages::kit::challenge;
use crate::pages::kit::cookie::{self, Keep};
use crate::pages::kit::form::Form;
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::origin::own_path;
use crate::pages::kit::refusal::{Refusal, SECOND_STEP, leading_back};
use crate::pages::kit::visit::Visit;
use crate::pages::kit::visitor::Stranger;

/// The cookie of the first step.
const COOKIE: &str = "first_step";
const SET_UP: &str = "/login/set-up";

const WRONG_CODE: &str = "Incorrect code. A code from your app works once, and for a minute at most.";
const REFUSED_CODE: &str = "Codes from your app aren’t accepted at the moment. Use a recovery code or a passkey, or ask \
                            an owner of your company to reset your second factor.";
const WRONG_PASSKEY: &str = "That passkey wasn’t accepted. Try again.";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(SECOND_STEP, get(show).post(try_code))
        .route("/login/second/challenge", post(ask))
        .route("/login/second/passkey", post(try_passkey))
        .route(SET_UP, get(set_up))
}

#[derive(Template)]
#[template(path = "login_second.html")]
struct SecondPage {
    frame: PlainFrame,
    next: String,
    has_app: bool,
    has_passkeys: bool,
    error: Option<&'static str>,
}

impl SecondPage {
    fn new(pages: &Pages, stranger: &Stranger, asked: &Asked, next: String) -> Self {
        let has_passkeys = !asked.credentials.is_empty() && pages.app().services().passkeys().is_ok();
        let (frame, has_app) = (PlainFrame::new(stranger, pages), asked.has_app);
        Self { frame, next, has_app, has_passkeys, error: None }
    }

    fn refuse(self, error: &'static str) -> Response {
        html(StatusCode::UNPROCESSABLE_ENTITY, Self { error: Some(error), ..self }.render())
    }
}

impl Pages {
    /// Leads a person who gave their password to the second step.
    pub fn ask_second(&self, ticket: &str, next: &str) -> Response {
        let mut response = Redirect::to(&leading_back(SECOND_STEP, Some(next))).into_response();
        response.headers_mut().append(SET_COOKIE, self.first_step(ticket, Keep::Seconds(FIRST_STEP_SECONDS)));
        response
    }

    fn first_step(&self, ticket: &str, keep: Keep) -> HeaderValue {
        cookie::write(COOKIE, ticket, keep, self.is_secure())
    }
}

/// The person who has to show a second factor. Others are led to where they belong.
async fn asked(
    pages: &Pages,
    stranger: &Stranger,
    headers: &HeaderMap,
    next: &str,
) -> Result<Asked, Refusal> {
    let lead = |path: &str| Err(Refusal::Again(Box::new(Redirect::to(path).into_response())));
    if let Some(ticket) = cookie::read(headers, COOKIE)
        && let Some(asked) = Asked::by_ticket(pages.app(), ticket).await.map_err(Refusal::of)?
    {
        return Ok(asked);
    }
    let Some(session) = stranger.session else { return lead(&leading_back("/login", Some(next))) };
    match Asked::by_session(pages.app(), session).await {
        Ok(Standing::Show(asked)) => Ok(asked),
        Ok(Standing::SetUp) => lead(&leading_back(SET_UP, Some(next))),
        Ok(Standing::Nothing) => lead(next),
        Err(Error::Unauthenticated) => lead(&leading_back("/login", Some(next))),
        Err(error) => Err(Refusal::of(error)),
    }
}

async fn show(
    State(pages): State<Pages>,
    stranger: Stranger,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let next = own_path(Form::of_query(query.as_deref()).text("next"));
    let asked = asked(&pages, &stranger, &headers, &next).await?;
    Ok(html(StatusCode::OK, SecondPage::new(&pages, &stranger, &asked, next).render()))
}

async fn try_code(
    State(pages): State<Pages>,
    stranger: Stranger,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    let next = own_path(form.text("next"));
    let asked = asked(&pages, &stranger, &headers, &next).await?;
    let guess = admit(&pages, &stranger, &asked)?;
    let (factor, done) = match Code::read(form.text("code")).map(Shown::Code) {
        Some(shown) => (shown.factor(), complete(&pages, &stranger, &asked, shown).await),
        None => (Factor::Totp, Ok(Completed::Wrong)),
    };
    guess.settle(matches!(done, Ok(Completed::Wrong | Completed::Refused)));
    settle(&pages, &stranger, &asked, next, factor, done).await
}

/// An attempt at the second factor is limited like one at the password.
fn admit<'a>(pages: &'a Pages, stranger: &Stranger, asked: &Asked) -> Result<Guess<'a>, Refusal> {
    let attempt = stranger.attempt(pages, &asked.email);
    if attempt.browser.is_none() {
        stranger.admit(pages)?;
    }
    pages.0.limiter.guessing.admit(attempt, pages.app().now()).map_err(Refusal::too_many)
}

async fn complete(
    pages: &Pages,
    stranger: &Stranger,
    asked: &Asked,
    shown: Shown,
) -> Result<Completed, Error> {
    let complete = asked.complete(shown, stranger.look.browser.as_deref());
    let complete = complete.announced(!stranger.knows(pages, &asked.email));
    pages.write_as(&asked.access(), stranger.origin, complete).await
}

/// Lets the person in, or shows the page again.
async fn settle(
    pages: &Pages,
    stranger: &Stranger,
    asked: &Asked,
    next: String,
    factor: Factor,
    done: Result<Completed, Error>,
) -> Result<Response, Refusal> {
    let error = match (done, factor) {
        (Ok(Completed::Begun(session)), _) => {
            let mut response = pages.begun(stranger, &session, &asked.email, &next).await;
            response.headers_mut().append(SET_COOKIE, pages.first_step("", Keep::Not));
            return Ok(response);
        }
        (Ok(Completed::Refused), _) => REFUSED_CODE,
        (Ok(Completed::Wrong), Factor::Passkey) => WRONG_PASSKEY,
        (Ok(Completed::Wrong), Factor::Totp | Factor::RecoveryCode) => WRONG_CODE,
        (Err(error), _) => return pages.not_begun(asked.company, &next, error).await,
    };
    pages.note_failed_factor(asked.person, factor, stranger.origin);
    Ok(SecondPage::new(pages, stranger, asked, next).refuse(error))
}

async fn ask(
    State(pages): State<Pages>,
    stranger: Stranger,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let asked = asked(&pages, &stranger, &headers, "/").await?;
    Ok(challenge::respond(passkey::challenge(pages.app().services(), Aim::Login, &asked.credentials)))
}

async fn try_passkey(
    State(pages): State<Pages>,
    stranger: Stranger,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    let next = own_path(form.text("next"));
    let asked = asked(&pages, &stranger, &headers, &next).await?;
    let guess = admit(&pages, &stranger, &asked)?;
    let done = with_passkey(&pages, &stranger, &asked, &form).await;
    guess.settle(matches!(done, Ok(Completed::Wrong)));
    settle(&pages, &stranger, &asked, next, Factor::Passkey, done).await
}

async fn with_passkey(
    pages: &Pages,
    stranger: &Stranger,
    asked: &Asked,
    form: &Form,
) -> Result<Completed, Error> {
    let claim = pages.read_passkey(Aim::Login, form).await?;
    let Some(claim) = claim else { return Ok(Completed::Wrong) };
    let used = pages.check_passkey(claim, Some(asked.person)).await?;
    let Some(used) = used else { return Ok(Completed::Wrong) };
    complete(pages, stranger, asked, Shown::Passkey(used)).await
}

#[derive(Template)]
#[template(path = "login_set_up.html")]
struct SetUpPage {
    frame: PlainFrame,
    next: String,
    company: String,
    /// Why there are no passkeys, if there are none.
    no_passkeys: Option<String>,
    /// Where they work besides.
    others: Vec<Workplace>,
}

impl SetUpPage {
    /// A page that leads back to where the person wanted to go.
    fn link(&self, path: &str) -> String {
        leading_back(path, Some(&self.next))
    }
}

async fn set_up(visit: Visit) -> Result<Response, Refusal> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let next = own_path(visit.query.text("next"));
    let Holder { person, company, step, confined, .. } = visit.holder().await?;
    match step {
        Step::SetUp => {}
        Step::Show => return Ok(Redirect::to(&leading_back(SECOND_STEP, Some(&next))).into_response()),
        Step::Nothing => return Ok(Redirect::to(&next).into_response()),
    }
    let mut others = session::workplaces(pages.app(), person, confined).await.map_err(Refusal::of)?;
    others.retain(|place| place.company != visitor.session.company);
    let page = SetUpPage {
        frame: PlainFrame::of(&visitor.look, pages),
        next,
        company,
        no_passkeys: pages.app().services().passkeys().err().map(|reason| reason.to_string()),
        others,
    };
    Ok(html(StatusCode::OK, page.render()))
}
