//! A file that is read page by page as the caller receives it, so that a file of any size needs the memory of only one
//! page.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use rapport_app::Error;
use rapport_domain::time::Day;

/// How often a page is tried while the database is busy, and the pause between tries.
const MOST_TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(250);
const MAX_FILE_NAME_CHARS: usize = 60;

/// The text of a page, and where the next one begins.
pub struct Part<P> {
    pub text: Vec<u8>,
    pub next: Option<P>,
}

/// Reads the pages of a file.
pub trait Source: Send + Sync + 'static {
    /// Where a page begins.
    type Place: Clone + Send + Sync + Unpin + 'static;

    fn part(&self, place: Self::Place) -> impl Future<Output = Result<Part<Self::Place>, Error>> + Send;
}

/// The name and the type of a file.
pub struct Label<'a> {
    pub name: &'a str,
    pub day: Day,
    pub extension: &'static str,
    pub media_type: &'static str,
}

/// The file as a response. Its name consists of a name and a date.
pub fn respond<S: Source>(label: &Label, first: Part<S::Place>, source: S) -> Response {
    let file_name = format!("{}-{}.{}", plain(label.name), label.day, label.extension);
    let pages = Pages { source: Arc::new(source), step: Step::Ready(first.text.into(), first.next) };
    let mut response = Response::new(Body::new(pages));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(label.media_type));
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{file_name}\""));
    headers
        .insert(header::CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment")));
    response
}

/// The letters and digits of a name, joined by hyphens: safe in a header and on any file system.
fn plain(name: &str) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    let plain: String = words.join("-").chars().take(MAX_FILE_NAME_CHARS).collect();
    if plain.is_empty() { "export".to_owned() } else { plain }
}

/// Reads a page, and tries again while the database is busy.
async fn read<S: Source>(source: Arc<S>, place: S::Place) -> Result<Part<S::Place>, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        match source.part(place.clone()).await {
            Err(Error::Busy) if tries < MOST_TRIES => tokio::time::sleep(PAUSE).await,
            found => return found,
        }
    }
}

type Reading<P> = Pin<Box<dyn Future<Output = Result<Part<P>, Error>> + Send>>;

enum Step<P> {
    /// The bytes to send next, and where the following page begins.
    Ready(Bytes, Option<P>),
    Reading(Reading<P>),
    Done,
}

/// The response body. A page is read once the previous one has been sent. An error aborts the response, so that the
/// caller doesn't mistake it for a complete file.
struct Pages<S: Source> {
    source: Arc<S>,
    step: Step<S::Place>,
}

impl<S: Source> hyper::body::Body for Pages<S> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Step::Reading(reading) = &mut self.step {
            let read = ready!(reading.as_mut().poll(context));
            match read {
                Ok(Part { text, next }) => self.step = Step::Ready(text.into(), next),
                Err(error) => {
                    rapport_app::log_failure!(error, "export aborted");
                    self.step = Step::Done;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        let Step::Ready(bytes, next) = std::mem::replace(&mut self.step, Step::Done) else {
            return Poll::Ready(None);
        };
        if let Some(place) = next {
            self.step = Step::Reading(Box::pin(read(Arc::clone(&self.source), place)));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain() {
        for (name, shown) in [
            ("Spring fair", "spring-fair"),
            ("a\"; filename=\"b.exe", "a-filename-b-exe"),
            ("../../etc/passwd\r\nX: y", "etc-passwd-x-y"),
            ("株式会社", "export"),
        ] {
            assert_eq!(plain(name), shown);
        }
        assert_eq!(plain(&"x".repeat(500)).len(), MAX_FILE_NAME_CHARS);
    }
}
