//! A delivery: its payload, headers and attempts.

use askama::Template;
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::response::Response;
use rapport_app::read::delivery::{self, KeptAttempt};
use rapport_app::redeliver::Redeliver;
use rapport_domain::delivery::SCHEDULE_SECONDS;
use rapport_domain::delivery_list::Shown as DeliveryState;
use rapport_domain::id::DeliveryId;
use rapport_domain::json_layout::indented;
use rapport_domain::standard_webhook::Signature;
use rapport_domain::webhook_header::{Header, MASK};

use crate::pages::WEBHOOKS;
use crate::pages::chart::phases::Phases;
use crate::pages::deliveries::PATH;
use crate::pages::deliveries::row::{Row, without_code};
use crate::pages::kit::action::Action;
use crate::pages::kit::frame::{self, Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit};
use crate::pages::words::number::grouped;

/// How many attempts the schedule has. Manual attempts are not part of it.
const SCHEDULED: usize = SCHEDULE_SECONDS.len() + 1;
/// How many characters of a payload are shown. The whole payload can be downloaded.
const MAX_SHOWN: usize = 32_000;
/// How many attempts are shown, newest first.
const MAX_ATTEMPTS: usize = 50;

#[derive(Template)]
#[template(path = "deliveries/one.html")]
pub struct DeliveryPage {
    frame: Frame,
    row: Row,
    payload: Option<Payload>,
    signature: Option<String>,
    /// The headers that the webhook adds.
    own_headers: Vec<Header>,
    attempts: Vec<AttemptView>,
    older_attempts: usize,
}
framed!("webhooks": DeliveryPage);

struct Payload {
    text: String,
    bytes: String,
    is_cut: bool,
}

impl Payload {
    fn new(raw: &str) -> Self {
        let mut text = indented(raw);
        let cut = text.char_indices().nth(MAX_SHOWN).map(|(at, _)| at);
        if let Some(at) = cut {
            text.truncate(at);
        }
        let bytes = grouped(i64::try_from(raw.len()).unwrap_or(i64::MAX));
        Self { text, bytes, is_cut: cut.is_some() }
    }
}

struct AttemptView {
    kept: KeptAttempt,
    phases: Phases,
    excerpt: Option<String>,
    /// The `webhook-signature` that the current secret gives.
    signature: Option<Signature>,
}

impl AttemptView {
    fn new((mut kept, signature): (KeptAttempt, Option<Signature>)) -> Self {
        let phases = Phases::of(&kept);
        let excerpt = kept.excerpt.take().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Self { kept, phases, excerpt, signature }
    }

    /// The error without the response code, which is shown beside it.
    fn error(&self) -> &str {
        without_code(self.kept.response_code, self.kept.error.as_deref().unwrap_or_default())
    }

    /// Why there was no complete response.
    fn failure(&self) -> Option<&str> {
        self.kept.failure.as_deref().map(|failure| match failure {
            "dns" => "name not found",
            "connect" => "no connection",
            "tls" => "invalid certificate or TLS error",
            "timeout" => "timed out",
            "protocol" => "invalid response",
            "destination_refused" => "destination refused",
            other => other,
        })
    }
}

impl Load<DeliveryId> for DeliveryPage {
    async fn load(visit: &Visit<DeliveryId>) -> Result<Self, Refusal> {
        let (id, services) = (visit.id, std::sync::Arc::clone(visit.pages.app().services()));
        let found = visit.read(WEBHOOKS, move |snapshot, _| delivery::page(snapshot, &services, id));
        let Shown { frame, reply } = found.await?;
        let delivery::DeliveryPage { row, payload, signature, headers, attempts } =
            reply.ok_or_else(|| Refusal::not_found("delivery"))?;
        let older_attempts = attempts.len().saturating_sub(MAX_ATTEMPTS);
        Ok(Self {
            frame,
            row: row.into(),
            payload: payload.as_deref().map(Payload::new),
            signature: signature.map(|signature| signature.to_string()),
            own_headers: headers,
            attempts: attempts.into_iter().rev().take(MAX_ATTEMPTS).map(AttemptView::new).collect(),
            older_attempts,
        })
    }
}

/// The exact bytes of the payload, to download and to sign.
pub async fn payload(visit: Visit<DeliveryId>) -> Result<Response, Refusal> {
    let (id, access) = (visit.id, visit.visitor.access());
    let found = visit.pages.app().read(&access, WEBHOOKS, move |snapshot, _| delivery::payload(snapshot, id));
    let found = found.await.map_err(|error| visit.visitor.refused(error))?.reply;
    let mut response = Response::new(Body::from(found.ok_or_else(|| Refusal::not_found("payload"))?));
    let headers = response.headers_mut();
    frame::write_headers(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
        .insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=payload.json"));
    Ok(response)
}

pub async fn redeliver(action: Action<DeliveryId>) -> Result<Response, Refusal> {
    action.act::<DeliveryPage, _>(Redeliver(action.id)).await?;
    let text = "Redelivery started. The attempt appears below when it has finished.";
    action.done(&format!("{PATH}/{}", action.id), text)
}
