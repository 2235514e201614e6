//! Requests with a condition: `If-None-Match` on what is read, `If-Match` on what is changed.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use rapport_app::precondition::{Checked, IfCurrent, Subject};
use rapport_app::{Command, Viewer};
use rapport_store::Snapshot;

use crate::api::Api;
use crate::api::call::Caller;
use crate::edge::etag::{Etag, Tags};
use crate::edge::json::Rendered;
use crate::edge::problem::Problem;

/// The versions that a request names. If they can't be read, the caller is verified before they learn that.
pub struct Conditions(Result<Named, Problem>);

#[derive(Default)]
struct Named {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

impl FromRequestParts<Api> for Conditions {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Infallible> {
        let if_match = Tags::of(&parts.headers, &IF_MATCH);
        let if_none_match = Tags::of(&parts.headers, &IF_NONE_MATCH);
        Ok(Self(if_match.and_then(|if_match| Ok(Named { if_match, if_none_match: if_none_match? }))))
    }
}

impl Conditions {
    /// The response to a GET: 304 if the caller already has this version.
    pub fn answer(self, found: Rendered) -> Result<Response, Problem> {
        let etag = Etag::of(&found.body);
        if self.0?.if_none_match.is_some_and(|tags| tags.match_weakly(&etag)) {
            return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag.to_header())]).into_response());
        }
        Ok(versioned(found))
    }
}

/// A representation with its version.
pub fn versioned(rendered: Rendered) -> Response {
    let etag = Etag::of(&rendered.body).to_header();
    let mut response = rendered.into_response();
    response.headers_mut().insert(ETAG, etag);
    response
}

impl Api {
    /// Runs a command on something that the caller may know in an older version. `current` renders it as a GET does;
    /// `None` if it doesn't exist, which the command reports itself.
    pub(super) async fn change<K, C>(
        &self,
        caller: &Caller,
        conditions: Conditions,
        command: Result<(K, C), Problem>,
        current: impl Fn(&mut Snapshot, &Viewer, K) -> Result<Option<Rendered>, rapport_store::Error>
        + Send
        + Sync
        + 'static,
    ) -> Result<C::Reply, Problem>
    where
        K: Into<Subject> + Copy + Send + Sync + 'static,
        C: Command,
    {
        let (key, command, tags) = match command.and_then(|it| Ok((it, conditions.0?))) {
            Ok(((key, command), Named { if_match: Some(tags), .. })) => (key, command, tags),
            Ok(((_, command), Named { if_match: None, .. })) => return self.write(caller, Ok(command)).await,
            Err(problem) => return self.write::<C>(caller, Err(problem)).await,
        };
        let find_stale = Box::new(move |snapshot: &mut Snapshot, viewer: &Viewer| {
            let etag = current(snapshot, viewer, key)?.map(|rendered| Etag::of(&rendered.body));
            Ok(etag.filter(|etag| !tags.match_strongly(etag)))
        });
        match self.write(caller, Ok(IfCurrent { subject: key.into(), command, find_stale })).await? {
            Checked::Done(reply) => Ok(reply),
            Checked::Stale(etag) => Err(Problem::stale(&etag)),
        }
    }
}
