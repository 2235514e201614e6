//! The four kinds of value in storage, the same on both engines.
//!
//! Times are integer microseconds, ids 16 bytes, JSON text, money amounts integers, flags 0 or 1.

use std::error::Error as StdError;

use rapport_domain::activity::EventMark;
use rapport_domain::credential::SecretHash;
use rapport_domain::id::{
    AccountId, AuditId, BulkId, CampaignId, ChannelId, CompanyId, ContactId, ConversationId, CorrectionId,
    CredentialId, DeliveryId, EventId, ExchangeRateId, FormId, HistoryId, ImportId, InvitationId, MailId,
    MessageId, NoteId, PasskeyId, PersonId, RedeliveryId, RejectId, ResponseId, SessionId, SsoId, WebhookId,
};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::{Day, Time};
use tokio_postgres::types::{IsNull, ToSql, Type as PgType, private::BytesMut, to_sql_checked};

use crate::error::Error;

/// A column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Int,
    Text,
    Bytes,
}

/// A value to bind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    /// Most bytes are an id, which needs no allocation.
    Id([u8; 16]),
    /// Bytes of any other length.
    Bytes(Vec<u8>),
}

impl From<Value<'_>> for Cell {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Int(number),
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Bytes(bytes) => bytes.try_into().map_or_else(|_| Self::Bytes(bytes.to_vec()), Self::Id),
        }
    }
}

/// Hands out this many columns of a row without a copy of what they hold.
pub(crate) fn hand_out<'v>(
    width: usize,
    read: impl Fn(usize) -> Result<Value<'v>, Error>,
    take: impl FnOnce(&[Value]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut columns = [Value::Null; MAX_HANDED_OUT];
    let columns = columns.get_mut(..width).ok_or_else(|| Error::fault("a row has too many columns"))?;
    for (n, column) in columns.iter_mut().enumerate() {
        *column = read(n)?;
    }
    take(columns)
}

const MAX_HANDED_OUT: usize = 8;

/// A row that was read; its columns are taken in order.
#[derive(Debug, Clone)]
pub struct Row {
    cells: std::vec::IntoIter<Cell>,
}

impl Row {
    /// Reads this many columns. Collecting results would allocate again and again for a wide row, as it can't know
    /// how many there are.
    pub(crate) fn read<E>(width: usize, read: impl Fn(usize) -> Result<Cell, E>) -> Result<Self, E> {
        let mut cells = Vec::with_capacity(width);
        for column in 0..width {
            cells.push(read(column)?);
        }
        Ok(Self { cells: cells.into_iter() })
    }

    /// A row of one column.
    pub(crate) fn of(cell: Cell) -> Self {
        Self { cells: vec![cell].into_iter() }
    }

    /// The next column.
    pub fn take<T: FromCell>(&mut self) -> Result<T, Error> {
        let cell = self.cells.next().ok_or_else(|| Error::fault("a row has fewer columns than were read"))?;
        T::from_cell(cell)
    }
}

pub trait FromCell: Sized {
    fn from_cell(cell: Cell) -> Result<Self, Error>;
}

impl FromCell for Cell {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        Ok(cell)
    }
}

fn unexpected<T>(wanted: &str, cell: &Cell) -> Result<T, Error> {
    let found = match cell {
        Cell::Null => "null",
        Cell::Int(_) => "an integer",
        Cell::Text(_) => "text",
        Cell::Id(_) | Cell::Bytes(_) => "bytes",
    };
    Err(Error::fault(format!("expected {wanted} in a column, found {found}")))
}

impl FromCell for i64 {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        if let Cell::Int(number) = cell { Ok(number) } else { unexpected("an integer", &cell) }
    }
}

impl FromCell for bool {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}

impl FromCell for String {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        if let Cell::Text(text) = cell { Ok(text) } else { unexpected("text", &cell) }
    }
}

impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        match cell {
            Cell::Id(id) => Ok(id.to_vec()),
            Cell::Bytes(bytes) => Ok(bytes),
            other => unexpected("bytes", &other),
        }
    }
}

impl FromCell for [u8; 16] {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        if let Cell::Id(id) = cell { Ok(id) } else { unexpected("16 bytes", &cell) }
    }
}

impl FromCell for Time {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        i64::from_cell(cell).map(Self::from_micros)
    }
}

impl FromCell for Day {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        i64::from_cell(cell).map(Self::from_number)
    }
}

impl FromCell for CompanyId {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        i64::from_cell(cell).map(Self)
    }
}

impl FromCell for Status {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        let text = String::from_cell(cell)?;
        Self::parse(&text).map_err(|_| Error::fault("an unknown status in a column"))
    }
}

impl FromCell for Source {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        let text = String::from_cell(cell)?;
        Self::parse(&text).ok_or_else(|| Error::fault("an unknown source in a column"))
    }
}

