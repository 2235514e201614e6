//! Limits slow request bodies. A body occupies a connection, and possibly memory, until it has arrived, so each
//! address may only have a certain number of slow ones. Bodies that arrive at once, as nearly all do, never count.

use std::error::Error;
use std::fmt;
use std::future::Future as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::edge::shares::Shares;

/// The limits for slow bodies.
#[derive(Clone)]
pub struct Watch {
    /// A body that has not arrived after this time counts as slow.
    pub slow_after: Duration,
    pub addresses: Arc<Shares<IpAddr>>,
}

/// A body that fails when it becomes slow and its address already has its share of slow bodies.
pub struct Watched {
    body: Incoming,
    address: IpAddr,
    watch: Watch,
    pace: Pace,
}

enum Pace {
    /// It has not caused a wait yet.
    Fast,
    Waiting(Pin<Box<Sleep>>),
    #[expect(dead_code, reason = "it is returned when the body is dropped")]
    Slow(OwnedSemaphorePermit),
}

impl Watched {
    pub fn new(body: Incoming, address: IpAddr, watch: Watch) -> Self {
        Self { body, address, watch, pace: Pace::Fast }
    }

    /// Ready when the body is slow and its address may not have another slow body.
    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        if matches!(self.pace, Pace::Fast) {
            self.pace = Pace::Waiting(Box::pin(tokio::time::sleep(self.watch.slow_after)));
        }
        let Pace::Waiting(timer) = &mut self.pace else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        match self.watch.addresses.of(self.address).try_acquire_owned() {
            Ok(place) => {
                self.pace = Pace::Slow(place);
                Poll::Pending
            }
            Err(_) => Poll::Ready(TooSlow),
        }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => self.poll_refusal(cx).map(|refusal| Some(Err(refusal.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The error of a body that was refused for being slow.
#[derive(Debug)]
struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is slow and its address has too many slow bodies")
    }
}

impl Error for TooSlow {}

/// Whether this error means that a body was too slow.
pub fn is_too_slow(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            return true;
        }
        cause = error.source();
    }
    false
}
