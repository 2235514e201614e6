//! The error file of an import, sent as it is read.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use rapport_app::import::ErrorFile;
use tokio::sync::mpsc;

/// How many parts may be buffered for a slow reader.
const PARTS_AHEAD: usize = 2;

/// The file as a response.
pub fn respond(mut file: ErrorFile) -> Response {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
    let name: String = file.name().chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    let (parts, coming) = mpsc::channel(PARTS_AHEAD);
    tokio::spawn(async move {
        loop {
            match file.next().await {
                Ok(Some(part)) => {
                    if parts.send(Some(Bytes::from(part))).await.is_err() {
                        return;
                    }
                }
                Ok(None) => {
                    let _ = parts.send(None).await;
                    return;
                }
                // Without a proper end, the client can tell that the file is incomplete.
                Err(error) => {
                    rapport_app::log_failure!(error, import = %file.id(), "error file truncated");
                    return;
                }
            }
        }
    });
    let mut response = Response::new(Body::new(Parts(coming)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    headers.extend(disposition.ok().map(|value| (header::CONTENT_DISPOSITION, value)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A body that comes in parts; `None` is its proper end.
struct Parts(mpsc::Receiver<Option<Bytes>>);

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        self.0.poll_recv(context).map(|part| match part {
            Some(Some(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(None) => None,
            None => Some(Err(CutOff)),
        })
    }
}

/// Aborts the connection to signal that the rest of the file is missing.
#[derive(Debug)]
struct CutOff;

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the file was truncated")
    }
}

impl std::error::Error for CutOff {}
