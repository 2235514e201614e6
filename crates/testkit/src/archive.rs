//! Reads a ZIP archive with the tables of an export.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use serde_json::Value;
use zip::ZipArchive;

/// The files of an archive.
pub struct Archive {
    /// In their order.
    pub names: Vec<String>,
    texts: BTreeMap<String, String>,
}

impl Archive {
    /// Panics unless the archive is complete and its checksums are right.
    pub fn read(bytes: &[u8]) -> Self {
        let mut zip = ZipArchive::new(Cursor::new(bytes)).expect("an archive");
        let (mut names, mut texts) = (Vec::new(), BTreeMap::new());
        for number in 0..zip.len() {
            let mut file = zip.by_index(number).expect("a file");
            let name = file.name().expect("a name").into_owned();
            let mut text = String::new();
            file.read_to_string(&mut text).expect("text with its checksum");
            names.push(name.clone());
            texts.insert(name, text);
        }
        Self { names, texts }
    }

    pub fn text(&self, name: &str) -> &str {
        self.texts.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.names))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(self.text(name)).expect("JSON")
    }

    /// The rows of a table, each by column.
    pub fn rows(&self, table: &str) -> Vec<BTreeMap<String, String>> {
        let text = self.text(&format!("{table}.csv"));
        let text = text.strip_prefix('\u{feff}').expect("a byte order mark");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().expect("a header").clone();
        let row = |record: csv::StringRecord| {
            columns.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect()
        };
        reader.records().map(|record| row(record.expect("a row"))).collect()
    }

    /// The tables, in their order.
    pub fn tables(&self) -> Vec<&str> {
        self.names.iter().filter_map(|name| name.strip_suffix(".csv")).collect()
    }
}
