//! Compresses responses with gzip: text of 1 KB and more. Event streams, small responses and what is compressed already
//! are left alone, so the answers to upserts and ingests pay nothing.
//!
//! The length of a compressed response says something about its content. If an attacker can put text into a page that
//! also holds a secret, make a browser load it many times and watch the lengths, they can guess the secret (BREACH).
//! Our pages hold no such secret: forms are protected by their origin, not by a token, and new secrets are shown only
//! in the response to a form that came from our own pages. What remains is data of the company, so a response that
//! another site asked for is not compressed at all.
//!
//! We offer gzip alone, because every client reads it and flate2 is here anyway. The layer of tower-http would answer
//! 406, after the work is done, to a client that refuses both gzip and plain text.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as _, Frame};

use crate::edge::origin::{Site, site};

const MIN_BYTES: u64 = 1 << 10;
/// A fast level: the slower ones make a page of HTML only a little smaller.
const LEVEL: Compression = Compression::new(4);

/// What a request says about compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    takes_gzip: bool,
}

impl Wish {
    pub fn of(headers: &HeaderMap) -> Self {
        Self { takes_gzip: takes_gzip(headers) && !matches!(site(headers), Some(Site::Other)) }
    }

    /// Compresses a response if that is worth it and the client can read it.
    pub fn grant(self, response: Response) -> Response {
        if !is_compressible(&response) {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        parts.headers.entry(header::VARY).or_insert(HeaderValue::from_static("accept-encoding"));
        if !self.takes_gzip {
            return Response::from_parts(parts, body);
        }
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        Response::from_parts(parts, Body::new(Gzipped::new(body)))
    }
}

/// Whether a client accepts gzip. A quality of zero means that it doesn't.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|choice| {
        let mut parts = choice.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let wanted = quality.is_none_or(|quality| quality.parse::<f32>().is_ok_and(|quality| quality > 0.0));
        name.eq_ignore_ascii_case("gzip") && wanted
    })
}

fn is_compressible(response: &Response) -> bool {
    // Checked first, because it is all that a small response costs.
    let is_large = response.body().size_hint().exact().is_none_or(|bytes| bytes >= MIN_BYTES);
    let headers = response.headers();
    // A version names exactly these bytes (RFC 9110, section 8.8.3.3), and what has one is small.
    is_large
        && !headers.contains_key(header::ETAG)
        && !headers.contains_key(header::CONTENT_ENCODING)
        && headers.get(header::CONTENT_TYPE).is_some_and(|media_type| is_text(media_type.as_bytes()))
}

fn is_text(media_type: &[u8]) -> bool {
    const TYPES: [&[u8]; 4] = [b"text/", b"application/json", b"application/problem+json", b"image/svg+xml"];
    TYPES.iter().any(|one| media_type.starts_with(one)) && !media_type.starts_with(b"text/event-stream")
}

/// A body that is compressed piece by piece, as it is sent.
struct Gzipped {
    body: Body,
    /// None at the end of the body.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Gzipped {
    fn new(body: Body) -> Self {
        Self { body, encoder: Some(GzEncoder::new(Vec::new(), LEVEL)) }
    }
}

impl hyper::body::Body for Gzipped {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        while self.encoder.is_some() {
            let piece = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame.into_data().ok(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => None,
            };
            let is_last = piece.is_none() || self.body.is_end_stream();
            let Some(encoder) = &mut self.encoder else { break };
            if let Some(piece) = piece {
                encoder.write_all(&piece).map_err(axum::Error::new)?;
            }
            let compressed = if is_last {
                let encoder = self.encoder.take();
                encoder.map(GzEncoder::finish).transpose().map_err(axum::Error::new)?.unwrap_or_default()
            } else {
                std::mem::take(encoder.get_mut())
            };
            if !compressed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(compressed.into()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::io::Read as _;

    use axum::http::HeaderName;
    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn response(media_type: &'static str, bytes: usize) -> Response {
        let mut response = Response::new(Body::from("a".repeat(bytes)));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        response
    }

    #[test]
    fn a_client_says_whether_it_reads_gzip() {
        let table = [
            ("gzip", true),
            ("GZIP", true),
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.8", true),
            ("gzip; q=0.001", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("gzip;q=x", false),
            ("deflate, br", false),
            ("identity", false),
            ("", false),
        ];
        for (sent, expected) in table {
            assert_eq!(takes_gzip(&headers(&[("accept-encoding", sent)])), expected, "{sent}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn only_large_text_is_compressed() {
        let table = [
            ("text/html; charset=utf-8", 1_024, true),
            ("text/html; charset=utf-8", 1_023, false),
            ("application/json", 2_000, true),
            ("application/problem+json", 2_000, true),
            ("text/csv; charset=utf-8", 2_000, true),
            ("application/jsonl", 2_000, true),
            ("image/svg+xml", 2_000, true),
            ("text/event-stream", 2_000, false),
            ("image/png", 2_000, false),
            ("application/gzip", 2_000, false),
        ];
        let wish = Wish { takes_gzip: true };
        for (media_type, bytes, expected) in table {
            let answer = wish.grant(response(media_type, bytes));
            let headers = answer.headers();
            assert_eq!(headers.contains_key(header::CONTENT_ENCODING), expected, "{media_type} {bytes}");
            assert_eq!(headers.contains_key(header::VARY), expected, "{media_type} {bytes}");
        }
        let plain = Wish { takes_gzip: false }.grant(response("text/html", 2_000));
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(plain.headers()[header::VARY], "accept-encoding");
        let mut twice = response("text/css", 2_000);
        twice.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(wish.grant(twice).body().size_hint().exact(), Some(2_000), "it is compressed already");
        let mut versioned = response("application/json", 2_000);
        versioned.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"a\""));
        assert_eq!(
            wish.grant(versioned).body().size_hint().exact(),
            Some(2_000),
            "its version is of these bytes"
        );
    }

    #[test]
    fn what_another_site_asks_for_is_not_compressed() {
        for (site, expected) in
            [("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false)]
        {
            let wish = Wish::of(&headers(&[("accept-encoding", "gzip"), ("sec-fetch-site", site)]));
            assert_eq!(wish.takes_gzip, expected, "{site}");
        }
        assert!(Wish::of(&headers(&[("accept-encoding", "gzip")])).takes_gzip, "a program sends no site");
    }

    #[tokio::test]
    async fn a_body_arrives_whole_in_pieces_or_at_once() {
        let pieces: Vec<String> = (0..500).map(|n| format!("{n},Acme {n},customer\r\n")).collect();
        let whole = pieces.concat();
        let stream = tokio_stream::iter(pieces.clone().into_iter().map(Ok::<_, Infallible>));
        for body in [Body::from_stream(stream), Body::from(whole.clone()), Body::empty()] {
            let expected = if body.size_hint().exact() == Some(0) { "" } else { &whole };
            let compressed = Gzipped::new(body).collect().await.unwrap().to_bytes();
            let mut text = String::new();
            GzDecoder::new(compressed.as_ref()).read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }
}
