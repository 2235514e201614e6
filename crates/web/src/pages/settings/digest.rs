//! The weekly digest: its schedule, a preview, and past digests.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::digest::{Audience, Rendered, preview, send_once};
use rapport_app::read::digest::{self, Content, Counts, Digest, Sent};
use rapport_app::read::{DEFAULT_LIMIT, Page as Listed};
use rapport_app::settings::PatchSettings;
use rapport_domain::digest::Week;

use super::{back_to, tabbed};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed, html};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::words::number::counted;
use crate::pages::{ADMIN, Pages};

const PATH: &str = "/settings/digest";
/// Allows the inline styles of a mail, and nothing else.
const MAIL_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; \
                           base-uri 'none'; form-action 'none'";
const WEEKDAYS: [(&str, &str); 7] = [
    ("monday", "Monday"),
    ("tuesday", "Tuesday"),
    ("wednesday", "Wednesday"),
    ("thursday", "Thursday"),
    ("friday", "Friday"),
    ("saturday", "Saturday"),
    ("sunday", "Sunday"),
];

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show).post(save))
        .route("/settings/digest/send", post(send).merge(back_to(PATH)))
        .route("/settings/digest/preview", get(preview_as_mail))
        .route("/settings/digest/{week}", get(one))
        .route("/settings/digest/{week}/mail", get(one_as_mail))
}

#[derive(Template)]
#[template(path = "settings/digest.html")]
struct DigestPage {
    frame: Frame,
    draft: Draft,
    sending: Draft,
    weekdays: &'static [(&'static str, &'static str)],
    preview: Rendered,
    past: Vec<(Digest, Counts)>,
    next: Option<Week>,
}
framed!("settings": DigestPage, OnePage);
tabbed!("digest": DigestPage, OnePage);

impl DigestPage {
    async fn load(pages: &Pages, visitor: &Visitor, before: Option<Week>) -> Result<Self, Refusal> {
        let found =
            pages.show(visitor, ADMIN, move |snapshot, _| digest::past(snapshot, before, DEFAULT_LIMIT));
        let Shown { frame, reply: Listed { items: past, more } } = found.await?;
        let preview =
            preview(pages.app(), &visitor.access()).await.map_err(|error| visitor.refused(error))?;
        let settings = &frame.company.settings;
        let enabled = settings.digest_enabled.then(|| ("digest_enabled", "on".to_owned()));
        let weekday = ("digest_weekday", settings.digest_weekday.as_str().to_owned());
        let draft = Draft::new(enabled.into_iter().chain([weekday]));
        let next = past.last().filter(|_| more).map(|(last, _)| last.week);
        Ok(Self { frame, draft, sending: Draft::default(), weekdays: &WEEKDAYS, preview, past, next })
    }
}

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let before = Week::parse(Form::of_query(query.as_deref()).text("before"));
    Ok(DigestPage::load(&pages, &visitor, before).await?.respond())
}

async fn save(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let members = form.members(&[("digest_enabled", As::Ticked), ("digest_weekday", As::Text)]);
    match pages.submit(&visitor, &form, PatchSettings(members)).await {
        Ok(company) if company.settings.digest_enabled => {
            Ok(pages.done(PATH, Flash::good("Digest schedule saved.")))
        }
        Ok(_) => Ok(pages.done(PATH, Flash::good("Weekly digest turned off."))),
        Err(error) => {
            let draft = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            Ok(DigestPage { draft, ..DigestPage::load(&pages, &visitor, None).await? }.refuse())
        }
    }
}

/// Sends the digest now, to the visitor or to everyone.
async fn send(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let Shown { frame, reply: () } = pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
    let everyone = form.text("to") == "everyone";
    let audience = if everyone { Audience::Everyone } else { Audience::Member(frame.person) };
    let (access, address) = (visitor.access(), Some(visitor.address));
    let id = form.id().map_err(|error| visitor.refused(error))?;
    match send_once(pages.app(), &access, address, audience, id).await {
        Ok(mails) => {
            let mails = counted(i64::try_from(mails).unwrap_or(0), "mail is", "mails are");
            let flash = Flash::good(format!("Digest created: {mails} on the way."));
            Ok(pages.done(PATH, flash.link("View mail", "/settings/mail")))
        }
        Err(error) => {
            let sending = Draft::refused(&form, error).map_err(|error| visitor.refused(error))?;
            Ok(DigestPage { sending, ..DigestPage::load(&pages, &visitor, None).await? }.refuse())
        }
    }
}

async fn preview_as_mail(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    pages.show(&visitor, ADMIN, |_, _| Ok(())).await?;
    let made = preview(pages.app(), &visitor.access()).await.map_err(|error| visitor.refused(error))?;
    Ok(as_mail(made.html))
}

/// A digest as a mail program shows it.
fn as_mail(text: String) -> Response {
    let mut response = html(StatusCode::OK, Ok(text));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(MAIL_POLICY));
    response
}

#[derive(Template)]
#[template(path = "settings/digest_one.html")]
struct OnePage {
    frame: Frame,
    made: Digest,
    counts: Counts,
    content: Content,
}

impl OnePage {
    async fn load(pages: &Pages, visitor: &Visitor, week: &str) -> Result<Self, Refusal> {
        let week = Week::parse(week).ok_or_else(|| Refusal::not_found("digest"))?;
        let found = pages.show(visitor, ADMIN, move |snapshot, _| digest::of_week(snapshot, week));
        let Shown { frame, reply } = found.await?;
        let Sent { digest, counts, content } = reply.ok_or_else(|| Refusal::not_found("digest"))?;
        Ok(Self { frame, made: digest, counts, content })
    }
}

async fn one(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(week): Path<String>,
) -> Result<Response, Refusal> {
    Ok(OnePage::load(&pages, &visitor, &week).await?.respond())
}

async fn one_as_mail(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(week): Path<String>,
) -> Result<Response, Refusal> {
    Ok(as_mail(OnePage::load(&pages, &visitor, &week).await?.content.html))
}
