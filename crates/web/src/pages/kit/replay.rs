//! Handles a form that arrives twice only once, and answers both with the same response, so that a second click on a
//! button that creates a secret still shows the secret. Across nodes and restarts the command's own record of the form
//! prevents the repetition; there the second response only says that it was done.

use std::collections::HashMap;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use rapport_app::refusal::Refused;
use rapport_domain::id::FormId;
use rapport_domain::time::Time;
use tokio::sync::watch;

use crate::pages::Pages;
use crate::pages::kit::flash;
use crate::pages::kit::form::{self, Form};
use crate::pages::kit::refusal::{ErrorText, Refusal};

/// How long a response is kept.
const KEPT_SECONDS: i64 = 120;
/// Responses are kept in memory, so their number is limited.
const MAX_KEPT: usize = 512;
const MAX_ANSWER_BYTES: usize = 256 << 10;

#[derive(Default)]
pub struct Replays(Mutex<HashMap<Key, Entry>>);

/// The form id and the cookies, so that nobody gets another person's response.
type Key = (FormId, Vec<u8>);

struct Entry {
    since: Time,
    answer: watch::Receiver<Option<Answer>>,
}

#[derive(Clone)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// The visitor's role isn't enough.
    refused: Option<Refused>,
    /// What an error page says.
    error: Option<ErrorText>,
}

/// The middleware. Answers a form that arrived before with the same response.
pub async fn once(State(pages): State<Pages>, mut request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !is_form(request.headers()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let cookies = cookies(&parts.headers);
    let bytes = match form::read_body(Request::new(body), &pages).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal.into_response(),
    };
    let form = Form::parse(&bytes);
    let id = form.id();
    request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(form);
    match id {
        Ok(id) => pages.0.replays.answer((id, cookies), pages.app().now(), next.run(request)).await,
        Err(_) => next.run(request).await,
    }
}

impl Replays {
    async fn answer(
        &self,
        key: Key,
        now: Time,
        handler: impl Future<Output = Response> + Send + 'static,
    ) -> Response {
        let mut waiting = match self.first(&key, now) {
            Ok(answered) => {
                // Continue even if the browser aborts the first request.
                tokio::spawn(async move {
                    let answer = kept(handler.await).await;
                    answered.send_replace(Some(answer));
                });
                match self.0.lock().get(&key) {
                    Some(entry) => entry.answer.clone(),
                    None => return Refusal::too_slow().into_response(),
                }
            }
            Err(waiting) => waiting,
        };
        let answer = waiting.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        let Some(Answer { status, headers, body, refused, error }) = answer else {
            return Refusal::of(rapport_app::Error::OutcomeUnknown).into_response();
        };
        // A refused form may be sent again.
        if status.is_client_error() || status.is_server_error() {
            self.0.lock().remove(&key);
        }
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Some(refused) = refused {
            response.extensions_mut().insert(refused);
        }
        if let Some(error) = error {
            response.extensions_mut().insert(error);
        }
        response
    }

    /// The sender of the response for the first request, and its receiver for the others.
    fn first(
        &self,
        key: &Key,
        now: Time,
    ) -> Result<watch::Sender<Option<Answer>>, watch::Receiver<Option<Answer>>> {
        let mut kept = self.0.lock();
        // A response may contain a secret, so none is kept longer than necessary.
        let oldest = now.plus_seconds(-KEPT_SECONDS);
        kept.retain(|_, entry| entry.since > oldest);
        if let Some(entry) = kept.get(key) {
            return Err(entry.answer.clone());
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let (sender, receiver) = watch::channel(None);
        kept.insert(key.clone(), Entry { since: now, answer: receiver });
        Ok(sender)
    }
}

async fn kept(response: Response) -> Answer {
    let (mut parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, MAX_ANSWER_BYTES).await.unwrap_or_default();
    let refused = parts.extensions.remove::<Refused>();
    let error = parts.extensions.remove::<ErrorText>();
    Answer { status: parts.status, headers: parts.headers, body, refused, error }
}

fn is_form(headers: &HeaderMap) -> bool {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    sent.is_some_and(|sent| {
        sent.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(form::MEDIA_TYPE)
    })
}

/// The cookies without the flash, which the response to the first click may have set meanwhile.
fn cookies(headers: &HeaderMap) -> Vec<u8> {
    let sent = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
    let pairs = sent.flat_map(|value| value.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    let is_flash = |pair: &[u8]| pair.split(|byte| *byte == b'=').next() == Some(flash::NAME.as_bytes());
    pairs.filter(|pair| !is_flash(pair)).collect::<Vec<_>>().join(&b';')
}
