//! Limits how far a form reader may read ahead of the code that consumes its parts, whatever is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use parking_lot::Mutex;

/// Far more than a browser sends between two parts of the file.
const MAX_AHEAD_BYTES: usize = 4 << 20;

/// Held by the consumer of the parts.
#[derive(Clone)]
pub struct Leash(Arc<Rope>);

struct Rope {
    body: Mutex<Body>,
    ahead: AtomicUsize,
}

impl Leash {
    pub fn new(body: Body) -> Self {
        Self(Arc::new(Rope { body: Mutex::new(body), ahead: AtomicUsize::new(0) }))
    }

    /// The limited body, for the reader.
    pub fn body(&self) -> Body {
        Body::new(Leashed(Arc::clone(&self.0)))
    }

    /// Says that a part was consumed, so the reader may continue.
    pub fn give(&self) {
        self.0.ahead.store(0, Ordering::Relaxed);
    }

    /// The rest of the body, once the reader is gone.
    pub fn rest(self) -> Option<Body> {
        Arc::into_inner(self.0).map(|rope| rope.body.into_inner())
    }
}

struct Leashed(Arc<Rope>);

impl hyper::body::Body for Leashed {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let polled = Pin::new(&mut *self.0.body.lock()).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if self.0.ahead.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_AHEAD_BYTES {
                return Poll::Ready(Some(Err("the form is malformed".into())));
            }
        }
        polled.map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[tokio::test]
    async fn a_reader_goes_only_so_far_ahead() {
        let leash = Leash::new(Body::from(vec![0; MAX_AHEAD_BYTES]));
        assert!(leash.body().collect().await.is_ok());
        let leash = Leash::new(Body::from(vec![0; MAX_AHEAD_BYTES]));
        leash.0.ahead.store(1, Ordering::Relaxed);
        assert!(leash.body().collect().await.is_err());
        leash.give();
        assert_eq!(leash.0.ahead.load(Ordering::Relaxed), 0);
        assert!(leash.rest().is_some());
    }
}
