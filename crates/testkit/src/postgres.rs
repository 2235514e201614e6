//! A temporary PostgreSQL server: its own cluster in a temporary directory, on a free loopback port.
//!
//! A watchdog shell holds the other end of a pipe. When this process ends, in whatever way, it stops the server
//! and removes the directory: statics are never dropped, and a killed process runs no destructor.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ::postgres::{Client, NoTls};

use crate::receiver::certificates::Authority;

const START_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Another process can take the free port between our check and the server's bind.
const PORT_TRIES: usize = 5;
const MEMORY: &str = "/dev/shm";
/// In kilobytes: far more than the tests with the most databases need.
const ENOUGH_MEMORY: u64 = 8 << 20;
/// The first version with ICU collations for a whole database.
const OLDEST_MAJOR_VERSION: u32 = 15;
const INSTALL_HINT: &str = "install the PostgreSQL server, version 15 or newer (Debian package `postgresql`), or run ./scripts/test, \
     which does";

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

/// Reads the ids of servers to stop, line by line; at the end of the pipe it stops the last one and cleans up.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
process=
while read -r line; do process=$line; done
if [ -n "$process" ]; then
    kill -QUIT "$process" 2>/dev/null
    tries=0
    while grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$process/status" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -eq 200 ] && kill -KILL "$process"
        [ "$tries" -gt 250 ] && break
        sleep 0.05
    done
fi
# initdb may still be writing when the process died that early.
for _ in 1 2 3 4 5; do
    rm -rf "$1" 2>/dev/null
    [ -e "$1" ] || break
    sleep 1
done
"#;

pub(crate) fn start_watchdog(directory: &Path) -> Child {
    Command::new("sh")
        .args(["-c", WATCHDOG, "rapport-postgres-watchdog"])
        .arg(directory)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Its own group, so that Ctrl-C in the terminal ends the tests but not the cleanup after them.
        .process_group(0)
        .spawn()
        .expect("running sh")
}

/// Where a server may forget everything: in memory if there is room, because each test has hundreds of files there.
fn fastest_directory() -> PathBuf {
    let free = Command::new("df").args(["--output=avail", MEMORY]).output().ok().and_then(|output| {
        String::from_utf8_lossy(&output.stdout).lines().last()?.trim().parse::<u64>().ok()
    });
    if free.is_some_and(|kilobytes| kilobytes >= ENOUGH_MEMORY) {
        MEMORY.into()
    } else {
        std::env::temp_dir()
    }
}

/// The newest installed version's programs, or those on the PATH.
fn find_bin_dir() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().filter_map(|entry| {
        let major_version: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((major_version, entry.path().join("bin")))
    });
    let newest = installed.filter(|(_, bin_dir)| has_server(bin_dir)).max();
    if let Some((major_version, bin_dir)) = newest {
        assert!(
            major_version >= OLDEST_MAJOR_VERSION,
            "the tests found only PostgreSQL {major_version}: {INSTALL_HINT}"
        );
        return bin_dir;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|bin_dir| has_server(bin_dir))
        .unwrap_or_else(|| panic!("the tests need a PostgreSQL server and found none: {INSTALL_HINT}"))
}

fn has_server(bin_dir: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| bin_dir.join(program).is_file())
}

/// The user and group to run the server as, if this process, which created the directory, is root.
fn unprivileged_user(directory: &Path) -> Option<(u32, u32)> {
    let ourselves = fs::metadata(directory).expect("looking at the cluster directory").uid();
    if ourselves != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("reading the users of this machine");
    let find = |wanted: &str| {
        users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, user, group, ..] = fields[..] else { return None };
            (name == wanted).then_some(())?;
            Some((user.parse().ok()?, group.parse().ok()?))
        })
    };
    let user = find("postgres").or_else(|| find("nobody"));
    assert!(
        user.is_some(),
        "PostgreSQL does not run as root and there is no user `postgres`: {INSTALL_HINT}"
    );
    user
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
    listener.local_addr().expect("the address of the free port").port()
}

