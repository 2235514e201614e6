//! Pages for people who are not logged in: a forgotten password, its reset, and an invitation.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use rapport_app::invitation::Offer;
use rapport_app::password_reset::{OpenReset, RequestReset};
use rapport_app::session::Proven;
use rapport_app::{Access, Error};
use rapport_domain::invitation::{Acceptance, Way};
use rapport_domain::password_reset::{Confirmation, parse_email};
use serde_json::{Map, Value};

use crate::pages::Pages;
use crate::pages::entry::sso::start_path;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{PlainFrame, html};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Stranger;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/forgotten", get(forgotten).post(ask))
        .route("/password-reset/{token}", get(reset).post(confirm))
        .route("/invitation/{token}", get(invitation).post(accept))
}

#[derive(Template)]
#[template(path = "forgotten.html")]
struct ForgottenPage {
    frame: PlainFrame,
    draft: Draft,
    is_mail_configured: bool,
}

async fn forgotten(State(pages): State<Pages>, stranger: Stranger) -> Response {
    let is_mail_configured = pages.app().services().outside().mail_configured;
    let frame = PlainFrame::new(&stranger, &pages);
    html(StatusCode::OK, ForgottenPage { frame, draft: Draft::default(), is_mail_configured }.render())
}

async fn ask(State(pages): State<Pages>, stranger: Stranger, form: Form) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let is_mail_configured = pages.app().services().outside().mail_configured;
    let email = match parse_email(&form.members(&[("email", As::Text)])) {
        Ok(email) => email,
        Err(invalid) => {
            let draft = Draft::refused(&form, invalid.into()).map_err(Refusal::of)?;
            let page = ForgottenPage { frame: PlainFrame::new(&stranger, &pages), draft, is_mail_configured };
            return Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()));
        }
    };
    let asked = pages.write_as(&Access::NO_COMPANY, stranger.origin, RequestReset(email)).await;
    asked.map_err(Refusal::of)?;
    // The same message whether or not there is such a person.
    let text =
        "If this address has a login here, a mail with a link is on its way. The link works for one hour.";
    Ok(pages.done("/login", Flash::good(text)))
}

#[derive(Template)]
#[template(path = "reset.html")]
struct ResetPage {
    frame: PlainFrame,
    email: String,
    draft: Draft,
}

async fn reset(
    State(pages): State<Pages>,
    stranger: Stranger,
    Path(token): Path<String>,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let open = OpenReset::look(pages.app(), &token).await.map_err(link_is_over)?;
    let email = open.email.as_str().to_owned();
    let page = ResetPage { frame: PlainFrame::new(&stranger, &pages), email, draft: Draft::default() };
    Ok(html(StatusCode::OK, page.render()))
}

async fn confirm(
    State(pages): State<Pages>,
    stranger: Stranger,
    Path(token): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let open = OpenReset::look(pages.app(), &token).await.map_err(link_is_over)?;
    let (email, access) = (open.email.as_str().to_owned(), open.access());
    let members = with_token(form.members(&[("password", As::Verbatim)]), token);
    let chosen = match Confirmation::parse(&members) {
        Ok(Confirmation { password, .. }) => {
            pages.slowly(move |services| open.choose(services, &password)).await
        }
        Err(invalid) => Err(invalid.into()),
    };
    let command = match chosen {
        Ok(command) => command,
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(Refusal::of)?;
            let page = ResetPage { frame: PlainFrame::new(&stranger, &pages), email, draft };
            return Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()));
        }
    };
    let done = pages.write_as(&access, stranger.origin, command).await;
    done.map_err(link_is_over)?;
    Ok(pages.done("/login", Flash::good("Password changed. Log in with your new password.")))
}

/// The members that the API takes: the fields of a form, and the token in its address.
fn with_token(mut members: Map<String, Value>, token: String) -> Map<String, Value> {
    members.insert("token".to_owned(), Value::from(token));
    members
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: PlainFrame,
    company: String,
    email: String,
    role: &'static str,
    /// Whether they join with a login they have.
    is_known: bool,
    /// Whether they may choose between that and a new login.
    is_choice: bool,
    /// The way to the company's single sign-on, if it requires that.
    sso: Option<String>,
    draft: Draft,
}

impl InvitationPage {
    fn new(pages: &Pages, stranger: &Stranger, offer: &Offer, chosen: Option<Way>) -> Self {
        Self {
            frame: PlainFrame::new(stranger, pages),
            company: offer.company.clone(),
            email: offer.email.as_str().to_owned(),
            role: offer.role.as_str(),
            is_known: offer.way().or(chosen) == Some(Way::Existing),
            is_choice: offer.way().is_none(),
            sso: offer.needs_sso.then(|| start_path(&offer.slug)),
            draft: Draft::new([("name", offer.name.clone().unwrap_or_default())]),
        }
    }
}

async fn invitation(
    State(pages): State<Pages>,
    stranger: Stranger,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let offer = Offer::look(pages.app(), &token).await.map_err(link_is_over)?;
    let page = InvitationPage::new(&pages, &stranger, &offer, way(&Form::of_query(query.as_deref())));
    Ok(html(StatusCode::OK, page.render()))
}

async fn accept(
    State(pages): State<Pages>,
    stranger: Stranger,
    Path(token): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    stranger.admit(&pages)?;
    let offer = Offer::look(pages.app(), &token).await.map_err(link_is_over)?;
    let (chosen, email, now) = (way(&form), offer.email.clone(), pages.app().now());
    let refused = InvitationPage::new(&pages, &stranger, &offer, chosen);
    if offer.needs_sso {
        return Ok(html(StatusCode::FORBIDDEN, refused.render()));
    }
    let guesses = offer.guesses(chosen);
    let (attempt, guessing) = (stranger.attempt(&pages, &email), &pages.0.limiter.guessing);
    let guess = guesses.then(|| guessing.admit(attempt, now)).transpose().map_err(Refusal::too_many)?;
    let fields = [("name", As::Text), ("password", As::Verbatim), ("login", As::Text)];
    let joined = join(&pages, &stranger, offer, &with_token(form.members(&fields), token)).await;
    if let Some(guess) = guess {
        guess.settle(joined.as_ref().is_err_and(Error::is_wrong_password));
    }
    match joined {
        Ok(proven) => {
            let login = if guesses { Way::Existing } else { Way::New };
            pages.admit(&stranger, proven, &email, login, "/").await
        }
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(Refusal::of)?;
            Ok(html(StatusCode::UNPROCESSABLE_ENTITY, InvitationPage { draft, ..refused }.render()))
        }
    }
}

/// The way to join that a form or an address names.
fn way(form: &Form) -> Option<Way> {
    Way::from_json(&Value::from(form.text("login"))).ok()
}

async fn join(
    pages: &Pages,
    stranger: &Stranger,
    offer: Offer,
    members: &Map<String, Value>,
) -> Result<Proven, Error> {
    let acceptance = Acceptance::parse(members)?;
    let access = offer.access();
    let accept = pages.slowly(move |services| offer.answer(services, acceptance)).await?;
    let joined = pages.write_as(&access, stranger.origin, accept).await?;
    Ok(Proven { person: joined.person, company: access.company() })
}

/// Reports any fault of the link (mistyped, used, replaced or expired) as one error page.
fn link_is_over(error: Error) -> Refusal {
    match error {
        Error::Invalid(_) => Refusal::link_is_over(),
        error => Refusal::of(error),
    }
}
