//! A database of a test's own: a copy of one that each process creates once, because to create it takes longer than many
//! tests. It is removed after the test.

use std::sync::OnceLock;
use std::time::Duration;

use rapport_store::{Config, Database};
use tempfile::TempDir;

use crate::{Engine, PostgresServer, opening};

const FILE: &str = "rapport.db";

pub struct TestDatabase {
    pub database: Database,
    _kept: Kept,
}

/// What goes when the test ends.
enum Kept {
    Directory(#[expect(dead_code, reason = "dropping it removes the files")] TempDir),
    OnServer(&'static Server, String),
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Self::OnServer(server, url) = self {
            (server.shared)().remove_when_unused(url);
        }
    }
}

/// A server, and the database on it that is copied.
struct Server {
    shared: fn() -> &'static PostgresServer,
    template: OnceLock<String>,
}

static PLAIN: Server = Server { shared: PostgresServer::shared, template: OnceLock::new() };
static OVER_TLS: Server = Server { shared: PostgresServer::shared_over_tls, template: OnceLock::new() };

impl TestDatabase {
    /// One with the tables of this release and no rows.
    pub fn new(engine: Engine) -> Self {
        Self::on(engine, &PLAIN)
    }

    /// The same, but PostgreSQL is reached over TLS, with everything verified.
    pub fn over_tls(engine: Engine) -> Self {
        Self::on(engine, &OVER_TLS)
    }

    fn on(engine: Engine, server: &'static Server) -> Self {
        match engine {
            Engine::Sqlite => {
                let home = tempfile::tempdir().expect("a temporary directory");
                let path = home.path().join(FILE);
                std::fs::write(&path, sqlite_template()).expect("a copy of the database");
                Self { database: Database::Sqlite(path), _kept: Kept::Directory(home) }
            }
            Engine::Postgres => {
                let url = (server.shared)().copy_of(server.template());
                Self { database: Database::Postgres(url.clone()), _kept: Kept::OnServer(server, url) }
            }
        }
    }
}

/// A test must not fail because its machine is busy. Connections to PostgreSQL are processes that most tests have no use
/// for: two writers are enough to get into each other's way.
pub fn patient(database: Database) -> Config {
    Config { max_wait: Duration::from_mins(5), readers: 1, writers: 2, ..Config::new(database) }
}

fn sqlite_template() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = home.path().join(FILE);
        drop(opening::open(&patient(Database::Sqlite(path.clone()))));
        assert!(!path.with_extension("db-wal").exists(), "everything is in one file once it is closed");
        std::fs::read(&path).expect("reading the database")
    })
}

impl Server {
    fn template(&self) -> &str {
        self.template.get_or_init(|| {
            let url = (self.shared)().fresh_database();
            drop(opening::open(&patient(Database::Postgres(url.clone()))));
            // They end by themselves, but a busy server may take longer than a copy waits.
            (self.shared)().terminate_sessions(&url);
            url
        })
    }
}
