//! First run: anyone who has the link that was printed at startup can create the company and its owner. There is no
//! default password, and the page is gone once there is a company.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use rapport_app::company::{CreateCompany, CreatedCompany, OwnerLogin};
use rapport_app::read::system::is_new;
use rapport_app::session::LogIn;
use rapport_app::{Access, Error, Services, password};
use rapport_domain::company::Create;
use rapport_domain::member::Email;
use rapport_domain::password::Known;
use subtle::ConstantTimeEq as _;

use crate::pages::Pages;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::known_browser;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Stranger;

pub fn routes() -> Router<Pages> {
    Router::new().route("/setup", get(without_link)).route("/setup/{secret}", get(show).post(create))
}

/// The secret in the link, created anew at each start.
pub type SetupSecret = Option<Arc<str>>;

pub struct Setup {
    secret: SetupSecret,
    /// There is a company. This never becomes false again.
    is_over: AtomicBool,
}

impl Setup {
    pub fn new(secret: SetupSecret) -> Self {
        Self { secret, is_over: AtomicBool::new(false) }
    }

    /// Whether there is no company yet.
    pub async fn is_open(&self, pages: &Pages) -> Result<bool, Refusal> {
        if self.is_over.load(Ordering::Acquire) {
            return Ok(false);
        }
        let is_new = pages.app().read_across(is_new).await.map_err(Refusal::of)?;
        if !is_new {
            self.is_over.store(true, Ordering::Release);
        }
        Ok(is_new)
    }

    async fn admit(&self, pages: &Pages, secret: &str) -> Result<(), Refusal> {
        let is_right = self.secret.as_ref().is_some_and(|own| own.as_bytes().ct_eq(secret.as_bytes()).into());
        if is_right && self.is_open(pages).await? { Ok(()) } else { Err(Refusal::not_found("page")) }
    }
}

#[derive(Template)]
#[template(path = "setup_without_link.html")]
struct WithoutLinkPage {
    frame: PlainFrame,
}

async fn without_link(State(pages): State<Pages>, stranger: Stranger) -> Result<Response, Refusal> {
    if !pages.0.setup.is_open(&pages).await? {
        return Ok(Redirect::to("/login").into_response());
    }
    Ok(html(StatusCode::OK, WithoutLinkPage { frame: PlainFrame::new(&stranger, &pages) }.render()))
}

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupPage {
    frame: PlainFrame,
    draft: Draft,
}

async fn show(
    State(pages): State<Pages>,
    stranger: Stranger,
    Path(secret): Path<String>,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    pages.0.setup.admit(&pages, &secret).await?;
    let page = SetupPage { frame: PlainFrame::new(&stranger, &pages), draft: Draft::default() };
    Ok(html(StatusCode::OK, page.render()))
}

#[derive(Template)]
#[template(path = "setup_done.html")]
struct SetupDonePage {
    frame: PlainFrame,
    created: CreatedCompany,
}

async fn create(
    State(pages): State<Pages>,
    stranger: Stranger,
    Path(secret): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    pages.0.setup.admit(&pages, &secret).await?;
    let frame = PlainFrame::new(&stranger, &pages);
    match found(&pages, &stranger, &form).await {
        Ok((created, cookie)) => {
            let mut response = html(StatusCode::OK, SetupDonePage { frame, created }.render());
            response.headers_mut().append(SET_COOKIE, pages.session_cookie(&cookie));
            // Their next login with this browser is not from a new one.
            let email = Email::parse(form.text("email").trim()).ok();
            if let Some(browser) = email.and_then(|email| known_browser::remember(&pages, &email)) {
                response.headers_mut().append(SET_COOKIE, browser);
            }
            Ok(response)
        }
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(Refusal::of)?;
            Ok(html(StatusCode::UNPROCESSABLE_ENTITY, SetupPage { frame, draft }.render()))
        }
    }
}

/// Creates the company and logs its owner in.
async fn found(pages: &Pages, stranger: &Stranger, form: &Form) -> Result<(CreatedCompany, String), Error> {
    let members = form.members(&[
        ("company", As::Text),
        ("project", As::Text),
        ("name", As::Text),
        ("email", As::Text),
        ("password", As::Verbatim),
    ]);
    let Create { slug, name, owner, owner_name, password } = Create::parse(&members)?;
    let (chosen, about) = (password.clone(), (owner.clone(), owner_name.clone(), name.clone()));
    let hash = move |services: &Services| {
        let (email, name, company) = &about;
        password::choose(services, &chosen, &Known { email, name, company })
    };
    let password_hash = pages.slowly(hash).await?;
    let project = Some(slug.as_str().to_owned());
    let owner_login = OwnerLogin::Chosen { password_hash };
    let command = CreateCompany { slug, name, owner: owner.clone(), owner_name, owner_login };
    let created = pages.write_as(&Access::NO_COMPANY, stranger.origin, command).await?;
    let looked = LogIn::look(pages.app(), owner, project).await?;
    let proven =
        pages.slowly(move |_| Ok(looked.check(&password))).await?.ok_or(Error::NotFound("person"))?;
    let begin = proven.begin(stranger.look.browser.as_deref());
    let cookie = pages.write_as(&proven.access(), stranger.origin, begin).await?;
    Ok((created, cookie))
}
