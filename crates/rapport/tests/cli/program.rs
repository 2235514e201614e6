//! Runs the program: commands until they end, and the service until it is stopped.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rapport_testkit::{Deadline, PostgresServer, signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// An empty data directory and a database, and what is needed to name them on a command line.
pub struct Place {
    directory: TempDir,
    database: Option<String>,
}

impl Place {
    /// On the embedded database, which is the default.
    pub fn sqlite() -> Self {
        Self { directory: TempDir::new().unwrap(), database: None }
    }

    /// The same where syncs cost nothing, if this machine has such a place: for many databases that are read once.
    pub fn in_memory() -> Self {
        let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        Self { directory, database: None }
    }

    pub fn postgres() -> Self {
        Self::on(PostgresServer::shared().fresh_database())
    }

    /// On the PostgreSQL database with this URL.
    pub fn on(database: String) -> Self {
        Self { database: Some(database), ..Self::sqlite() }
    }

    /// Another node's place: the same database and key, but its own data directory.
    pub fn beside(&self) -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::copy(self.path().join("secret.key"), directory.path().join("secret.key")).unwrap();
        Self { directory, database: self.database.clone() }
    }

    /// Runs a test on each engine.
    pub fn each(test: impl Fn(&Self)) {
        test(&Self::sqlite());
        test(&Self::postgres());
    }

    /// The same database, to look at what the service left in it.
    pub fn database(&self) -> rapport_store::Database {
        match &self.database {
            Some(url) => rapport_store::Database::Postgres(url.clone()),
            None => rapport_store::Database::Sqlite(self.path().join("rapport.db")),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The program on this place, with its own environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(arguments);
        command.env("RAPPORT_DATA_DIR", self.path());
        if let Some(url) = &self.database {
            command.env("RAPPORT_DATABASE", url);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command(arguments))
    }

    /// Runs a command that must succeed, and parses what it printed as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error} in: {}", ended.stdout))
    }

    /// Starts the service on a free port and waits until it prints its address.
    pub fn serve(&self) -> Service {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, options: &[&str]) -> Service {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(options);
        self.start(&mut command)
    }

    /// Starts the service within the limits of a shell, such as `ulimit -n 100`.
    pub fn serve_within(&self, limits: &str) -> Service {
        let service = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        self.start(&mut within(limits, &service))
    }

    /// Starts the service with a command that was prepared for it.
    pub fn start(&self, command: &mut Command) -> Service {
        self.try_start(command).unwrap_or_else(|said| panic!("{said}"))
    }

    /// The same; an error is what it said before it ended.
    pub fn try_start(&self, command: &mut Command) -> Result<Service, String> {
        let log = self.path().join("service.log");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .expect("starting the service");
        let _deadline = Deadline::of(child.id());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).unwrap();
        let url = first_line.trim_end().strip_prefix("Rapport is running at ");
        let address = url.and_then(|url| url.strip_prefix("http://").or(url.strip_prefix("https://")));
        let Some(address) = address.map(str::to_owned) else {
            child.wait().unwrap();
            let log = std::fs::read_to_string(log).unwrap();
            return Err(format!("the service printed {first_line:?}, and its log says:\n{log}"));
        };
        Ok(Service { child, stdout, address })
    }
}

/// The program, isolated from the developer's own configuration.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = program_named(env!("CARGO_BIN_EXE_rapport"));
    command.args(arguments);
    command
}

fn program_named(name: &str) -> Command {
    let mut command = Command::new(name);
    for (name, _) in std::env::vars_os() {
        // A developer's own PGSSLMODE and the like count as well.
        if ["RAPPORT_", "PG"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Starts the demo with its temporary files in `temporary`; also returns what it printed until it was ready.
pub fn demo(temporary: &Path) -> (Service, String) {
    let mut command = program(&["demo", "--listen", "127.0.0.1:0"]);
    let spawned = command.env("TMPDIR", temporary).stdout(Stdio::piped()).spawn();
    let mut child = spawned.expect("starting the demo");
    let _deadline = Deadline::of(child.id());
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut service = Service { child, stdout, address: String::new() };
    let mut said = String::new();
    while service.address.is_empty() {
        let before = said.len();
        assert!(service.stdout.read_line(&mut said).unwrap() > 0, "the demo ended after it printed:\n{said}");
        let address = said[before..].trim_end().strip_prefix("Rapport is running at http://");
        address.unwrap_or_default().clone_into(&mut service.address);
    }
    (service, said)
}

/// The same command, started by a shell that first lowers limits for it.
pub fn within(limits: &str, command: &Command) -> Command {
    let mut shell = program_named("sh");
    shell.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell
}

/// How a run ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(command: &mut Command) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("running the program");
    let _deadline = Deadline::of(child.id());
    let output = child.wait_with_output().expect("its output");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Waits until a process has ended.
pub fn end_of(child: &mut Child) -> ExitStatus {
    let mut ended = None;
    wait_until("the process to end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    ended.unwrap()
}

/// A running service. Dropping it kills it.
pub struct Service {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub address: String,
}

impl Service {
    /// Accepts the invitation that `rapport company create --json` printed.
    pub fn accept(&self, created: &Value, password: &str) {
        let link = created["owner"]["link"].as_str().expect("a link");
        let token = link.rsplit('/').next().expect("a token");
        let body = json!({ "token": token, "password": password }).to_string();
        let headers = [("Content-Type", "application/json")];
        let accept =
            || self.exchange("POST", "/api/invitations/accept/", &headers, &body).expect("an answer").0;
        // A service on a loaded machine may be busy, and says so.
        let answer = (0..60).map(|_| accept()).find(|head| !head.starts_with("HTTP/1.1 503"));
        let answer = answer.expect("an answer other than busy");
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// A GET without credentials: the status and the body.
    pub fn get(&self, path: &str) -> (u16, String) {
        self.request("GET", path, &[], "")
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let (head, body) = self.exchange(method, path, headers, body).expect("an answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body)
    }

    /// The status line and the headers of an answer.
    pub fn head_of(&self, path: &str) -> String {
        self.exchange("GET", path, &[], "").expect("an answer").0
    }

    /// The head and the body of an answer.
    pub fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<(String, String)> {
        let mut stream = self.connect();
        let headers: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.address,
            body.len(),
            headers = headers.concat(),
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.to_owned(), body.to_owned()))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("connecting to the service");
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    pub fn wait(&mut self) -> ExitStatus {
        end_of(&mut self.child)
    }

    /// The soft and the hard limit on open files.
    pub fn file_limits(&self) -> (u64, u64) {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
        let mut limits = line.split_whitespace().map(|limit| limit.parse().unwrap());
        (limits.next().unwrap(), limits.next().unwrap())
    }

    /// The most memory that the process ever held, in bytes.
    pub fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a high-water mark");
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kibibytes << 10
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The next line of its output that contains this, trimmed.
    pub fn line_that_contains(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the service did not print {part}");
        }
        line.trim().to_owned()
    }

    /// What it printed after the first line; returns when the service ends.
    pub fn rest_of_output(&mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}
