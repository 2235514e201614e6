//! Shows error pages and the API's documentation within the navigation, for a person who is logged in. Strangers, and
//! people whose company can't be read now, get the plain page.

use askama::Template;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::StatusCode;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

use crate::pages::kit::frame::{Frame, Page as _, framed, html};
use crate::pages::kit::refusal::ErrorText;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{Pages, READ};
use crate::shared::documentation::Documentation;

#[derive(Template)]
#[template(path = "error_framed.html")]
struct ErrorPage {
    frame: Frame,
    error: ErrorText,
}

#[derive(Template)]
#[template(path = "api/docs_framed.html")]
struct DocumentationPage {
    frame: Frame,
    documentation: Documentation,
}
framed!("api": DocumentationPage);
framed!("": ErrorPage);

/// Serves a request. It isn't a layer of its own, because programs' requests would pay for that as well.
pub async fn around(pages: &Pages, request: Request, next: Next) -> Response {
    if request.headers().contains_key(COOKIE) {
        Box::pin(around_a_browsers(pages, request, next)).await
    } else {
        next.run(request).await
    }
}

async fn around_a_browsers(pages: &Pages, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let asked = parts.clone();
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(documentation) = response.extensions_mut().remove::<Documentation>() {
        let Some(frame) = frame(pages, asked).await else { return response };
        return DocumentationPage { frame, documentation }.respond();
    }
    let error = response.extensions_mut().remove::<ErrorText>().filter(|_| is_about_the_request(&response));
    let Some(error) = error else { return response };
    let Some(mut frame) = frame(pages, asked).await else { return response };
    // The next page shows the message.
    frame.look.flash = None;
    let (head, _) = response.into_parts();
    let body = html(head.status, ErrorPage { frame, error }.render()).into_body();
    Response::from_parts(head, body)
}

/// Something that the visitor asked for is wrong, and the service is well. Who sends too much gets as little as possible.
fn is_about_the_request(response: &Response) -> bool {
    response.status().is_client_error() && response.status() != StatusCode::TOO_MANY_REQUESTS
}

async fn frame(pages: &Pages, mut asked: Parts) -> Option<Frame> {
    let visitor = Visitor::from_request_parts(&mut asked, pages).await.ok()?;
    Some(pages.show(&visitor, READ, |_, _| Ok(())).await.ok()?.frame)
}
