//! The error file: the rejected rows with their cells, line and reason, as a CSV file that is safe to open in
//! a spreadsheet.

use rapport_domain::id::ImportId;
use rapport_domain::import::Import;
use rapport_domain::import::mapping::{ERROR_COLUMN, LINE_COLUMN};
use rapport_domain::import::row::guarded;
use rapport_domain::right::Right;
use rapport_store::import_data::ErrorRow;
use rapport_store::{import, import_data};

use crate::App;
use crate::access::{Access, Needs};
use crate::error::Error;

const PAGE: i64 = 500;
/// Without it, spreadsheets assume their own legacy encoding.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads the error file of an import in parts.
pub struct ErrorFile {
    app: App,
    access: Access,
    /// What reading it needs.
    right: Right,
    import: Import,
    after: i64,
    is_begun: bool,
    /// Whether each row has its line and reason.
    has_reasons: bool,
}

impl ErrorFile {
    pub async fn open(app: &App, access: &Access, id: ImportId) -> Result<Self, Error> {
        Self::read(app, access, id, Right::Export).await
    }

    /// The rows as they were in the file, for an import of their own: nothing leaves the service.
    pub(super) async fn to_import_again(app: &App, access: &Access, id: ImportId) -> Result<Self, Error> {
        let file = Self::read(app, access, id, Right::Import).await?;
        Ok(Self { has_reasons: false, ..file })
    }

    async fn read(app: &App, access: &Access, id: ImportId, right: Right) -> Result<Self, Error> {
        let needs = Needs::Right(right);
        let found = app.read(access, needs, move |snapshot, _| import::get(snapshot, id)).await?.reply;
        let import = found.ok_or(Error::NotFound("import"))?;
        Ok(Self {
            app: app.clone(),
            access: access.clone(),
            right,
            import,
            after: 0,
            is_begun: false,
            has_reasons: true,
        })
    }

    pub fn id(&self) -> ImportId {
        self.import.id
    }

    /// The file name.
    pub fn name(&self) -> String {
        let stem = self.import.filename.trim_end_matches(".csv");
        format!("{stem}.errors.csv")
    }

    /// The next part; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let (id, after) = (self.import.id, self.after);
        let needs = Needs::Right(self.right);
        let read = self
            .app
            .read(&self.access, needs, move |snapshot, _| import_data::errors(snapshot, id, after, PAGE));
        let rows = read.await?.reply;
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if rows.is_empty() && !is_first {
            return Ok(None);
        }
        self.after = rows.last().map_or(after, |row| row.line);
        Ok(Some(self.written(&rows, is_first)))
    }

    fn written(&self, rows: &[ErrorRow], with_header: bool) -> Vec<u8> {
        let mut out = Vec::new();
        if with_header {
            out.extend_from_slice(BYTE_ORDER_MARK.as_bytes());
        }
        let mut writer = csv::Writer::from_writer(out);
        let columns = self.import.column_names();
        // Writing to memory can't fail.
        if with_header {
            let reasons = [LINE_COLUMN, ERROR_COLUMN].into_iter().filter(|_| self.has_reasons);
            let names = columns.iter().copied().chain(reasons);
            let _ = writer.write_record(names.map(|name| guarded(name).into_owned()));
        }
        for row in rows {
            let mut cells: Vec<String> = serde_json::from_str(&row.cells).unwrap_or_default();
            let width = cells.len().max(columns.len());
            cells.resize(width, String::new());
            let cells = cells.iter().map(|cell| guarded(cell).into_owned());
            let reasons = [row.line.to_string(), row.reason.clone()].into_iter().filter(|_| self.has_reasons);
            let _ = writer.write_record(cells.chain(reasons));
        }
        writer.into_inner().unwrap_or_default()
    }
}
