//! The weekly digest: its schedule, a preview, and past digests.

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::Error;
use rapport_app::digest::{Rendered, preview, send_once};
use rapport_app::read::digest::{self, Content, Counts, Digest, Sent};
use rapport_app::read::{DEFAULT_LIMIT, Page as Listed};
use rapport_app::settings::PatchSettings;
use rapport_domain::digest::{Audience, Week};

use super::{back_to, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, Shown, framed, html};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::words::number::counted;
use crate::pages::{Pages, SETTINGS};

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
        .route(PATH, get(show::<DigestPage, ()>).post(save))
        .route("/settings/digest/send", post(send).merge(back_to(PATH)))
        .route("/settings/digest/preview", get(preview_as_mail))
        .route("/settings/digest/{week}", get(show::<OnePage, Week>))
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

impl Load<()> for DigestPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let before = Week::parse(visit.query.text("before"));
        let found = visit.read(SETTINGS, move |snapshot, _| digest::past(snapshot, before, DEFAULT_LIMIT));
        let Shown { frame, reply: Listed { items: past, more } } = found.await?;
        let preview = preview(visit.pages.app(), &visit.visitor.access()).await;
        let preview = preview.map_err(|error| visit.visitor.refused(error))?;
        let settings = &frame.company.settings;
        let enabled = settings.digest_enabled.then(|| ("digest_enabled", "on".to_owned()));
        let weekday = ("digest_weekday", settings.digest_weekday.as_str().to_owned());
        let draft = Draft::new(enabled.into_iter().chain([weekday]));
        let next = past.last().filter(|_| more).map(|(last, _)| last.week);
        Ok(Self { frame, draft, sending: Draft::default(), weekdays: &WEEKDAYS, preview, past, next })
    }
}

async fn save(action: Action) -> Result<Response, Refusal> {
    let members = action.form.members(&[("digest_enabled", As::Ticked), ("digest_weekday", As::Text)]);
    let command = PatchSettings(members);
    let company = action.send(command, |page: &mut DigestPage, draft| page.draft = draft).await?;
    let is_on = company.settings.digest_enabled;
    action.done(PATH, if is_on { "Digest schedule saved." } else { "Weekly digest turned off." })
}

/// Sends the digest now, to the visitor or to everyone.
async fn send(action: Action) -> Result<Response, Refusal> {
    let frame = action.frame(SETTINGS).await?;
    let is_everyone = action.form.text("to") == "everyone";
    let audience = if is_everyone { Audience::Everyone } else { Audience::Member(frame.person) };
    let sent = send_as(&action, audience).await;
    let mails = action.settle(sent, |page: &mut DigestPage, draft| page.sending = draft).await?;
    let mails = counted(i64::try_from(mails).unwrap_or(0), "mail is", "mails are");
    let flash = Flash::good(format!("Digest created: {mails} on the way."));
    action.done(PATH, flash.link("View mail", "/settings/mail"))
}

async fn send_as(action: &Action, audience: Audience) -> Result<usize, Error> {
    let (access, origin) = (action.visitor.access(), Some(action.visitor.origin));
    send_once(action.pages.app(), &access, origin, audience, action.form.id()?).await
}

async fn preview_as_mail(visit: Visit) -> Result<Response, Refusal> {
    visit.frame(SETTINGS).await?;
    let made = preview(visit.pages.app(), &visit.visitor.access()).await;
    Ok(as_mail(made.map_err(|error| visit.visitor.refused(error))?.html))
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

impl Load<Week> for OnePage {
    async fn load(visit: &Visit<Week>) -> Result<Self, Refusal> {
        let week = visit.id;
        let found = visit.read(SETTINGS, move |snapshot, _| digest::of_week(snapshot, week));
        let Shown { frame, reply } = found.await?;
        let Sent { digest, counts, content } = reply.ok_or_else(|| Refusal::not_found("digest"))?;
        Ok(Self { frame, made: digest, counts, content })
    }
}

async fn one_as_mail(visit: Visit<Week>) -> Result<Response, Refusal> {
    Ok(as_mail(OnePage::load(&visit).await?.content.html))
}
