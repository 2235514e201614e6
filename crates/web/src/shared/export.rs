//! Accounts as CSV, with all columns or those that were chosen.

use std::borrow::Cow;

use axum::response::Response;
use rapport_app::read::accounts::{AccountPage, Cursor};
use rapport_app::read::export::{self, Extent};
use rapport_app::spreadsheet::{BYTE_ORDER_MARK, MEDIA_TYPE, cell, safe, write};
use rapport_app::{Access, Answer, App, Error};
use rapport_domain::account::Account;
use rapport_domain::channel::PromoCode;
use rapport_domain::time::Time;
use serde_json::{Map, Value};

use crate::shared::EXPORT;
use crate::shared::paged_file::{self, Label, Part, Source};

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
    let label = Label { name, day, extension: "csv", media_type: MEDIA_TYPE };
    let mut text = Vec::from(BYTE_ORDER_MARK);
    text.extend(table.header());
    text.extend(table.rows(&page.items));
    let first = Part { text, next: page.next };
    paged_file::respond(&label, first, Export { app: app.clone(), access, extent, table })
}

/// Everything needed to read and write the pages of an export.
struct Export {
    app: App,
    access: Access,
    extent: Extent,
    table: Table,
}

impl Source for Export {
    type Place = Cursor;

    async fn part(&self, cursor: Cursor) -> Result<Part<Cursor>, Error> {
        let extent = self.extent.clone();
        let found =
            self.app.read(&self.access, EXPORT, move |snapshot, _| extent.page(snapshot, Some(cursor)));
        let page = found.await?.reply;
        Ok(Part { text: self.table.rows(&page.items), next: page.next })
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
        let cell_of = |column: &Column| match column {
            Column::Member(name) => member_cell(account, name),
            Column::Field(key) => match fields.remove(key) {
                Some(value) => cell(value).into(),
                None => Cow::from(""),
            },
        };
        let mut cells: Vec<Cow<str>> = self.columns.iter().map(cell_of).collect();
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

fn others(fields: Map<String, Value>) -> String {
    if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() }
}

#[cfg(test)]
mod tests {
    use rapport_domain::custom_fields::CustomFields;
    use rapport_domain::id::AccountId;
    use rapport_domain::pipeline::Status;

    use super::*;

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
