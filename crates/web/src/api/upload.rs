//! Uploads of CSV files, streamed from the connection into the database.

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use axum::http::request::Parts;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use rapport_app::import::{Upload, UploadOptions};
use rapport_domain::import::charset::Charset;
use rapport_domain::import::reading::Delimiter;
use rapport_domain::import::{Import, MAX_FILENAME};

use crate::api::call::Caller;
use crate::api::imports::ImportView;
use crate::api::{Api, IMPORT, requests};
use crate::edge::json;
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
    let (caller, options) = match prepared {
        Ok(prepared) => prepared,
        Err(problem) => {
            // A client that waits for "100 Continue" has not sent anything yet.
            if !parts.headers.contains_key(header::EXPECT) {
                json::drain(body).await;
            }
            return Err(problem);
        }
    };
    let begun = Upload::begin(api.app(), &caller.access(), options).await;
    let upload = api.settle(&caller, begun)?;
    let import = receive(&api, &caller, upload, body).await?;
    Ok(json::respond(StatusCode::CREATED, &ImportView::from(import)))
}

/// Checks everything that can be checked before the file arrives, starting with the credential.
async fn prepare(api: &Api, parts: &mut Parts, announced: u64) -> Result<(Caller, UploadOptions), Problem> {
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
    Ok((caller, UploadOptions { filename, charset, delimiter }))
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

/// Stores the file as it arrives. A failed upload leaves nothing behind.
async fn receive(api: &Api, caller: &Caller, mut upload: Upload, mut body: Body) -> Result<Import, Problem> {
    let mut received = 0;
    loop {
        let problem = match tokio::time::timeout(api.body_timeout(), body.frame()).await {
            Ok(None) => return api.settle(caller, upload.finish().await),
            Ok(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                received += data.len() as u64;
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
