//! Tells open pages that something in the company changed. The script then loads the page again and replaces the
//! regions that differ. Every page gets the same kind of message, so pages and script need not be kept in step.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{self, HeaderValue};
use axum::response::Response;
use axum::routing::get;
use hyper::body::Frame;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::edge::rate_limit::network;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{MEMBER, Pages};

/// The shortest time between two messages.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// The longest time between two messages, because other nodes commit too and relative times change.
const AT_LEAST_EVERY: Duration = Duration::from_secs(15);
/// A stream ends after this many messages and the browser reconnects, which frees its resources.
const MAX_MESSAGES: usize = 5_000;
/// Messages queued for a slow connection: a change, and the last message of the stream.
const QUEUED: usize = 2;

#[derive(Debug, Clone, Copy)]
enum Message {
    Changed,
    /// A newer stream of the session replaced this one.
    Crowded,
}

impl Message {
    /// The browser reconnects two seconds after a stream ended, unless the script closed it.
    ///
    /// Written out, because axum's `Event` leaves out empty data, and browsers ignore an event without data.
    const fn text(self) -> &'static str {
        match self {
            Self::Changed => "retry: 2000\nevent: changed\ndata:\n\n",
            Self::Crowded => "event: crowded\ndata:\n\n",
        }
    }
}

pub fn routes() -> Router<Pages> {
    Router::new().route("/live", get(changes))
}

async fn changes(State(pages): State<Pages>, visitor: Visitor) -> Result<Response, Refusal> {
    let found = pages.app().read(&visitor.access(), MEMBER, |_, _| Ok(())).await;
    let company = found.map_err(|error| visitor.refused(error))?.company.id;
    let Some(stream) = pages.0.streams.open(visitor.session.hash, network(visitor.address)) else {
        return Err(Refusal::of(rapport_app::Error::Busy));
    };
    let commits = pages.app().services().commits().listen(company);
    let (sender, receiver) = mpsc::channel(QUEUED);
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&pages, &visitor, commits, &sender) => {}
            // The browser disconnected, so its place is free immediately.
            () = sender.closed() => {}
            () = stream.over.cancelled() => {
                let _ = sender.try_send(Message::Crowded);
            }
        }
        drop(stream);
    });
    let mut response = Response::new(Body::new(Messages(receiver)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
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
    messages: &mpsc::Sender<Message>,
) {
    for _ in 0..MAX_MESSAGES {
        // Continue after a change or a timeout alike.
        let _ = timeout(AT_LEAST_EVERY, commits.changed()).await;
        commits.mark_unchanged();
        let still = pages.app().read(&visitor.access(), MEMBER, |_, _| Ok(())).await;
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

/// The body of the response.
struct Messages(mpsc::Receiver<Message>);

impl hyper::body::Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |message: Message| Ok(Frame::data(Bytes::from_static(message.text().as_bytes())));
        self.0.poll_recv(cx).map(|message| message.map(frame))
    }
}
