//! Requests that are safe to repeat: the `Idempotency-Key` header.
//!
//! A handler of a POST runs its command with `act`. Without the header that is a plain write. With it, the command and
//! its rendered response are stored in one transaction, and a repeat gets that response.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::header::{HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use rapport_app::submission::{self, Claim, Outcome, Render, Repeatable};
use rapport_app::{Command, Needs, Viewer};
use rapport_domain::id::{CompanyId, ResponseId};
use rapport_domain::repeat::{Key, RequestHash, RequestHasher};
use rapport_store::Snapshot;

use crate::api::Api;
use crate::api::call::Caller;
use crate::edge::json::Rendered;
use crate::edge::problem::Problem;

pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A request with a key, while it is being handled.
#[derive(Debug, Clone)]
pub struct Repeat {
    pub claim: Claim,
    _turn: Arc<Turn>,
}

/// The key of a request, if it has one. Only a POST needs one: other methods are safe to repeat anyway.
pub fn key(parts: &Parts) -> Result<Option<Key>, Problem> {
    if parts.method != Method::POST {
        return Ok(None);
    }
    let mut sent = parts.headers.get_all(KEY).iter();
    let Some(first) = sent.next() else { return Ok(None) };
    let bad = |detail: &str| {
        Problem::bad_request("bad_idempotency_key", format!("the Idempotency-Key header {detail}"))
    };
    if sent.next().is_some() {
        return Err(bad("must be sent only once"));
    }
    let text =
        first.to_str().map_err(|_| bad("must consist of printable ASCII characters without spaces"))?;
    Key::parse(text).map(Some).map_err(|fault| bad(&fault.detail))
}

/// Begins the hash of a request.
pub fn hasher(parts: &Parts) -> RequestHasher {
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    RequestHasher::new(parts.method.as_str(), target)
}

/// The requests with keys that this process is handling.
#[derive(Debug, Clone, Default)]
pub struct InProgress(Arc<Mutex<HashSet<Place>>>);

type Place = (CompanyId, ResponseId);

impl InProgress {
    /// `None` if a request with the same key is being handled.
    pub fn enter(&self, place: Place) -> Option<Turn> {
        self.0.lock().insert(place).then(|| Turn { place, all: Arc::clone(&self.0) })
    }
}

/// The right to handle a request. It ends before the response is sent, or when the caller hangs up. A command that is still
/// waiting then is no danger: its own record of the key keeps it from acting twice.
#[derive(Debug)]
pub struct Turn {
    place: Place,
    all: Arc<Mutex<HashSet<Place>>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.all.lock().remove(&self.place);
    }
}

impl Api {
    /// Takes the turn of a key.
    pub(super) fn turn(&self, caller: &Caller, key: &Key) -> Result<(ResponseId, Arc<Turn>), Problem> {
        let id = key.response_of(&caller.presented.hash);
        let turn =
            self.0.in_progress.enter((caller.presented.company, id)).ok_or_else(Problem::in_progress)?;
        Ok((id, Arc::new(turn)))
    }

