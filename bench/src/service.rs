//! The service under test: the real program in its own process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::Plan;
use crate::place::Place;

/// No limit per credential, because the service is measured, not its rate limiter.
const RATE_LIMIT: &str = "1000000";
const STOP_LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(10);

/// The credentials of a company's own systems.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub project: String,
    pub api_token: String,
    pub ingest_key: String,
    /// The path of the owner's invitation. Older builds, used as a baseline, print a password instead.
    pub invitation: Option<String>,
}

pub fn create_company(plan: &Plan, place: &Place, project: &str) -> anyhow::Result<Credentials> {
    let owner = format!("you@{project}.test");
    let mut command = command(plan, place);
    command.args(["company", "create", project, "--name", "Bench", "--owner", &owner, "--json"]);
    let output = command.stderr(Stdio::inherit()).output().context("running rapport company create")?;
    anyhow::ensure!(output.status.success(), "rapport company create failed");
    let made: Value = serde_json::from_slice(&output.stdout).context("what company create printed")?;
    let text =
        |name: &str| made[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {made}"));
    Ok(Credentials {
        project: text("project")?,
        api_token: text("api_token")?,
        ingest_key: text("ingest_key")?,
        invitation: made["owner"]["link"].as_str().map(|link| path_of(link).to_owned()),
    })
}

/// The path of a URL.
fn path_of(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.find('/').map_or("/", |at| &after[at..])
}

/// A running service. Dropping this ends it.
pub struct Service {
    child: Child,
    /// Kept open so that the service can always write to it.
    _stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
    /// From the start of the process until it reported that it serves.
    pub started_in: Duration,
}

impl Service {
    pub fn start(plan: &Plan, place: &Place) -> anyhow::Result<Self> {
        Self::start_with(plan, place, &[])
    }

    /// Starts it with receivers on loopback whose authority is in this file.
    pub fn start_trusting(plan: &Plan, place: &Place, authority: &Path) -> anyhow::Result<Self> {
        let authority = authority.to_str().context("a path of plain text")?;
        Self::start_with(plan, place, &["--extra-ca", authority, "--allow-destination", "127.0.0.0/8"])
    }

    fn start_with(plan: &Plan, place: &Place, options: &[&str]) -> anyhow::Result<Self> {
        let started = Instant::now();
        let mut child = command(plan, place)
            .args(["--listen", "127.0.0.1:0", "--rate-limit", RATE_LIMIT, "--log", "error"])
            .args(options)
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()
            .context("starting rapport serve")?;
        let mut stdout = BufReader::new(child.stdout.take().context("the service's output")?);
        let mut line = String::new();
        stdout.read_line(&mut line).context("reading where the service listens")?;
        let address = line.trim_end().rsplit_once("http://").map(|(_, address)| address.parse());
        let Some(Ok(address)) = address else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the service did not start; it printed {line:?}");
        };
        Ok(Self { child, _stdout: stdout, address, started_in: started.elapsed() })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops it as an operator would, and waits until it has ended.
    pub fn stop(mut self) -> anyhow::Result<()> {
        // The shell's own `kill`, because a small machine has no other.
        let process = self.child.id().to_string();
        Command::new("sh").args(["-c", r#"kill -s TERM "$1""#, "kill", &process]).status()?;
        let deadline = Instant::now() + STOP_LIMIT;
        while self.child.try_wait()?.is_none() {
            anyhow::ensure!(Instant::now() < deadline, "the service did not stop within {STOP_LIMIT:?}");
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn command(plan: &Plan, place: &Place) -> Command {
    let mut command = Command::new(&plan.rapport);
    command.arg("--data-dir").arg(place.home()).args(["--database", &place.database_argument()]);
    // A developer's own settings must not reach the service under test.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RAPPORT_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}
