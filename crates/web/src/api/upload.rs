//! Uploads of CSV files, streamed from the connection into the database.

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use rapport_app::import::{Upload, UploadOptions};
use rapport_app::submission::Claim;
use rapport_app::{Error, Viewer};
use rapport_domain::import::charset::Charset;
use rapport_domain::import::reading::Delimiter;
use rapport_domain::import::{Import, MAX_FILENAME};
use rapport_domain::repeat::{Key, RequestHash, RequestHasher};
use rapport_store::Snapshot;

use crate::api::call::Caller;
use crate::api::imports::ImportView;
use crate::api::repeat::{self, Repeat};
use crate::api::{Api, IMPORT, requests};
use crate::edge::json::{self, Rendered};
use crate::edge::problem::Problem;
use crate::shared::parameters::Parameters;

pub const PATH: &str = "/api/imports/";
const DEFAULT_NAME: &str = "import.csv";
/// The media types that programs use for CSV files.
const MEDIA_TYPES: [&str; 5] =
    ["text/csv", "application/csv", "text/plain", "text/tab-separated-values", "application/vnd.ms-excel"];

/// Upload a CSV file
///
/// Send the file itself as the body. The response describes the file: its encoding, delimiter and columns with
/// samples, and a suggested mapping. Nothing is imported yet. Requires the admin role.
#[utoipa::path(
    post,
    path = "/api/imports/",
    tag = "Imports",
    params(requests::UploadParameters),
    request_body(content = String, content_type = "text/csv", description = "The file; its first line names the columns."),
    responses(
        (status = 201, description = "The file was uploaded.", body = ImportView),
        (status = 400, description = "The body ended before it was complete."),
        (status = 409, description = "Too many imports are still open."),
        (status = 413, description = "The file is larger than this server allows."),
        (status = 415, description = "The body is not sent as text/csv, or it has a Content-Encoding."),
    ),
    security(("token" = ["import"])),
)]
pub async fn upload_import(State(api): State<Api>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let announced = body.size_hint().lower();
    let prepared = prepare(&api, &mut parts, announced).await;
    let (mut caller, options, key) = match prepared {
        Ok(prepared) => prepared,
        Err(problem) => {
            // A client that waits for "100 Continue" has not sent anything yet.
            if !parts.headers.contains_key(header::EXPECT) {
                json::drain(body).await;
            }
            return Err(problem);
        }
    };
    let Some(key) = key else {
        let begun = Upload::begin(api.app(), &caller.access(), options).await;
        let (upload, _) = receive(&api, &caller, api.settle(&caller, begun)?, body, None).await?;
        let import = api.settle(&caller, upload.finish().await)?;
        return Ok(render(import).into_response());
    };
    let (id, turn) = match api.turn(&caller, &key) {
        Ok(turn) => turn,
        Err(problem) => {
            json::drain(body).await;
            return Err(problem);
        }
    };
    if api.is_kept(&caller, id, IMPORT).await? {
        let request = hash(&api, body, repeat::hasher(&parts)).await?;
        caller.repeat = Some(Repeat::new(id, request, turn));
        let recalled = api.recalled(&caller, IMPORT).await?;
        return recalled.ok_or_else(|| Problem::of(Error::Busy, caller.scheme));
    }
    let begun = Upload::begin(api.app(), &caller.access(), options).await;
    let hasher = Some(repeat::hasher(&parts));
    let (upload, hasher) = receive(&api, &caller, api.settle(&caller, begun)?, body, hasher).await?;
    let request = hasher.map(RequestHasher::finish).ok_or_else(|| Problem::internal("no hash of a file"))?;
    let claim = Claim { id, request };
    let render = repeat::keeping(|_: &mut Snapshot, _: &Viewer, import| Ok((render(import), ())));
    let outcome = api.settle(&caller, upload.finish_once(claim, render).await)?;
    drop(turn);
    repeat::settled(outcome).map(|(response, _)| response)
}

fn render(import: Import) -> Rendered {
    json::render(StatusCode::CREATED, &ImportView::from(import))
}

/// The hash of a request whose file is not needed again.
async fn hash(api: &Api, mut body: Body, mut hasher: RequestHasher) -> Result<RequestHash, Problem> {
    let mut received = 0;
    loop {
        match tokio::time::timeout(api.body_timeout(), body.frame()).await {
            Ok(None) => return Ok(hasher.finish()),
            Ok(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                received += data.len() as u64;
                if received > api.max_import_bytes() {
                    return Err(too_large(api));
                }
                hasher.body(&data);
            }
            Ok(Some(Err(error))) => return Err(Problem::of_body(&error)),
            Err(_) => return Err(Problem::body_too_slow()),
        }
    }
}

/// Checks everything that can be checked before the file arrives, starting with the credential.
async fn prepare(
    api: &Api,
    parts: &mut Parts,
    announced: u64,
) -> Result<(Caller, UploadOptions, Option<Key>), Problem> {
    let caller = Caller::from_request_parts(parts, api).await?;
    api.verify(&caller, IMPORT).await?;
    let Ok(mut parameters) = Parameters::from_request_parts(parts, api).await;
    let filename = parameters.optional("filename", |text| MAX_FILENAME.check(text).map(|()| text.to_owned()));
    let charset = parameters.optional("encoding", Charset::parse);
    let delimiter = parameters.optional("delimiter", Delimiter::parse);
    parameters.finish()?;
    require_csv(&parts.headers)?;
    if announced > api.max_import_bytes() {
        return Err(too_large(api));
    }
    let filename = filename.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    Ok((caller, UploadOptions { filename, charset, delimiter }, repeat::key(parts)?))
}

fn require_csv(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = sent.split(';').next().unwrap_or("").trim();
    if !MEDIA_TYPES.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        let detail = "send the file itself as the body, with Content-Type: text/csv";
        return Err(Problem::unsupported("unsupported_media_type", detail));
    }
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::unsupported("unsupported_encoding", "send the file without a Content-Encoding"));
    }
    Ok(())
}

fn too_large(api: &Api) -> Problem {
    let max_bytes = api.max_import_bytes();
    let detail = format!("the file must be at most {max_bytes} bytes");
    let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail);
    problem.with_member("max_bytes", max_bytes.into())
}

/// Stores the file as it arrives, and hashes it if the request may be repeated. A failed upload leaves nothing behind.
async fn receive(
    api: &Api,
    caller: &Caller,
    mut upload: Upload,
    mut body: Body,
    mut hasher: Option<RequestHasher>,
) -> Result<(Upload, Option<RequestHasher>), Problem> {
    let mut received = 0;
    loop {
        let problem = match tokio::time::timeout(api.body_timeout(), body.frame()).await {
            Ok(None) => return Ok((upload, hasher)),
            Ok(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                received += data.len() as u64;
                if let Some(hasher) = &mut hasher {
                    hasher.body(&data);
                }
                if received > api.max_import_bytes() {
                    too_large(api)
                } else {
                    match api.settle(caller, upload.take(&data).await) {
                        Ok(()) => continue,
                        Err(problem) => problem,
                    }
                }
            }
            Ok(Some(Err(error))) => Problem::of_body(&error),
            Err(_) => Problem::body_too_slow(),
        };
        upload.abandon().await;
        json::drain(body).await;
        return Err(problem);
    }
}
