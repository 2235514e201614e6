//! Extractors for handlers: the caller, the body and what the path is about.

use std::convert::Infallible;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use rapport_app::{Access, Origin};
use rapport_domain::credential::Presented;
use rapport_domain::invalid::{Invalid, no_members};
use serde_json::{Map, Value};

use crate::api::Api;
use crate::api::repeat::{self, Repeat};
use crate::edge::auth::{Arrival, Scheme};
use crate::edge::json::{self, Object, Presence};
use crate::edge::problem::Problem;
use crate::shared::subject::{InPath, in_path};

/// The caller, by a well-formed credential that the use case verifies.
#[derive(Debug, Clone)]
pub struct Caller {
    pub presented: Presented,
    pub scheme: Scheme,
    pub origin: Origin,
    /// The credential was valid when it was last used.
    pub known: bool,
    /// The request has an `Idempotency-Key`.
    pub repeat: Option<Repeat>,
}

impl Caller {
    pub fn of(parts: &Parts) -> Result<Self, Problem> {
        let arrival = parts.extensions.get::<Arrival>();
        let Arrival { credential, origin, known } =
            *arrival.ok_or_else(|| Problem::internal("a request bypassed the front middleware"))?;
        let scheme = credential.scheme;
        let presented = credential.presented.ok_or_else(|| Problem::unauthenticated(scheme))?;
        Ok(Self { presented, scheme, origin, known, repeat: None })
    }

    pub fn access(&self) -> Access {
        Access::Credential(self.presented)
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Problem> {
        Self::of(parts)
    }
}

/// A request with a body. Errors in the body are reported after the caller is verified.
pub struct Call {
    pub caller: Caller,
    pub body: Result<Object, Problem>,
}

impl Call {
    async fn read(request: Request, api: &Api, presence: Presence) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let mut caller = match Caller::of(&parts) {
            Ok(caller) => caller,
            Err(refused) => {
                json::drain(body).await;
                return Err(refused);
            }
        };
        let bytes = json::read_bytes(&parts.headers, body, presence, api.0.body_timeout).await;
        let body = match (bytes, repeat::key(&parts)) {
            (Ok(bytes), Ok(None)) => json::object(bytes.as_deref().filter(|sent| counts(sent, presence))),
            (Ok(bytes), Ok(Some(key))) => {
                let sent = bytes.as_deref();
                let begun = api.repeat(&caller, &key, &parts, sent.unwrap_or_default());
                begun.and_then(|repeat| {
                    caller.repeat = Some(repeat);
                    json::object(sent.filter(|sent| counts(sent, presence)))
                })
            }
            (Err(problem), _) | (_, Err(problem)) => Err(problem),
        };
        Ok(Self { caller, body })
    }

    /// The caller and the parsed body.
    pub fn parse<T>(
        self,
        parse: impl FnOnce(&Map<String, Value>) -> Result<T, Invalid>,
    ) -> (Caller, Result<T, Problem>) {
        let parsed = self.body.and_then(|object| Ok(parse(&object.members)?));
        (self.caller, parsed)
    }
}

impl FromRequest<Api> for Call {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        Self::read(request, api, Presence::Required).await
    }
}

/// Whether a body was sent: null counts as none where none is needed.
fn counts(body: &[u8], presence: Presence) -> bool {
    matches!(presence, Presence::Required) || body.trim_ascii() != b"null"
}

/// A request whose members are all optional, so the body is too.
pub struct OptionalCall(Call);

impl OptionalCall {
    pub fn parse<T>(
        self,
        parse: impl FnOnce(&Map<String, Value>) -> Result<T, Invalid>,
    ) -> (Caller, Result<T, Problem>) {
        self.0.parse(parse)
    }
}

impl FromRequest<Api> for OptionalCall {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        Call::read(request, api, Presence::Optional).await.map(Self)
    }
}

/// A request that takes no members: no body, or an empty object.
pub struct PlainCall(Call);

impl PlainCall {
    /// The caller, and the command to run if the body is empty as required.
    pub fn command<C>(self, command: C) -> (Caller, Result<C, Problem>) {
        self.0.parse(|members| no_members(members).map(|()| command))
    }
}

impl FromRequest<Api> for PlainCall {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        Call::read(request, api, Presence::Optional).await.map(Self)
    }
}

/// A request that needs no credential. If one is sent, it is ignored.
pub struct OpenCall {
    pub origin: Origin,
    body: Result<Object, Problem>,
}

impl OpenCall {
    pub fn parse<T>(
        self,
        parse: impl FnOnce(&Map<String, Value>) -> Result<T, Invalid>,
    ) -> Result<T, Problem> {
        Ok(parse(&self.body?.members)?)
    }
}

impl FromRequest<Api> for OpenCall {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let arrival = parts.extensions.get::<Arrival>();
        let origin =
            arrival.ok_or_else(|| Problem::internal("a request bypassed the front middleware"))?.origin;
        let body = json::read(&parts.headers, body, Presence::Required, api.0.body_timeout).await;
        Ok(Self { origin, body })
    }
}

/// What the path is about. If that can't be read, the caller is verified before they learn that it isn't found.
pub struct Id<T>(pub Result<T, Problem>);

impl<T: InPath> FromRequestParts<Api> for Id<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Infallible> {
        Ok(Self(in_path(parts).await))
    }
}
