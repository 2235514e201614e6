//! The upload form. Like the API's upload, it streams from the connection into storage. The file is the form's last
//! field, so that its options are known when it starts.

use axum::body::Bytes;
use axum::extract::multipart::{Field, Multipart};
use axum::extract::{FromRequest as _, Request};
use axum::response::{IntoResponse as _, Redirect, Response};
use hyper::body::Body as _;
use rapport_app::Error;
use rapport_app::import::{Upload, UploadOptions};
use rapport_app::submission::ALREADY_SENT;
use rapport_domain::import::{self, Import, MAX_FILENAME};
use rapport_domain::invalid::Invalid;

use super::leash::Leash;
use super::list::ListPage;
use super::{PATH, path_of, words};
use crate::edge::json;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::Page as _;
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load as _, Visit};
use crate::pages::kit::visitor::Visitor;
use crate::pages::{IMPORT, Pages};

const FILE: &str = "file";
/// The longest field besides the file.
const MAX_FIELD_BYTES: usize = 1_000;
const MAX_FIELDS: usize = 10;
/// Room for the rest of the form in the body, besides the file.
const ENVELOPE_BYTES: u64 = 16 << 10;

pub async fn upload(visit: Visit, request: Request) -> Result<Response, Refusal> {
    let (pages, visitor) = (&visit.pages, &visit.visitor);
    let (parts, body) = request.into_parts();
    let announced = body.size_hint().lower();
    let leash = Leash::new(body);
    let request = Request::from_parts(parts, leash.body());
    let mut fields = Vec::new();
    let received = receive(pages, visitor, (request, announced), &leash, &mut fields).await;
    if received.is_err()
        && let Some(rest) = leash.rest()
    {
        // A browser shows the response only if its whole request was read.
        json::drain(rest).await;
    }
    match received {
        Ok(import) => Ok(Redirect::to(&path_of(import.id)).into_response()),
        Err(Error::Conflict { code: ALREADY_SENT, .. }) => {
            Ok(pages.done(PATH, Flash::good("This file was already uploaded.")))
        }
        Err(error) => {
            let draft = Draft::refused(&Form::of(&fields), of_the_file(error));
            let draft = draft.map_err(|error| visitor.refused(error))?;
            let mut page = ListPage::load(&visit).await?;
            page.draft = draft;
            Ok(page.refuse())
        }
    }
}

/// Stores the file while it arrives. If anything goes wrong, nothing is left behind.
async fn receive(
    pages: &Pages,
    visitor: &Visitor,
    (request, announced): (Request, u64),
    leash: &Leash,
    fields: &mut Vec<(String, String)>,
) -> Result<Import, Error> {
    pages.app().read(&visitor.access(), IMPORT, |_, _| Ok(())).await?;
    if announced > pages.0.max_import_bytes + ENVELOPE_BYTES {
        return Err(too_large(pages));
    }
    let multipart = Multipart::from_request(request, &()).await;
    let mut multipart = multipart.map_err(|_| at_fault("malformed", "choose a file to upload"))?;
    while fields.len() < MAX_FIELDS {
        let next = tokio::time::timeout(pages.0.body_timeout, multipart.next_field()).await;
        let Some(field) = next.map_err(|_| broken())?.map_err(|_| broken())? else { break };
        leash.give();
        if field.name() == Some(FILE) {
            return take_file(pages, visitor, field, leash, &Form::of(fields)).await;
        }
        let name = field.name().unwrap_or_default().to_owned();
        fields.push((name, small(pages, field).await?));
    }
    Err(at_fault("required", "choose a file to upload"))
}

/// The text of a field that is not the file.
async fn small(pages: &Pages, mut field: Field<'_>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    while let Some(part) = next(pages, &mut field).await? {
        bytes.extend_from_slice(&part);
        if bytes.len() > MAX_FIELD_BYTES {
            return Err(broken());
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn take_file(
    pages: &Pages,
    visitor: &Visitor,
    mut field: Field<'_>,
    leash: &Leash,
    form: &Form,
) -> Result<Import, Error> {
    let filename = plain_name(field.file_name().unwrap_or_default());
    // A browser sends a file without a name if none was chosen.
    if filename.is_empty() {
        return Err(at_fault("required", "choose a file to upload"));
    }
    let options = options(filename, form)?;
    let id = form.id()?;
    let mut upload = Upload::begin(pages.app(), &visitor.access(), options).await?.of_form(id);
    let mut received = 0;
    loop {
        let error = match next(pages, &mut field).await {
            Ok(None) => return upload.finish().await,
            Ok(Some(part)) => {
                leash.give();
                received += part.len() as u64;
                if received > pages.0.max_import_bytes {
                    too_large(pages)
                } else if let Err(error) = upload.take(&part).await {
                    error
                } else {
                    continue;
                }
            }
            Err(error) => error,
        };
        upload.abandon().await;
        return Err(error);
    }
}

async fn next(pages: &Pages, field: &mut Field<'_>) -> Result<Option<Bytes>, Error> {
    match tokio::time::timeout(pages.0.body_timeout, field.chunk()).await {
        Ok(Ok(part)) => Ok(part),
        Ok(Err(_)) | Err(_) => Err(broken()),
    }
}

fn options(filename: String, form: &Form) -> Result<UploadOptions, Invalid> {
    let members = form.members(&[("encoding", As::Text), ("delimiter", As::Text)]);
    let import::Request { charset, delimiter, .. } = import::Request::parse(&members)?;
    Ok(UploadOptions { filename, charset, delimiter })
}

/// The file name without its path, which older browsers include.
fn plain_name(sent: &str) -> String {
    let name = sent.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = name.chars().filter(|letter| !letter.is_control());
    plain.take(MAX_FILENAME.max).collect::<String>().trim().to_owned()
}

fn at_fault(code: &'static str, detail: impl Into<String>) -> Error {
    Invalid::one("/file", code, detail).into()
}

fn broken() -> Error {
    at_fault("broken_body", "the upload was interrupted; try again")
}

fn too_large(pages: &Pages) -> Error {
    at_fault("body_too_large", format!("the file must be at most {}", words::bytes(pages.0.max_import_bytes)))
}

/// Moves a fault of the file beside its field.
fn of_the_file(error: Error) -> Error {
    let Error::Invalid(mut invalid) = error else { return error };
    for fault in invalid.0.iter_mut().filter(|fault| fault.pointer.is_empty()) {
        "/file".clone_into(&mut fault.pointer);
    }
    invalid.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_its_name_alone() {
        let table = [
            ("accounts.csv", "accounts.csv"),
            ("C:\\Users\\ana\\leads.csv", "leads.csv"),
            ("../../etc/passwd", "passwd"),
            ("a\r\nb\0.csv", "ab.csv"),
            ("", ""),
        ];
        for (sent, expected) in table {
            assert_eq!(plain_name(sent), expected, "{sent:?}");
        }
        assert_eq!(plain_name(&"é".repeat(400)).chars().count(), MAX_FILENAME.max);
    }
}
