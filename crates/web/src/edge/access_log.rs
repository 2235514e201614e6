//! The access log: one line for each request, written when its response has been sent or given up.
//!
//! Queries are never logged, because they may say whom someone searched for. Neither are the secrets in links: the line
//! shows the route in place of such a path.

use std::borrow::Cow;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use axum::extract::MatchedPath;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::request_id::RequestId;

/// Parameters of routes that are secrets.
const SECRET_PARAMETERS: [&str; 2] = ["{token}", "{secret}"];
/// The beginnings of links with secrets. A path that is no route may still contain such a link, with a slash too many.
const SECRET_LINKS: [&str; 4] = ["/email-change/", "/invitation/", "/password-reset/", "/setup/"];

/// Who sent a request, as far as it becomes known while it is served.
#[derive(Debug, Clone, Default)]
pub struct Who(Arc<(OnceLock<CompanyId>, OnceLock<PersonId>)>);

impl Who {
    /// The company of the credential that was presented.
    pub fn is_of(&self, company: CompanyId) {
        let _ = self.0.0.set(company);
    }

    /// The person whom a session turned out to belong to.
    pub fn is_person(&self, person: PersonId) {
        let _ = self.0.1.set(person);
    }
}

/// The line of a request, as known when it arrives.
pub struct Line {
    pub started: Instant,
    pub id: RequestId,
    pub method: &'static str,
    /// `None` if no route matched.
    pub route: Option<MatchedPath>,
    pub path: String,
    pub address: IpAddr,
    pub who: Who,
}

impl Line {
    /// Writes the line once the response's body ends.
    pub fn after(self, response: Response) -> Response {
        let status = response.status();
        response.map(|body| Body::new(Sent { body, line: self, status, bytes: 0 }))
    }

    fn write(&self, status: StatusCode, bytes: u64) {
        let route = self.route.as_ref().map(MatchedPath::as_str);
        let (company, person) = (self.who.0.0.get(), self.who.0.1.get());
        tracing::info!(
            target: "access",
            method = self.method,
            path = &*shown(route, &self.path),
            status = status.as_u16(),
            seconds = self.started.elapsed().as_secs_f64(),
            bytes,
            address = %self.address.to_canonical(),
            request_id = self.id.as_str(),
            company = company.map(|company| company.0),
            person = person.map(tracing::field::display),
            "request"
        );
    }
}

/// The path without secrets.
fn shown<'a>(route: Option<&'a str>, path: &'a str) -> Cow<'a, str> {
    if let Some(route) = route {
        let has_secret = SECRET_PARAMETERS.iter().any(|parameter| route.contains(parameter));
        return Cow::Borrowed(if has_secret { route } else { path });
    }
    let lower = path.to_ascii_lowercase();
    let secrets = SECRET_LINKS.iter().filter_map(|link| lower.find(link).map(|at| at + link.len()));
    match secrets.min() {
        Some(at) => Cow::Owned(format!("{}…", &path[..at])),
        None => Cow::Borrowed(path),
    }
}

/// A response's body that counts what is sent. It is dropped when it has ended, or when the client is gone.
struct Sent {
    body: Body,
    line: Line,
    status: StatusCode,
    bytes: u64,
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.line.write(self.status, self.bytes);
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.bytes += data.len() as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_without_the_secret_in_it() {
        for (route, path, expected) in [
            (Some("/accounts/{id}"), "/accounts/acc_1", "/accounts/acc_1"),
            (Some("/invitation/{token}"), "/invitation/hunter2", "/invitation/{token}"),
            (Some("/setup/{secret}"), "/setup/hunter2", "/setup/{secret}"),
            (None, "/wp-login.php", "/wp-login.php"),
            (None, "/password-reset/hunter2/", "/password-reset/…"),
            (None, "/email-change/hunter2/", "/email-change/…"),
            (None, "/Invitation/hunter2", "/Invitation/…"),
            (None, "//setup/hunter2/setup/hunter2", "//setup/…"),
            (None, "/über", "/über"),
        ] {
            assert_eq!(shown(route, path), expected, "{path}");
        }
    }
}
