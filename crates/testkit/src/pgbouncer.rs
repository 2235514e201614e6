//! A temporary PgBouncer in front of a test server.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ::postgres::{Client, NoTls};

use crate::PostgresServer;
use crate::postgres::{free_port, on_a_plain_thread, start_watchdog};

const START_LIMIT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Another process can take the free port between our check and the pooler's bind.
const PORT_TRIES: usize = 5;
const INSTALL_HINT: &str =
    "install PgBouncer (Debian package `pgbouncer`), or run ./scripts/test, which does";

/// A running pooler. Dropping it stops it.
#[derive(Debug)]
pub struct Pgbouncer {
    directory: PathBuf,
    port: u16,
    /// Stops the pooler and removes its directory when this process ends, in whatever way.
    watchdog: Child,
    process: Option<Child>,
}

impl Pgbouncer {
    /// Starts a pooler with these settings, such as `pool_mode = session`, besides those it needs.
    pub fn start(server: &PostgresServer, settings: &[&str]) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("rapport-pgbouncer-")
            .tempdir()
            .expect("a temporary directory for the pooler")
            .keep();
        let watchdog = start_watchdog(&directory);
        let mut pooler = Self { directory, port: 0, watchdog, process: None };
        let mut log = String::new();
        for _ in 0..PORT_TRIES {
            pooler.port = free_port();
            match pooler.try_start(server, settings) {
                Ok(()) => return pooler,
                Err(text) => log = text,
            }
        }
        panic!("PgBouncer did not start in {PORT_TRIES} tries:\n{log}");
    }

    /// The same database of the server, through this pooler.
    pub fn url(&self, database: &str) -> String {
        let (_, name) = database.rsplit_once('/').expect("the URL of a database");
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }

    fn try_start(&mut self, server: &PostgresServer, settings: &[&str]) -> Result<(), String> {
        let (file, log_path) = (self.directory.join("pgbouncer.ini"), self.directory.join("log"));
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\n{}\n",
            server.port(),
            self.port,
            settings.join("\n")
        );
        fs::write(&file, text).expect("writing the pooler's settings");
        let log = fs::File::create(&log_path).expect("creating the pooler's log file");
        let mut command = Command::new(program());
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        // Like PostgreSQL, it refuses to run as root.
        if let Some((user, group)) = server.run_as() {
            for path in [&self.directory, &file] {
                chown(path, Some(user), Some(group)).expect("handing the pooler's files to its user");
            }
            command.uid(user).gid(group);
        }
        let mut process =
            command.spawn().unwrap_or_else(|error| panic!("running pgbouncer: {error}; {INSTALL_HINT}"));
        let pipe = self.watchdog.stdin.as_mut().expect("the watchdog listens on a pipe");
        writeln!(pipe, "{}", process.id()).expect("telling the watchdog what to stop");
        let deadline = Instant::now() + START_LIMIT;
        let read_log = || fs::read_to_string(&log_path).unwrap_or_default();
        while !self.answers() {
            if process.try_wait().expect("asking after the pooler").is_some() {
                return Err(read_log());
            }
            assert!(
                Instant::now() < deadline,
                "PgBouncer did not answer within {START_LIMIT:?}:\n{}",
                read_log()
            );
            thread::sleep(POLL_INTERVAL);
        }
        self.process = Some(process);
        Ok(())
    }

    fn answers(&self) -> bool {
        let url = self.url("postgres://127.0.0.1/postgres");
        on_a_plain_thread(move || Client::connect(&url, NoTls).is_ok())
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
        if let Some(mut process) = self.process.take() {
            let _ = process.wait();
        }
    }
}

/// Debian's is not on everyone's PATH.
fn program() -> &'static Path {
    let debian = Path::new("/usr/sbin/pgbouncer");
    if debian.is_file() { debian } else { Path::new("pgbouncer") }
}
