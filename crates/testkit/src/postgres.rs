//! A temporary PostgreSQL server: its own cluster in a temporary directory, on a free loopback port.
//!
//! A watchdog shell holds the other end of a pipe. When this process ends, in whatever way, it stops the server
//! and removes the directory: statics are never dropped, and a killed process runs no destructor.

mod machine;
mod processes;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ::postgres::{Client, NoTls};

pub(crate) use self::processes::start_watchdog;

use self::machine::{fastest_directory, find_bin_dir, unprivileged_user};
use self::processes::{children_of, is_running, signal};
use crate::receiver::certificates::Authority;

const START_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Another process can take the free port between our check and the server's bind.
const PORT_TRIES: usize = 5;

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Commits survive a crash, as in production. Without this the server is faster, and forgets on a crash.
    pub durable: bool,
}

/// A way to stop the server while clients are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ends sessions and writes everything: `pg_ctl stop -m fast`.
    Fast,
    /// Drops everything, and the next start recovers: `pg_ctl stop -m immediate`.
    Immediate,
    /// Kills every process at once, like a power cut.
    Killed,
}

/// A running server. Dropping it stops the server and removes its data.
#[derive(Debug)]
pub struct PostgresServer {
    bin_dir: PathBuf,
    directory: PathBuf,
    /// User and group to run as if this process is root, because PostgreSQL refuses to run as root.
    run_as: Option<(u32, u32)>,
    options: Options,
    over_tls: bool,
    /// Settings that override our own, such as `shared_buffers=256MB`.
    tuning: Vec<String>,
    port: u16,
    databases_made: AtomicU32,
    /// Takes the names of databases to remove.
    cleaner: OnceLock<mpsc::Sender<String>>,
    processes: Mutex<Processes>,
}

#[derive(Debug)]
struct Processes {
    watchdog: Child,
    postmaster: Option<Child>,
}

