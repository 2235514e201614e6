//! Accounts as CSV, read page by page as the caller receives them, so that an export of any size needs the
//! memory of only one page.
//!
//! The file is made for spreadsheets: it has a byte order mark, because some of them don't recognise UTF-8 without
//! one, and no cell that they would treat as a formula.

use std::borrow::Cow;
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
use rapport_app::read::accounts::{AccountPage, Cursor};
use rapport_app::read::export::{self, Extent};
use rapport_app::{Access, Answer, App, Error};
use rapport_domain::account::Account;
use rapport_domain::channel::PromoCode;
use rapport_domain::time::Time;
use serde_json::{Map, Value};

use crate::shared::MEMBER;

const BYTE_ORDER_MARK: &str = "\u{feff}";
const COLUMNS: [&str; 14] = [
    "id",
    "imported_id",
    "name",
    "status",
    "captured_value",
    "captured_value_currency",
    "channel",
    "promo_code",
    "acquired_at",
    "last_contact_at",
    "first_seen_at",
    "last_seen_at",
    "created_at",
    "updated_at",
];
const FIELD_PREFIX: &str = "custom_fields.";
/// The custom fields that have no column of their own, as JSON.
const OTHER_FIELDS: &str = "other_fields";
/// Characters that make a spreadsheet treat a cell as a formula, or might if the cell is split.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// How often a page is tried while the database is busy, and the pause between tries.
const MOST_TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(250);
const MAX_FILE_NAME_CHARS: usize = 60;

/// The beginning of an export: its columns and its first page.
pub struct Begun {
    extent: Extent,
    table: Table,
    page: AccountPage,
}

impl Begun {
    /// With only these columns.
    pub fn chosen(extent: Extent, columns: Vec<Column>, page: AccountPage) -> Self {
        Self { extent, table: Table { columns, has_others: false }, page }
    }
}

/// With all columns.
impl From<export::Begun> for Begun {
    fn from(export::Begun { extent, fields, page }: export::Begun) -> Self {
        Self { extent, table: Table::whole(fields), page }
    }
}

/// A chosen column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// One of `COLUMNS`.
    Member(&'static str),
    /// A custom field.
    Field(String),
}

