//! Tells open pages that something in the company changed. The script then loads the page again and replaces the
//! regions that differ. Every page gets the same kind of message, so pages and script need not be kept in step. A page
//! says which version it shows, and is told immediately if that is no longer the current one.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::edge::rate_limit::network;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::Visit;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{Pages, READ};

/// The shortest time between two messages.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// The longest time between two messages, because other nodes commit too and relative times change.
const AT_LEAST_EVERY: Duration = Duration::from_secs(15);
/// A stream ends after this many messages and the browser reconnects, which frees its resources.
const MAX_MESSAGES: usize = 5_000;
/// Messages queued for a slow connection: a change, and the last message of the stream.
const QUEUED: usize = 2;
/// How soon a browser reconnects after a stream ended, unless the script closed it.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
enum Message {
    Changed,
    /// A newer stream of the session replaced this one.
    Crowded,
}

impl Message {
    /// Browsers ignore an event without data, so each has some.
    fn event(self) -> Event {
        match self {
            Self::Changed => Event::default().event("changed").retry(RECONNECT_AFTER).data("look again"),
            Self::Crowded => Event::default().event("crowded").data("closed"),
        }
    }
}

pub fn routes() -> Router<Pages> {
    Router::new().route("/live", get(changes))
}

async fn changes(visit: Result<Visit, Refusal>) -> Result<Response, Refusal> {
    match stream(visit).await {
        // A browser would follow the redirect to a page, which is no stream. After this status it ends the stream.
        Err(Refusal::LogIn { .. } | Refusal::SecondFactor { .. }) => {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        answer => answer,
    }
}

async fn stream(visit: Result<Visit, Refusal>) -> Result<Response, Refusal> {
    let Visit { pages, visitor, query, .. } = visit?;
    let found = pages.app().read(&visitor.access(), READ, |_, _| Ok(())).await;
    let company = found.map_err(|error| visitor.refused(error))?.company.id;
    let Some(stream) = pages.0.streams.open(visitor.session.hash, network(visitor.origin.address)) else {
        return Err(Refusal::of(rapport_app::Error::Busy));
    };
    let commits = pages.app().services().commits().listen(company);
    // Compared after listening began, so that nothing is missed in between.
    let is_behind = query.text("version") != pages.version(&visitor);
    let (sender, receiver) = mpsc::channel(QUEUED);
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&pages, &visitor, commits, is_behind, &sender) => {}
            // The browser disconnected, so its place is free immediately.
            () = sender.closed() => {}
            () = stream.over.cancelled() => {
                let _ = sender.try_send(Message::Crowded);
            }
        }
        drop(stream);
    });
    let events = ReceiverStream::new(receiver).map(|message: Message| Ok::<_, Infallible>(message.event()));
    let mut response = Sse::new(events).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that buffers responses would hold back the messages.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends a message after each change until the session ends.
async fn tell(
    pages: &Pages,
    visitor: &Visitor,
    mut commits: watch::Receiver<()>,
    mut is_behind: bool,
    messages: &mpsc::Sender<Message>,
) {
    for _ in 0..MAX_MESSAGES {
        if !is_behind {
            // Continue after a change or a timeout alike.
            let _ = timeout(AT_LEAST_EVERY, commits.changed()).await;
        }
        is_behind = false;
        commits.mark_unchanged();
        let still = pages.app().read(&visitor.access(), READ, |_, _| Ok(())).await;
        // Wait for an empty queue, so that there is always room for the last message of the stream.
        let Ok(mut places) = messages.reserve_many(QUEUED).await else { return };
        match places.next() {
            Some(place) if still.is_ok() => place.send(Message::Changed),
            _ => return,
        }
        drop(places);
        sleep(AT_MOST_EVERY).await;
    }
}