impl PostgresServer {
    /// The one server of this test process, not durable, started by the first caller.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Options { durable: false }))
    }

    /// The same, but its URLs ask for TLS with `verify-full`.
    pub fn shared_over_tls() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start_over_tls(&[]))
    }

    /// A separate server, for tests that crash or stop it.
    pub fn start(options: Options) -> Self {
        Self::start_tuned(options, &[])
    }

    /// A separate server that offers TLS. The rules come before its own in `pg_hba.conf`, where everyone is trusted.
    pub fn start_over_tls(rules: &[&str]) -> Self {
        Self::launch(Options::default(), &[], Some(rules))
    }

    /// The same with settings such as `shared_buffers=256MB`, for the benchmarks.
    pub fn start_tuned(options: Options, tuning: &[&str]) -> Self {
        Self::launch(options, tuning, None)
    }

    fn launch(options: Options, tuning: &[&str], tls_rules: Option<&[&str]>) -> Self {
        let bin_dir = find_bin_dir();
        let parent = if options.durable { std::env::temp_dir() } else { fastest_directory() };
        let directory = tempfile::Builder::new()
            .prefix("rapport-pg-")
            .tempdir_in(parent)
            .expect("a temporary directory for the PostgreSQL cluster")
            .keep();
        let processes = Mutex::new(Processes { watchdog: start_watchdog(&directory), postmaster: None });
        let run_as = unprivileged_user(&directory);
        if let Some((user, group)) = run_as {
            chown(&directory, Some(user), Some(group)).expect("handing the cluster directory to its user");
        }
        let databases_made = AtomicU32::new(0);
        let tuning = tuning.iter().map(|&setting| setting.to_owned()).collect();
        let over_tls = tls_rules.is_some();
        let mut server = Self {
            bin_dir,
            directory,
            run_as,
            options,
            over_tls,
            tuning,
            port: 0,
            databases_made,
            cleaner: OnceLock::new(),
            processes,
        };
        server.init_cluster();
        if let Some(rules) = tls_rules {
            server.prepare_tls(rules);
        }
        server.start_on_a_free_port();
        server
    }

    /// Creates an empty database and returns its URL.
    ///
    /// Its default collation is a linguistic one, as most operators have, to catch statements that rely on byte
    /// order without saying so.
    pub fn fresh_database(&self) -> String {
        let name = format!("test_{}", self.databases_made.fetch_add(1, Ordering::Relaxed) + 1);
        self.administer(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.full_url(&name)
    }

    /// Creates a copy of this database and returns its URL. Nobody may be connected to the original.
    pub fn copy_of(&self, database: &str) -> String {
        let (_, template) = plain(database).rsplit_once('/').expect("the URL of a database");
        let name = format!("test_{}", self.databases_made.fetch_add(1, Ordering::Relaxed) + 1);
        self.administer(&format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"));
        self.full_url(&name)
    }

    /// Removes a database as soon as nobody is connected to it, or with the server. A server in memory would otherwise keep all
    /// of them there.
    pub fn remove_when_unused(&'static self, database: &str) {
        let name = plain(database).rsplit_once('/').map(|(_, name)| name.to_owned());
        let cleaner = self.cleaner.get_or_init(|| {
            let (sender, names) = mpsc::channel();
            thread::spawn(move || self.clean(&names));
            sender
        });
        let _ = name.map(|name| cleaner.send(name));
    }

    fn clean(&self, names: &mpsc::Receiver<String>) {
        let Ok(mut client) = Client::connect(&self.url("postgres"), NoTls) else { return };
        let mut waiting = Vec::new();
        while let Ok(name) = names.recv() {
            waiting.push(name);
            waiting.retain(|name| {
                let in_use =
                    client.query_opt("SELECT 1 FROM pg_stat_activity WHERE datname = $1 LIMIT 1", &[name]);
                let removed = matches!(in_use, Ok(None))
                    && client.batch_execute(&format!("DROP DATABASE {name}")).is_ok();
                !removed
            });
        }
    }

    /// Changes a setting of the running server; sessions see it at their next statement. `None` restores the default.
    pub fn set(&self, setting: &str, value: Option<&str>) {
        match value {
            Some(value) => self.administer(&format!("ALTER SYSTEM SET {setting} = '{value}'")),
            None => self.administer(&format!("ALTER SYSTEM RESET {setting}")),
        }
        self.administer("SELECT pg_reload_conf()");
    }

    /// Ends all sessions of the service on this database.
    pub fn terminate_sessions(&self, database: &str) {
        let (_, name) = plain(database).rsplit_once('/').expect("the URL of a database");
        self.administer(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = '{name}' AND application_name = 'rapport'"
        ));
    }

    /// Stops the server and starts it again on the same port and data. Needs a durable server unless it stops cleanly.
    pub fn restart(&self, how: Stop) {
        self.stop(how);
        self.start_again();
    }

    /// The first half of [`restart`](Self::restart): afterwards connections are refused.
    pub fn stop(&self, how: Stop) {
        assert!(
            how == Stop::Fast || self.options.durable,
            "a server that is not durable would lose commits: start a durable one"
        );
        let mut postmaster = self.processes().postmaster.take().expect("the server is running");
        let mut family = vec![postmaster.id()];
        match how {
            Stop::Fast => signal("INT", &family),
            Stop::Immediate => signal("QUIT", &family),
            Stop::Killed => {
                // Stopped first, so that it forks no process after they are listed.
                signal("STOP", &family);
                family.extend(children_of(postmaster.id()));
                signal("KILL", &family);
            }
        }
        postmaster.wait().expect("waiting for the stopped server");
        wait_until("the processes of the stopped server to end", STOP_LIMIT, || {
            !family.iter().any(|&process| is_running(process))
        });
    }

    /// The second half of [`restart`](Self::restart): returns once the server has recovered.
    pub fn start_again(&self) {
        assert!(self.processes().postmaster.is_none(), "the server is running already");
        if let Err(log) = self.try_start() {
            panic!("PostgreSQL did not start again on port {}:\n{log}", self.port);
        }
    }

    /// Its main process, and one for each connection and background task.
    pub fn process_ids(&self) -> Vec<u32> {
        let main = self.processes().postmaster.as_ref().map(Child::id);
        main.into_iter().flat_map(|main| std::iter::once(main).chain(children_of(main))).collect()
    }

    /// Where this server's programs are (`psql`, `pg_dump`, …).
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority that issued this server's certificate, and every test receiver's.
    pub fn authority_file(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    pub(crate) fn run_as(&self) -> Option<(u32, u32)> {
        self.run_as
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// What a test connects with.
    fn full_url(&self, database: &str) -> String {
        let url = self.url(database);
        if self.over_tls {
            return format!("{url}?sslmode=verify-full&sslrootcert={}", self.authority_file().display());
        }
        url
    }

    /// Writes the certificates, and the rules for logins.
    fn prepare_tls(&self, rules: &[&str]) {
        let authority = Authority::shared();
        let server = authority.server_files(&["127.0.0.1", "localhost"]);
        for (name, contents) in [
            ("authority.pem", &authority.pem),
            ("server.pem", &server.certificate),
            ("server.key", &server.key),
        ] {
            let path = self.directory.join(name);
            fs::write(&path, contents).expect("writing a certificate");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("hiding a key");
            if let Some((user, group)) = self.run_as {
                chown(&path, Some(user), Some(group)).expect("handing a certificate to its user");
            }
        }
        let path = self.data_dir().join("pg_hba.conf");
        let own = fs::read_to_string(&path).expect("reading the rules");
        fs::write(&path, format!("{}\n{own}", rules.join("\n"))).expect("writing the rules");
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn init_cluster(&self) {
        let output = self
            .command("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"])
            .args(["--locale-provider=icu", "--icu-locale=en-US", "--no-sync", "--no-instructions"])
            .arg("--pgdata")
            .arg(self.data_dir())
            .output()
            .expect("running initdb");
        assert!(
            output.status.success(),
            "initdb failed:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn start_on_a_free_port(&mut self) {
        let mut log = String::new();
        for _ in 0..PORT_TRIES {
            self.port = free_port();
            match self.try_start() {
                Ok(()) => return,
                Err(text) => log = text,
            }
        }
        panic!("PostgreSQL did not start in {PORT_TRIES} tries:\n{log}");
    }

    /// Starts the server and waits until it answers; returns its log if it gives up first.
    fn try_start(&self) -> Result<(), String> {
        let log_path = self.directory.join("log");
        let log = fs::File::create(&log_path).expect("creating the server's log file");
        let mut postmaster = self
            .command("postgres")
            .arg("-D")
            .arg(self.data_dir())
            .args(self.settings().iter().flat_map(|setting| ["-c", setting]))
            .stdout(log.try_clone().expect("sharing the log file"))
            .stderr(log)
            .spawn()
            .expect("running postgres");
        let mut processes = self.processes();
        let watchdog = processes.watchdog.stdin.as_mut().expect("the watchdog listens on a pipe");
        writeln!(watchdog, "{}", postmaster.id()).expect("telling the watchdog what to stop");
        let deadline = Instant::now() + START_LIMIT;
        while !self.answers() {
            if postmaster.try_wait().expect("asking after the server").is_some() {
                return Err(fs::read_to_string(&log_path).unwrap_or_default());
            }
            assert!(
                Instant::now() < deadline,
                "PostgreSQL did not answer within {START_LIMIT:?}:\n{}",
                fs::read_to_string(&log_path).unwrap_or_default()
            );
            thread::sleep(POLL_INTERVAL);
        }
        processes.postmaster = Some(postmaster);
        Ok(())
    }

    fn settings(&self) -> Vec<String> {
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.directory.display()),
            "max_connections=300".to_owned(),
            "shared_buffers=32MB".to_owned(),
        ];
        if self.over_tls {
            let file =
                |setting: &str, name: &str| format!("{setting}={}", self.directory.join(name).display());
            settings.extend([
                "ssl=on".to_owned(),
                file("ssl_cert_file", "server.pem"),
                file("ssl_key_file", "server.key"),
                file("ssl_ca_file", "authority.pem"),
            ]);
        }
        if !self.options.durable {
            settings.extend(
                ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=64MB"]
                    .map(str::to_owned),
            );
        }
        settings.extend_from_slice(&self.tuning);
        settings
    }

    /// A program of the server, run as the server's user, away from the terminal's signals.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin_dir.join(program));
        command.current_dir(&self.directory).stdin(Stdio::null()).process_group(0);
        // A developer's own PGPORT, PGDATA and the like must not reach the test server.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if let Some((user, group)) = self.run_as {
            command.uid(user).gid(group);
        }
        command
    }

    fn data_dir(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Checks the directory too: if another test process took the port, its server would answer.
    fn answers(&self) -> bool {
        let url = self.url("postgres");
        let directory = on_a_plain_thread(move || {
            let row = Client::connect(&url, NoTls).ok()?.query_one("SHOW data_directory", &[]).ok()?;
            Some(PathBuf::from(row.get::<_, String>(0)))
        });
        directory == Some(self.data_dir())
    }

    fn administer(&self, statement: &str) {
        let url = self.url("postgres");
        on_a_plain_thread(move || {
            let mut client = Client::connect(&url, NoTls).expect("connecting to the test server");
            client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        });
    }
}

/// The URL without what only the store understands, for the plain clients of the tests.
pub fn plain(url: &str) -> &str {
    url.split_once('?').map_or(url, |(plain, _)| plain)
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let processes = self.processes.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Closing the pipe makes the watchdog clean up, exactly as when the process dies.
        drop(processes.watchdog.stdin.take());
        let _ = processes.watchdog.wait();
        if let Some(mut postmaster) = processes.postmaster.take() {
            let _ = postmaster.wait();
        }
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
    listener.local_addr().expect("the address of the free port").port()
}

/// The synchronous client brings its own runtime and must not be used on a thread that is inside one.
pub(crate) fn on_a_plain_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}