/// The synchronous client brings its own runtime and must not be used on a thread that is inside one.
pub(crate) fn on_a_plain_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn signal(name: &str, processes: &[u32]) {
    // The shell's own `kill`, because a small machine has no other. It is fine if a process has just ended.
    let _ = Command::new("sh")
        .args(["-c", r#"name=$1; shift; for process; do kill -s "$name" "$process"; done"#, "kill", name])
        .args(processes.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status()
        .expect("running sh");
}

fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("the processes of this machine").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&process| state_and_parent(process).is_some_and(|(_, its_parent)| its_parent == parent))
        .collect()
}

/// A zombie has ended: if nothing reaps orphans, it stays in the list forever.
fn is_running(process: u32) -> bool {
    state_and_parent(process).is_some_and(|(state, _)| !matches!(state.as_str(), "Z" | "X"))
}

fn state_and_parent(process: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it is in parentheses and may hold anything, parentheses included.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set for the copy of this test program that is started in order to be killed.
    const VICTIM: &str = "RAPPORT_TESTKIT_VICTIM";

    fn connect(url: &str) -> Client {
        Client::connect(url, NoTls).expect("connecting to the fresh database")
    }

    fn row_count(client: &mut Client) -> i64 {
        client.query_one("SELECT count(*) FROM kept", &[]).expect("counting the rows").get(0)
    }

    #[test]
    fn the_shared_server_gives_every_test_an_empty_database() {
        let server = PostgresServer::shared();
        let (first, second) = (server.fresh_database(), server.fresh_database());
        assert_ne!(first, second);

        connect(&first).batch_execute("CREATE TABLE kept (id int)").expect("creating a table");
        let mut client = connect(&second);
        let one: i32 = client.query_one("SELECT 1", &[]).expect("select 1").get(0);
        assert_eq!(one, 1);
        let tables =
            client.query_one("SELECT to_regclass('kept') IS NULL", &[]).expect("looking for a table");
        assert!(tables.get::<_, bool>(0), "a table of the first database shows in the second");
    }

    #[test]
    fn the_default_collation_is_not_byte_order() {
        let mut client = connect(&PostgresServer::shared().fresh_database());
        let row =
            client.query_one("SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\"", &[]).expect("comparing letters");
        assert_eq!((row.get(0), row.get(1)), (true, false));
    }

    #[test]
    fn a_database_can_be_made_from_inside_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let url = runtime.block_on(async { PostgresServer::shared().fresh_database() });
        connect(&url);
    }

    #[test]
    fn a_hard_restart_keeps_what_was_committed_and_nothing_else() {
        let server = PostgresServer::start(Options { durable: true });
        let url = server.fresh_database();
        let mut client = connect(&url);
        client
            .batch_execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)")
            .expect("committing");
        let mut transaction = client.transaction().expect("opening a transaction");
        transaction.execute("INSERT INTO kept VALUES (3)", &[]).expect("inserting without a commit");

        server.restart(Stop::Killed);

        assert!(transaction.commit().is_err(), "the connection outlived the server");
        assert_eq!(row_count(&mut connect(&url)), 2);
        let recovered = fs::read_to_string(server.directory.join("log")).expect("reading the server's log");
        assert!(recovered.contains("was not properly shut down"), "not a crash:\n{recovered}");
    }

    #[test]
    fn dropping_a_server_stops_it_and_removes_its_files() {
        let server = PostgresServer::start(Options::default());
        let (directory, port) = (server.directory.clone(), server.port());
        assert!(directory.exists());
        drop(server);
        assert!(!directory.exists());
        assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    }

    #[test]
    fn a_killed_test_process_leaves_neither_server_nor_files() {
        let note = tempfile::NamedTempFile::new().expect("a file for the victim's note");
        let mut victim = Command::new(std::env::current_exe().expect("the path of this program"))
            .args(["--exact", "postgres::tests::victim", "--ignored"])
            .env(VICTIM, note.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("running the victim");
        let mut written = String::new();
        wait_until("the victim's server", START_LIMIT, || {
            written = fs::read_to_string(note.path()).expect("reading the victim's note");
            written.ends_with('\n')
        });
        let (directory, process) = written.trim_end().split_once('\t').expect("a directory and a process");
        let process = process.parse().expect("a process id");
        assert!(Path::new(directory).exists() && is_running(process));

        victim.kill().expect("killing the victim");
        victim.wait().expect("waiting for the victim");

        wait_until("the victim's server to stop", STOP_LIMIT, || !is_running(process));
        wait_until("the victim's directory to go", STOP_LIMIT, || !Path::new(directory).exists());
    }

    #[test]
    #[ignore = "is started, and killed, by a_killed_test_process_leaves_neither_server_nor_files"]
    fn victim() {
        let Some(note) = std::env::var_os(VICTIM) else { return };
        let server = PostgresServer::shared();
        let process = server.processes().postmaster.as_ref().expect("a running server").id();
        fs::write(note, format!("{}\t{process}\n", server.directory.display())).expect("writing the note");
        loop {
            thread::park();
        }
    }
}
