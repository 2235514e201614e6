//! Where a database under test lives: a data directory, and for PostgreSQL a database on our own server.

use std::cell::Cell;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;

use anyhow::Context as _;
use postgres::{Client, NoTls};
use rapport_store::Database;
use rapport_testkit::PostgresServer;
use tempfile::TempDir;

/// What an operator of a small machine would set, for both the service and the raw limit.
const POSTGRES_SETTINGS: &[&str] =
    &["shared_buffers=256MB", "effective_cache_size=1GB", "max_wal_size=4GB", "checkpoint_timeout=15min"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// The engine on which places are created.
pub struct Ground {
    server: Option<PostgresServer>,
    copies: Cell<u32>,
}

impl Ground {
    pub fn prepare(engine: Engine) -> Self {
        let server = (engine == Engine::Postgres).then(|| {
            let options = rapport_testkit::postgres::Options { durable: true };
            PostgresServer::start_tuned(options, POSTGRES_SETTINGS)
        });
        Self { server, copies: Cell::new(0) }
    }

    /// The processes of the server, if there is one.
    pub fn processes(&self) -> Vec<u32> {
        self.server.as_ref().map(PostgresServer::process_ids).unwrap_or_default()
    }

    /// An empty database.
    pub fn fresh(&self) -> anyhow::Result<Place> {
        let home = tempfile::tempdir().context("a directory for the database")?;
        let database = match &self.server {
            None => Database::Sqlite(home.path().join("rapport.db")),
            Some(server) => Database::Postgres(server.fresh_database()),
        };
        Ok(Place { home, database })
    }

    /// A copy of a database that nobody has open, so that every measurement starts from the same state.
    pub fn copy(&self, original: &Place) -> anyhow::Result<Place> {
        let home = tempfile::tempdir().context("a directory for the copy")?;
        for entry in fs::read_dir(original.home())?.flatten() {
            if entry.file_type()?.is_file() {
                let copy = home.path().join(entry.file_name());
                fs::copy(entry.path(), &copy).context("copying the data")?;
                // Otherwise the system writes gigabytes back while the service is measured.
                File::open(&copy)?.sync_all().context("syncing the copy")?;
            }
        }
        let database = match &original.database {
            Database::Sqlite(path) => {
                let name = path.file_name().context("a database file has a name")?;
                Database::Sqlite(home.path().join(name))
            }
            Database::Postgres(url) => {
                self.copies.set(self.copies.get() + 1);
                let (server, name) = split_url(url)?;
                let copy = format!("copy_{}", self.copies.get());
                administer(server, &format!("CREATE DATABASE {copy} TEMPLATE {name} STRATEGY file_copy"))?;
                administer(server, "CHECKPOINT")?;
                Database::Postgres(format!("{server}/{copy}"))
            }
        };
        Ok(Place { home, database })
    }
}

/// A database and its data directory; both are removed when it is dropped.
pub struct Place {
    home: TempDir,
    pub database: Database,
}

impl Place {
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// In the form that the command line takes.
    pub fn database_argument(&self) -> String {
        match &self.database {
            Database::Sqlite(path) => format!("sqlite:{}", path.display()),
            Database::Postgres(url) => url.clone(),
        }
    }

    /// Counts in the database itself, past the service.
    pub fn count(&self, sql: &str) -> anyhow::Result<i64> {
        match &self.database {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path)?;
                connection.busy_timeout(std::time::Duration::from_secs(10))?;
                Ok(connection.query_row(sql, [], |row| row.get(0))?)
            }
            Database::Postgres(url) => Ok(Client::connect(url, NoTls)?.query_one(sql, &[])?.get(0)),
        }
    }

    /// Brings a freshly loaded database to rest, with nothing left to clean up or write back. It gathers no statistics,
    /// because nobody does that for an operator's database either.
    pub fn settle(&self) -> anyhow::Result<()> {
        if let Database::Postgres(url) = &self.database {
            let mut client = Client::connect(url, NoTls)?;
            client.batch_execute("VACUUM")?;
            client.batch_execute("CHECKPOINT")?;
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Database::Postgres(url) = &self.database
            && let Ok((server, name)) = split_url(url)
        {
            // The server's files are removed anyway; this only frees the disk earlier.
            let _ = administer(server, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

fn split_url(url: &str) -> anyhow::Result<(&str, &str)> {
    url.rsplit_once('/').context("a database URL ends with the database's name")
}

fn administer(server: &str, statement: &str) -> anyhow::Result<()> {
    let mut client = Client::connect(&format!("{server}/postgres"), NoTls)?;
    client.batch_execute(statement).with_context(|| statement.to_owned())
}
