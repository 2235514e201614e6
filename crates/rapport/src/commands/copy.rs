//! `rapport copy`: copies a whole database into an empty one, next to a service that may be running.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use rapport_store::Database;
use rapport_store::copy::{Pace, TableSum, copy};

use super::{print, progress};
use crate::cli;
use crate::data_dir;
use crate::option_value::DatabaseAddress;

const DATABASE_FILE: &str = "rapport.db";

pub fn run(arguments: &cli::Copy) -> anyhow::Result<ExitCode> {
    let (from, to) = (place(&arguments.from), place(&arguments.to));
    let _lock = match &to.0 {
        Database::Sqlite(path) => {
            if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
                data_dir::create(directory)
                    .with_context(|| format!("the directory {} cannot be created", directory.display()))?;
            }
            Some(data_dir::lock_database(path, "the target")?)
        }
        Database::Postgres(_) => None,
    };
    let copied = copy(&from.0, &to.0, &mut progress::shown(Pace::Full));
    let copied = copied.with_context(|| format!("{from} was not copied to {to}"))?;
    let mut text = table(&copied);
    let _ = writeln!(text, "\nCopied {from} to {to}. Counts and checksums are equal.");
    text.push_str(
        "The encryption key is not in the database: give the service there the same key file (--secret-key-file).\n",
    );
    print(&text)
}

/// A database as the options name it, a SQLite file, or a data directory.
fn place(text: &str) -> DatabaseAddress {
    if let Ok(address) = text.parse() {
        return address;
    }
    let path = Path::new(text);
    let is_directory = path.is_dir() || (!path.exists() && path.extension().is_none());
    let file = if is_directory { path.join(DATABASE_FILE) } else { path.to_owned() };
    DatabaseAddress(Database::Sqlite(file))
}

/// What a copy contains.
pub fn table(copied: &[TableSum]) -> String {
    let name_width = copied.iter().map(|sum| sum.table.len()).max().unwrap_or(0);
    let mut text = String::new();
    for TableSum { table, rows, checksum } in copied {
        let _ = writeln!(text, "{table:<name_width$}  {rows:>12}  {checksum}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_a_file_or_a_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        let table = [
            ("postgres://h/db".to_owned(), "postgres://h/db".to_owned()),
            ("sqlite:x".to_owned(), "sqlite:x".to_owned()),
            (path.clone(), format!("sqlite:{path}/rapport.db")),
            (format!("{path}/new"), format!("sqlite:{path}/new/rapport.db")),
            (format!("{path}/new.db"), format!("sqlite:{path}/new.db")),
        ];
        for (text, shown) in table {
            assert_eq!(place(&text).to_string(), shown, "{text}");
        }
    }
}
