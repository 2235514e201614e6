//! The stylesheet, the script, the typeface and the icon. They are part of the program and compressed once. Their names
//! contain a digest of their content, or their version, so browsers can cache them forever.

#[cfg(test)]
mod layout;

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::Response;
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};

use crate::edge::compression::takes_gzip;

const DIRECTORY: &str = "/assets/";
const ICON_PATH: &str = "/favicon.svg";
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The letters of western European languages, which every page preloads. A browser gets the others when it meets one.
pub const FONT_PATH: &str = "/assets/inter-latin-5.3.0.woff2";
const FONT: &[u8] = include_bytes!("../../../assets/font/inter-latin-5.3.0.woff2");
const MORE_LETTERS_PATH: &str = "/assets/inter-latin-ext-5.3.0.woff2";
const MORE_LETTERS: &[u8] = include_bytes!("../../../assets/font/inter-latin-ext-5.3.0.woff2");
/// Bytes of the digest in the name, enough to tell versions apart.
const MARK_BYTES: usize = 6;

/// The stylesheet, one file per subject. The later of two equally specific rules wins, so the order matters.
const STYLE_TEXT: &str = concat!(
    include_str!("../../../assets/css/tokens.css"),
    include_str!("../../../assets/css/font.css"),
    include_str!("../../../assets/css/base.css"),
    include_str!("../../../assets/css/frame.css"),
    include_str!("../../../assets/css/layout.css"),
    include_str!("../../../assets/css/plain.css"),
    include_str!("../../../assets/css/buttons.css"),
    include_str!("../../../assets/css/tabs.css"),
    include_str!("../../../assets/css/cards.css"),
    include_str!("../../../assets/css/tables.css"),
    include_str!("../../../assets/css/lists.css"),
    include_str!("../../../assets/css/badges.css"),
    include_str!("../../../assets/css/messages.css"),
    include_str!("../../../assets/css/forms.css"),
    include_str!("../../../assets/css/timeline.css"),
    include_str!("../../../assets/css/menus.css"),
    include_str!("../../../assets/css/dialogs.css"),
    include_str!("../../../assets/css/charts.css"),
    include_str!("../../../assets/css/dashboard.css"),
    include_str!("../../../assets/css/first_run.css"),
    include_str!("../../../assets/css/accounts.css"),
    include_str!("../../../assets/css/channels.css"),
    include_str!("../../../assets/css/imports.css"),
    include_str!("../../../assets/css/board.css"),
    include_str!("../../../assets/css/totals.css"),
    include_str!("../../../assets/css/campaigns.css"),
    include_str!("../../../assets/css/account.css"),
    include_str!("../../../assets/css/clients.css"),
    include_str!("../../../assets/css/webhooks.css"),
    include_str!("../../../assets/css/settings.css"),
    include_str!("../../../assets/css/factors.css"),
    include_str!("../../../assets/css/utilities.css"),
    include_str!("../../../assets/css/print.css"),
);

/// The script, one module in a few files.
const SCRIPT_TEXT: &str = concat!(
    include_str!("../../../assets/rapport.js"),
    include_str!("../../../assets/js/messages.js"),
    include_str!("../../../assets/js/board.js"),
);

static STYLE: LazyLock<Asset> = LazyLock::new(|| Asset::new("css", "text/css; charset=utf-8", STYLE_TEXT));
static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("js", "text/javascript; charset=utf-8", SCRIPT_TEXT));

struct Asset {
    path: String,
    media_type: &'static str,
    plain: Bytes,
    compressed: Bytes,
}

impl Asset {
    fn new(extension: &str, media_type: &'static str, text: &'static str) -> Self {
        let mark = digest(&SHA256, text.as_bytes());
        let mark = mark.as_ref()[..MARK_BYTES].iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        let plain = Bytes::from_static(text.as_bytes());
        let compressed = written.map_or_else(|_| plain.clone(), Bytes::from);
        Self { path: format!("{DIRECTORY}rapport.{mark}.{extension}"), media_type, plain, compressed }
    }

    fn respond(&self, headers: &HeaderMap) -> Response {
        let takes_gzip = takes_gzip(headers);
        let body = if takes_gzip { &self.compressed } else { &self.plain };
        let mut response = Response::new(Body::from(body.clone()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CACHE_CONTROL, FOREVER);
        if takes_gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

pub fn style_path() -> &'static str {
    &STYLE.path
}

pub fn script_path() -> &'static str {
    &SCRIPT.path
}

pub fn routes() -> Router {
    Router::new()
        .route(style_path(), get(async |headers: HeaderMap| STYLE.respond(&headers)))
        .route(script_path(), get(async |headers: HeaderMap| SCRIPT.respond(&headers)))
        .route(FONT_PATH, get(async || font(FONT)))
        .route(MORE_LETTERS_PATH, get(async || font(MORE_LETTERS)))
        .route(ICON_PATH, get(icon))
}

/// A typeface, which is compressed as it is.
fn font(file: &'static [u8]) -> Response {
    let mut response = Response::new(Body::from(file));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("font/woff2"));
    headers.insert(header::CACHE_CONTROL, FOREVER);
    response
}

async fn icon() -> Response {
    let mut response = Response::new(Body::from(include_str!("../../../assets/favicon.svg")));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    response
}