/// The export as a response. The file name consists of `name` and the date.
pub fn respond(app: &App, access: Access, name: &str, begun: Answer<Begun>) -> Response {
    let Answer { reply: Begun { extent, table, page }, company, .. } = begun;
    let day = extent.now.day_in(&company.settings.time_zone);
    let file_name = format!("{}-{day}.csv", plain(name));
    let mut text = Vec::from(BYTE_ORDER_MARK);
    text.extend(table.header());
    text.extend(table.rows(&page.items));
    let export = Export { app: app.clone(), access, extent, table };
    let pages = Pages { export: Arc::new(export), step: Step::Ready(text.into(), page.next) };
    let mut response = Response::new(Body::new(pages));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8; header=present"));
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

/// Everything needed to read and write the pages of an export.
struct Export {
    app: App,
    access: Access,
    extent: Extent,
    table: Table,
}

impl Export {
    async fn page(self: Arc<Self>, cursor: Cursor) -> Result<AccountPage, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (extent, cursor) = (self.extent.clone(), cursor.clone());
            let found =
                self.app.read(&self.access, MEMBER, move |snapshot, _| extent.page(snapshot, Some(cursor)));
            match found.await {
                Err(Error::Busy) if tries < MOST_TRIES => tokio::time::sleep(PAUSE).await,
                found => return found.map(|answer| answer.reply),
            }
        }
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<AccountPage, Error>> + Send>>;

enum Step {
    /// The bytes to send next, and where the following page begins.
    Ready(Bytes, Option<Cursor>),
    Reading(Reading),
    Done,
}

/// The response body. A page is read once the previous one has been sent. An error aborts the response, so that the
/// caller doesn't mistake it for a complete file.
struct Pages {
    export: Arc<Export>,
    step: Step,
}

impl hyper::body::Body for Pages {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Step::Reading(reading) = &mut self.step {
            let read = ready!(reading.as_mut().poll(context));
            match read {
                Ok(page) => {
                    let rows = self.export.table.rows(&page.items);
                    self.step = Step::Ready(rows.into(), page.next);
                }
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
        if let Some(cursor) = next {
            self.step = Step::Reading(Box::pin(Arc::clone(&self.export).page(cursor)));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

/// The columns of an export.
struct Table {
    columns: Vec<Column>,
    /// Custom fields without a column go into a last column, as JSON.
    has_others: bool,
}

impl Table {
    /// All columns, these custom fields, and one column for any others.
    fn whole(fields: Vec<String>) -> Self {
        let members = COLUMNS.into_iter().map(Column::Member);
        Self { columns: members.chain(fields.into_iter().map(Column::Field)).collect(), has_others: true }
    }

    fn header(&self) -> Vec<u8> {
        let names = self.columns.iter().map(|column| match column {
            Column::Member(name) => Cow::from(*name),
            Column::Field(key) => Cow::from(format!("{FIELD_PREFIX}{key}")),
        });
        write(std::iter::once(names.chain(self.has_others.then_some(Cow::from(OTHER_FIELDS)))))
    }

    fn rows(&self, accounts: &[Account]) -> Vec<u8> {
        write(accounts.iter().map(|account| self.cells(account).into_iter()))
    }

    fn cells<'a>(&self, account: &'a Account) -> Vec<Cow<'a, str>> {
        let mut fields = account.custom_fields.to_map();
        let cell = |column: &Column| match column {
            Column::Member(name) => member_cell(account, name),
            Column::Field(key) => match fields.remove(key) {
                Some(value) => field_cell(value).into(),
                None => Cow::from(""),
            },
        };
        let mut cells: Vec<Cow<str>> = self.columns.iter().map(cell).collect();
        if self.has_others {
            cells.push(others(fields).into());
        }
        cells
    }
}

fn member_cell<'a>(account: &'a Account, name: &str) -> Cow<'a, str> {
    let time = |time: Option<Time>| time.map(|time| time.to_string()).unwrap_or_default().into();
    let optional = |text: Option<&'a str>| safe(text.unwrap_or_default());
    match name {
        "id" => account.id.to_string().into(),
        "imported_id" => optional(account.imported_id.as_deref()),
        "name" => safe(&account.name),
        "status" => account.status.as_str().into(),
        "captured_value" => account.value.map(|money| money.amount_text()).unwrap_or_default().into(),
        "captured_value_currency" => {
            account.value.map(|money| money.currency.code()).unwrap_or_default().into()
        }
        "channel" => optional(account.channel.as_ref().map(|channel| channel.name.as_str())),
        "promo_code" => optional(account.promo_code.as_ref().map(PromoCode::as_str)),
        "acquired_at" => time(account.acquired_at),
        "last_contact_at" => time(account.last_contact_at),
        "first_seen_at" => time(account.first_seen_at),
        "last_seen_at" => time(account.last_seen_at),
        "created_at" => time(Some(account.created_at)),
        "updated_at" => time(Some(account.updated_at)),
        _ => unreachable!("all columns are in COLUMNS"),
    }
}

fn field_cell(value: Value) -> String {
    match value {
        Value::String(text) => safe(&text).into_owned(),
        // A number is not a formula, not even a negative one.
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

fn others(fields: Map<String, Value>) -> String {
    if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() }
}

/// Escapes a text so that no spreadsheet treats it as a formula.
fn safe(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA_STARTS) { Cow::from(format!("'{text}")) } else { Cow::from(text) }
}

fn write<'a, R: Iterator<Item = Cow<'a, str>>>(rows: impl Iterator<Item = R>) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        writer
            .write_record(row.map(Cow::into_owned))
            .expect("rows have equal length and memory does not fail");
    }
    writer.into_inner().expect("flushing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use rapport_domain::custom_fields::CustomFields;
    use rapport_domain::id::AccountId;
    use rapport_domain::pipeline::Status;

    use super::*;

    #[test]
    fn no_cell_looks_like_a_formula() {
        let table = [
            ("=1+1", "'=1+1"),
            ("+49 30 1", "'+49 30 1"),
            ("-5", "'-5"),
            ("@sum", "'@sum"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("\n=x", "'\n=x"),
            ("＝1", "'＝1"),
            ("a=b", "a=b"),
            ("", ""),
            ("'quoted", "'quoted"),
        ];
        for (text, shown) in table {
            assert_eq!(safe(text), shown);
        }
        assert_eq!(field_cell(serde_json::json!(-5)), "-5");
        assert_eq!(field_cell(serde_json::json!("-5")), "'-5");
        assert_eq!(field_cell(serde_json::json!(["=x"])), r#"["=x"]"#);
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let row = ["plain", "a,b", "say \"hi\"", "two\r\nlines", ""].map(Cow::from);
        let text = String::from_utf8(write(std::iter::once(row.into_iter()))).unwrap();
        assert_eq!(text, "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",\r\n");
    }

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

    #[test]
    fn fields_without_a_column_are_not_lost() {
        let id = AccountId::from_bytes([1; 16]);
        let now = Time::from_micros(0);
        let mut account = Account::new(id, "=A".to_owned(), Status::Lost, now);
        account.custom_fields = CustomFields::from_stored(r#"{"new":"@x","plan":"=pro"}"#.to_owned());
        let table = Table::whole(vec!["plan".to_owned(), "seats".to_owned()]);
        let header = String::from_utf8(table.header()).unwrap();
        assert!(
            header.ends_with("updated_at,custom_fields.plan,custom_fields.seats,other_fields\r\n"),
            "{header}"
        );
        let row = String::from_utf8(table.rows(&[account])).unwrap();
        assert!(row.contains(",'=A,lost,"), "{row}");
        assert!(row.ends_with(",'=pro,,\"{\"\"new\"\":\"\"@x\"\"}\"\r\n"), "{row}");
    }
}