    /// Begins to handle a request with a key and this body.
    pub(super) fn repeat(
        &self,
        caller: &Caller,
        key: &Key,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Repeat, Problem> {
        let (id, turn) = self.turn(caller, key)?;
        let mut hasher = hasher(parts);
        hasher.body(body);
        Ok(Repeat::new(id, hasher.finish(), turn))
    }

    /// The response that is kept for the request, if it has a key and was done before. For requests that look around before
    /// they act: what they see may have changed since.
    pub(super) async fn recalled(&self, caller: &Caller, needs: Needs) -> Result<Option<Response>, Problem> {
        let Some(Repeat { claim, .. }) = caller.repeat else { return Ok(None) };
        let services = Arc::clone(self.app().services());
        let found = self.read(caller, needs, Ok(claim), move |snapshot, viewer, claim| {
            submission::recall::<()>(snapshot, services.vault(), &claim, viewer.now)
        });
        found.await?.reply.map(answer).transpose()
    }

    /// Whether something is kept for a key. For requests whose hash is known only when all of it has arrived.
    pub(super) async fn is_kept(
        &self,
        caller: &Caller,
        id: ResponseId,
        needs: Needs,
    ) -> Result<bool, Problem> {
        let found = self.read(caller, needs, Ok(id), |snapshot, viewer, id| {
            submission::is_kept(snapshot, id, viewer.now)
        });
        Ok(found.await?.reply)
    }

    /// Runs a command once, however often its request is repeated, and renders its reply.
    pub(super) async fn act<C: Command>(
        &self,
        caller: &Caller,
        command: Result<C, Problem>,
        render: impl Fn(C::Reply) -> Rendered + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        match (&caller.repeat, command) {
            (Some(repeat), Ok(command)) => {
                let render = move |_: &mut Snapshot, _: &Viewer, reply| Ok((render(reply), ()));
                // In a box, so that requests without a key don't carry its size.
                let acted = Box::pin(self.act_once(caller, repeat, command, render));
                acted.await.map(|(response, _)| response)
            }
            (_, command) => Ok(render(self.write(caller, command).await?).into_response()),
        }
    }

    /// The same, for a response that shows more than the reply of the command.
    pub(super) async fn act_and_show<C: Command>(
        &self,
        caller: &Caller,
        command: Result<C, Problem>,
        render: impl Fn(&mut Snapshot, &Viewer, C::Reply) -> Result<Rendered, rapport_store::Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<Response, Problem> {
        match (&caller.repeat, command) {
            (Some(repeat), Ok(command)) => {
                let render = move |snapshot: &mut Snapshot, viewer: &Viewer, reply| {
                    Ok((render(snapshot, viewer, reply)?, ()))
                };
                let acted = Box::pin(self.act_once(caller, repeat, command, render));
                acted.await.map(|(response, _)| response)
            }
            (_, command) => {
                let reply = self.write(caller, command).await?;
                let shown = self.read(caller, C::NEEDS, Ok(reply), render).await?;
                Ok(shown.reply.into_response())
            }
        }
    }

    /// Runs the command of a request with a key. Also returns what `render` notes, if the command ran now.
    pub(super) async fn act_once<C: Command, N: Send + 'static>(
        &self,
        caller: &Caller,
        repeat: &Repeat,
        command: C,
        render: impl Fn(&mut Snapshot, &Viewer, C::Reply) -> Result<(Rendered, N), rapport_store::Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<(Response, Option<N>), Problem> {
        let repeatable = Repeatable { claim: repeat.claim, command, render: keeping(render) };
        settled(self.write(caller, Ok(repeatable)).await?)
    }
}

impl Repeat {
    pub fn new(id: ResponseId, request: RequestHash, turn: Arc<Turn>) -> Self {
        Self { claim: Claim { id, request }, _turn: turn }
    }
}

/// What `render` makes, as it is kept.
pub fn keeping<T: 'static, N: 'static>(
    render: impl Fn(&mut Snapshot, &Viewer, T) -> Result<(Rendered, N), rapport_store::Error>
    + Send
    + Sync
    + 'static,
) -> Render<T, N> {
    Arc::new(move |snapshot: &mut Snapshot, viewer: &Viewer, reply: T| {
        let (Rendered { status, body, is_secret }, note) = render(snapshot, viewer, reply)?;
        let body = String::from_utf8(body).unwrap_or_default();
        Ok((submission::Response { status: status.as_u16(), body, is_secret }, note))
    })
}

/// The response to a request with a key, and what was noted if it was done now.
pub fn settled<N>(outcome: Outcome<N>) -> Result<(Response, Option<N>), Problem> {
    match outcome {
        Outcome::Done { response, note } => {
            let submission::Response { status, body, .. } = response;
            Ok((respond(status, body), Some(note)))
        }
        Outcome::Repeated { status, body: Some(body) } => {
            let mut response = respond(status, body);
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok((response, None))
        }
        Outcome::Repeated { body: None, .. } => Err(Problem::response_not_kept()),
        Outcome::Reused => Err(Problem::key_reused()),
    }
}

fn answer(outcome: Outcome<()>) -> Result<Response, Problem> {
    settled(outcome).map(|(response, _)| response)
}

fn respond(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    Rendered { status, body: body.into_bytes(), is_secret: false }.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_progress_until_its_turn_ends() {
        let all = InProgress::default();
        let place = |company, byte| (CompanyId(company), ResponseId::from_bytes([byte; 16]));
        let turn = all.enter(place(1, 1)).unwrap();
        assert!(all.enter(place(1, 1)).is_none());
        assert!(all.enter(place(2, 1)).is_some() && all.enter(place(1, 2)).is_some());
        drop(turn);
        assert!(all.enter(place(1, 1)).is_some());
        assert!(all.0.lock().is_empty(), "nothing stays behind");
    }

    #[test]
    fn only_a_post_has_a_key_and_only_one() {
        let parts = |method: Method, keys: &[&'static str]| {
            let mut request = axum::http::Request::builder().method(method).uri("/api/accounts/");
            for key in keys {
                request = request.header(KEY, *key);
            }
            request.body(()).unwrap().into_parts().0
        };
        let code = |found: Result<Option<Key>, Problem>| found.map_err(|problem| problem.code());
        assert_eq!(code(key(&parts(Method::POST, &[]))), Ok(None));
        assert_eq!(code(key(&parts(Method::POST, &["a"]))), Ok(Key::parse("a").ok()));
        assert_eq!(code(key(&parts(Method::PATCH, &["a"]))), Ok(None));
        for wrong in [&["a", "a"][..], &[""], &["a b"]] {
            assert_eq!(code(key(&parts(Method::POST, wrong))), Err("bad_idempotency_key"), "{wrong:?}");
        }
    }
}
