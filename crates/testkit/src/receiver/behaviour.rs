//! The answers that a receiver can be told to give, badly if asked to.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_ENCODING;
use hyper::{Request, Response};
use tokio::time::{Sleep, sleep};

use super::faulty::{Fault, set_fault};
use super::{ReceivedRequest, Shared};
use crate::Gate;

/// Ends inside the first header line after the status line.
pub const HALF_HEADER_BYTES: usize = 20;
/// Ends inside the body: the header block is far shorter, the body far longer.
pub const RESET_AFTER_BYTES: usize = 4096;
const CHUNK_BYTES: usize = 16 * 1024;
pub const BOMB_MEMBER_BYTES: usize = 16 * 1024 * 1024;
/// Four gibibytes once unpacked, four mebibytes on the wire.
const BOMB_MEMBERS: u64 = 256;

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// This code and an empty body.
    Status(u16),
    StatusWith {
        code: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// Reads the request and never answers.
    Stall,
    /// 200 and a body that never ends, one byte at a time.
    SlowBody {
        byte_every: Duration,
    },
    /// 200 and a body that never ends, as fast as it is read.
    EndlessBody,
    /// 200 and a gzip body a thousand times larger than it looks.
    GzipBomb,
    /// The beginning of a response header; then silence, with the connection kept open.
    HalfHeader,
    /// 200 and the beginning of a body; then the connection is reset.
    Reset,
    Delay(Duration, Box<Behaviour>),
    /// Answers like this once the test opens the gate.
    Until(Gate, Box<Behaviour>),
}

pub async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    fault: Arc<Mutex<Fault>>,
) -> Result<Response<ReplyBody>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let method = parts.method.to_string();
    let request = ReceivedRequest { method, path, headers: parts.headers, body, at: Instant::now() };
    let mut behaviour = shared.record(request);
    loop {
        behaviour = match behaviour {
            Behaviour::Delay(duration, then) => {
                sleep(duration).await;
                *then
            }
            Behaviour::Until(gate, then) => {
                gate.opened().await;
                *then
            }
            ready => {
                behaviour = ready;
                break;
            }
        };
    }
    Ok(match behaviour {
        Behaviour::Status(code) => response(code, ReplyBody::empty()),
        Behaviour::StatusWith { code, headers, body } => response_with(code, headers, body),
        Behaviour::SlowBody { byte_every } => response(200, ReplyBody::slow(byte_every)),
        Behaviour::EndlessBody => response(200, ReplyBody::repeat(zeros(), u64::MAX)),
        Behaviour::GzipBomb => {
            let mut bomb = response(200, ReplyBody::repeat(bomb_member(), BOMB_MEMBERS));
            bomb.headers_mut().insert(CONTENT_ENCODING, "gzip".parse().expect("a header value"));
            bomb
        }
        Behaviour::HalfHeader => {
            set_fault(&fault, Fault::SilenceAfter(HALF_HEADER_BYTES));
            response(200, ReplyBody::empty())
        }
        Behaviour::Reset => {
            set_fault(&fault, Fault::ResetAfter(RESET_AFTER_BYTES));
            response(200, ReplyBody::repeat(zeros(), 2))
        }
        Behaviour::Stall | Behaviour::Delay(..) | Behaviour::Until(..) => pending().await,
    })
}

fn response(code: u16, body: ReplyBody) -> Response<ReplyBody> {
    Response::builder().status(code).body(body).expect("a valid status code")
}

fn response_with(code: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Response<ReplyBody> {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(ReplyBody::repeat(body.into(), 1)).expect("a valid status code and headers")
}

fn zeros() -> Bytes {
    static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];
    Bytes::from_static(&ZEROS)
}

/// One gzip member; a gzip body may hold any number of them, so a large bomb is a small one repeated.
fn bomb_member() -> Bytes {
    static MEMBER: OnceLock<Bytes> = OnceLock::new();
    let make = || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        io::copy(&mut io::Read::take(io::repeat(0), BOMB_MEMBER_BYTES as u64), &mut encoder)
            .expect("compressing into memory");
        encoder.finish().expect("compressing into memory").into()
    };
    MEMBER.get_or_init(make).clone()
}

/// The same chunk over and over, immediately or with a pause before each.
pub struct ReplyBody {
    chunk: Bytes,
    chunks_left: u64,
    pause: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl ReplyBody {
    fn empty() -> Self {
        Self::repeat(Bytes::new(), 0)
    }

    fn repeat(chunk: Bytes, times: u64) -> Self {
        Self { chunk, chunks_left: times, pause: None }
    }

    fn slow(byte_every: Duration) -> Self {
        let pause = Some((byte_every, Box::pin(sleep(byte_every))));
        Self { chunk: Bytes::from_static(b"."), chunks_left: u64::MAX, pause }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.chunks_left == 0 {
            return Poll::Ready(None);
        }
        if let Some((byte_every, pause)) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            *pause = Box::pin(sleep(*byte_every));
        }
        self.chunks_left -= 1;
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks_left == 0
    }

    fn size_hint(&self) -> SizeHint {
        match (self.chunk.len() as u64).checked_mul(self.chunks_left) {
            // Endless by any client's measure, so it has no length and is sent in chunks.
            None => SizeHint::default(),
            Some(_) if self.pause.is_some() => SizeHint::default(),
            Some(length) => SizeHint::with_exact(length),
        }
    }
}
