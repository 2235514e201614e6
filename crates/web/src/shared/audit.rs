//! The audit log: its entries as JSON, and as a file.

use std::borrow::Cow;

use axum::response::Response;
use rapport_app::read::audit::{AuditEntry, list};
use rapport_app::read::{MAX_LIMIT, Page};
use rapport_app::spreadsheet::{self, BYTE_ORDER_MARK, safe};
use rapport_app::{Access, Answer, App, Error};
use rapport_domain::audit::Filter;
use rapport_domain::file_format::Format;
use rapport_domain::history::Actor;
use rapport_domain::id::AuditId;
use rapport_domain::time::Time;
use rapport_store::Snapshot;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::shared::AUDIT;
use crate::shared::paged_file::{self, Label, Part, Source};

const FILE_NAME: &str = "audit log";
const JSON_LINES: &str = "application/jsonl";
const COLUMNS: [&str; 10] = [
    "id",
    "at",
    "actor_type",
    "actor_id",
    "actor_name",
    "action",
    "target",
    "detail",
    "address",
    "request_id",
];

/// What someone did, with who it was, when and from where.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditView {
    #[schema(value_type = String, example = "aud_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: AuditId,
    actor: Actor,
    #[schema(example = "settings.changed")]
    action: String,
    /// The id of the changed object.
    #[schema(required = true)]
    target: Option<String>,
    /// What was changed; never a secret.
    #[schema(required = true, value_type = Option<Object>)]
    detail: Option<Box<RawValue>>,
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// The network address the request came from. Null for the command line and the service itself.
    #[schema(required = true, example = "192.0.2.7")]
    address: Option<String>,
    /// The `X-Request-Id` of that request. Null for the command line, the service itself and older entries.
    #[schema(required = true, example = "5b0f2c1e-1a")]
    request_id: Option<String>,
}

impl From<AuditEntry> for AuditView {
    fn from(AuditEntry { id, actor, action, target, detail, at, address, request_id }: AuditEntry) -> Self {
        let detail = RawValue::from_string(detail).ok();
        Self { id, actor, action, target, detail, at, address, request_id }
    }
}

/// Which entries a file has, and how they are written.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub filter: Filter,
    pub format: Format,
}

impl Extent {
    /// The first page.
    pub fn begin(self, snapshot: &mut Snapshot) -> Result<Begun, rapport_store::Error> {
        Ok(Begun { extent: self, page: list(snapshot, &self.filter, None, MAX_LIMIT)? })
    }

    fn media_type(self) -> &'static str {
        match self.format {
            Format::Csv => spreadsheet::MEDIA_TYPE,
            Format::JsonLines => JSON_LINES,
        }
    }

    fn header(self) -> Vec<u8> {
        match self.format {
            Format::Csv => {
                let names = spreadsheet::write(std::iter::once(COLUMNS.into_iter().map(Cow::from)));
                [BYTE_ORDER_MARK.as_bytes(), &names].concat()
            }
            Format::JsonLines => Vec::new(),
        }
    }

    fn part(self, page: Page<AuditEntry>) -> Part<AuditId> {
        let next = page.items.last().filter(|_| page.more).map(|last| last.id);
        let text = match self.format {
            Format::Csv => spreadsheet::write(page.items.iter().map(|entry| cells(entry).into_iter())),
            Format::JsonLines => page.items.into_iter().flat_map(line).collect(),
        };
        Part { text, next }
    }
}

/// The beginning of a file: its first page.
pub struct Begun {
    extent: Extent,
    page: Page<AuditEntry>,
}

/// The log as a file, newest entry first.
pub fn respond(app: &App, access: Access, begun: Answer<Begun>) -> Response {
    let Answer { reply: Begun { extent, page }, company, now } = begun;
    let label = Label {
        name: FILE_NAME,
        day: now.day_in(&company.settings.time_zone),
        extension: extent.format.as_str(),
        media_type: extent.media_type(),
    };
    let Part { text, next } = extent.part(page);
    let first = Part { text: [extent.header(), text].concat(), next };
    paged_file::respond(&label, first, File { app: app.clone(), access, extent })
}

struct File {
    app: App,
    access: Access,
    extent: Extent,
}

impl Source for File {
    type Place = AuditId;

    async fn part(&self, before: AuditId) -> Result<Part<AuditId>, Error> {
        let filter = self.extent.filter;
        let found = self
            .app
            .read(&self.access, AUDIT, move |snapshot, _| list(snapshot, &filter, Some(before), MAX_LIMIT));
        Ok(self.extent.part(found.await?.reply))
    }
}

fn cells(entry: &AuditEntry) -> [Cow<'_, str>; COLUMNS.len()] {
    let AuditEntry { id, actor, action, target, detail, at, address, request_id } = entry;
    let optional = |text: Option<&'_ str>| safe(text.unwrap_or_default()).into_owned().into();
    [
        id.to_string().into(),
        at.to_string().into(),
        actor.kind().into(),
        actor.id_text().unwrap_or_default().into(),
        optional(actor.name()),
        action.as_str().into(),
        optional(target.as_deref()),
        detail.as_str().into(),
        optional(address.as_deref()),
        optional(request_id.as_deref()),
    ]
}

fn line(entry: AuditEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(&AuditView::from(entry)).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::id::PersonId;

    fn entry(name: &str) -> AuditEntry {
        AuditEntry {
            id: AuditId::from_bytes([1; 16]),
            actor: Actor::Person { id: PersonId::from_bytes([2; 16]), name: name.to_owned() },
            action: "view.deleted".to_owned(),
            target: Some("=cmd|x".to_owned()),
            detail: r#"{"query":"a\nb"}"#.to_owned(),
            at: Time::from_micros(0),
            address: Some("192.0.2.7".to_owned()),
            request_id: None,
        }
    }

    fn text(format: Format) -> String {
        let extent = Extent { filter: Filter::default(), format };
        let Part { text, next } = extent.part(Page { items: vec![entry("@Ana"), entry("Bo")], more: true });
        assert_eq!(next, Some(AuditId::from_bytes([1; 16])));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_spreadsheet_sees_no_formula() {
        let csv = text(Format::Csv);
        assert_eq!(csv.lines().count(), 2, "{csv}");
        assert!(csv.contains(",person,per_") && csv.contains(",'@Ana,view.deleted,'=cmd|x,"), "{csv}");
        assert!(csv.contains(r#","{""query"":""a\nb""}",192.0.2.7,"#), "{csv}");
    }

    #[test]
    fn each_line_is_an_object() {
        let lines = text(Format::JsonLines);
        let objects: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects.len(), 2);
        assert_eq!(
            (&objects[1]["actor"]["name"], &objects[1]["detail"]["query"]),
            (&"Bo".into(), &"a\nb".into())
        );
    }
}