impl FromCell for SecretHash {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        let bytes =
            Vec::from_cell(cell)?.try_into().map_err(|_| Error::fault("expected 32 bytes in a column"))?;
        Ok(Self::from_bytes(bytes))
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell) -> Result<Self, Error> {
        if cell == Cell::Null { Ok(None) } else { T::from_cell(cell).map(Some) }
    }
}

impl<'a> From<&'a Cell> for Value<'a> {
    fn from(cell: &'a Cell) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Int(number) => Self::Int(*number),
            Cell::Text(text) => Self::Text(text),
            Cell::Id(id) => Self::Bytes(id),
            Cell::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Time> for Value<'_> {
    fn from(time: Time) -> Self {
        Self::Int(time.as_micros())
    }
}

impl From<Day> for Value<'_> {
    fn from(day: Day) -> Self {
        Self::Int(day.number())
    }
}

impl From<CompanyId> for Value<'_> {
    fn from(company: CompanyId) -> Self {
        Self::Int(company.0)
    }
}

impl From<Status> for Value<'_> {
    fn from(status: Status) -> Self {
        Self::Text(status.as_str())
    }
}

impl From<Source> for Value<'_> {
    fn from(source: Source) -> Self {
        Self::Text(source.as_str())
    }
}

impl<'a> From<&'a SecretHash> for Value<'a> {
    fn from(hash: &'a SecretHash) -> Self {
        Self::Bytes(hash.as_bytes())
    }
}

impl<'a> From<&'a EventMark> for Value<'a> {
    fn from(mark: &'a EventMark) -> Self {
        Self::Bytes(mark.as_bytes())
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! id_values {
    ($($id:ident),+) => {$(
        impl<'a> From<&'a $id> for Value<'a> {
            fn from(id: &'a $id) -> Self {
                Self::Bytes(id.as_bytes())
            }
        }

        impl FromCell for $id {
            fn from_cell(cell: Cell) -> Result<Self, Error> {
                <[u8; 16]>::from_cell(cell).map(Self::from_bytes)
            }
        }
    )+};
}

id_values!(
    AccountId,
    AuditId,
    BulkId,
    CampaignId,
    ContactId,
    ImportId,
    SessionId,
    FormId,
    InvitationId,
    MailId,
    ChannelId,
    ConversationId,
    CorrectionId,
    CredentialId,
    DeliveryId,
    EventId,
    ExchangeRateId,
    HistoryId,
    MessageId,
    NoteId,
    PasskeyId,
    PersonId,
    RedeliveryId,
    RejectId,
    ResponseId,
    SsoId,
    WebhookId
);

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &PgType, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &PgType) -> bool {
        matches!(*kind, PgType::INT8 | PgType::TEXT | PgType::BYTEA)
    }

    to_sql_checked!();
}

/// Values to bind, in order: `values![id, name, now]`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::Value::from($value)),*] };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_are_read_as_they_were_and_only_sixteen_are_an_id() {
        for length in [0, 1, 15, 16, 17, 32] {
            let bytes = vec![7; length];
            let cell = Cell::from(Value::Bytes(&bytes));
            assert_eq!(Value::from(&cell), Value::Bytes(&bytes), "{length}");
            assert_eq!(Vec::from_cell(cell.clone()).unwrap(), bytes, "{length}");
            let id = AccountId::from_cell(cell);
            assert_eq!(id.ok(), (length == 16).then_some(AccountId::from_bytes([7; 16])), "{length}");
        }
    }

    #[test]
    fn a_row_gives_its_columns_in_order_and_no_more() {
        let cells = [Cell::Int(1), Cell::Null, Cell::Text("a".to_owned())];
        let mut row = Row::read(cells.len(), |n| Ok::<_, Error>(cells[n].clone())).unwrap();
        assert_eq!(row.take::<i64>().unwrap(), 1);
        assert_eq!(row.take::<Option<i64>>().unwrap(), None);
        assert_eq!(row.take::<String>().unwrap(), "a");
        assert!(row.take::<i64>().is_err());
    }

    #[test]
    fn columns_are_handed_out_in_order_up_to_a_limit() {
        let number = |n: usize| i64::try_from(n).map(Value::Int).map_err(|_| Error::fault("a large number"));
        let mut taken = Vec::new();
        let mut take = |columns: &[Value]| {
            taken = columns.iter().map(|column| Cell::from(*column)).collect();
            Ok(())
        };
        hand_out(MAX_HANDED_OUT, number, &mut take).unwrap();
        assert!(hand_out(MAX_HANDED_OUT + 1, number, &mut take).is_err());
        assert_eq!(taken, (0..8).map(Cell::Int).collect::<Vec<_>>());
    }
}
