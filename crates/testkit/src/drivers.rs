//! Browsers and the processes that drive them. Starting one takes longer than most tests, so tests use them one after
//! another: each test gets an empty window without cookies or stored data. They end with this process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fantoccini::error::CmdError;
use fantoccini::wd::{Capabilities, TimeoutConfiguration};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::chromium;
use crate::screen;
use crate::script_errors;

const INSTALL_HINT: &str =
    "install Debian's chromium-headless-shell and chromium-driver, or run ./scripts/test, which does";
/// Chromium without the windows, menus and services around the page. It starts in a sixth of the time.
const BROWSER: &str = "/usr/bin/chromium-headless-shell";
/// The shell holds the other end of a pipe: when this process ends or lets go, driver and browser end, and their files
/// go with them.
const WATCHED_DRIVER: &str = r#"
files=$(mktemp -d) || exit
TMPDIR=$files setsid chromedriver --port=0 --log-level=WARNING &
read gone
kill -KILL -$!
wait
rm -rf "$files""#;
/// A browser that a busy machine kept from starting in time is started again.
const STARTS: usize = 3;
const START_LIMIT: Duration = Duration::from_mins(2);
/// How long a page may take to load, and a script to run.
const LOAD_LIMIT: Duration = Duration::from_mins(2);
/// How long a test may use a browser. Then the browser ends, and whatever waits for it fails instead of waiting forever.
const USE_LIMIT: Duration = Duration::from_mins(15);

/// Talks to the drivers. Each test has a runtime of its own, which ends with it; this one stays.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
static IDLE: Mutex<Vec<Session>> = Mutex::new(Vec::new());

/// What must be decided before a browser starts. A window that is resized later may lose the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
    pub runs_scripts: bool,
}

/// A browser with one empty window.
pub struct Session {
    pub client: Client,
    kind: Kind,
    driver: Driver,
    /// Ends it when it is used for too long.
    limit: AbortHandle,
}

impl Session {
    /// One that is idle, or a new one.
    pub async fn take(kind: Kind) -> Self {
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let found = idle.iter().position(|session| session.kind == kind);
            found.map(|at| idle.swap_remove(at))
        };
        match idle {
            Some(mut session) => {
                session.limit = session.driver.end_after(USE_LIMIT);
                session
            }
            None => Self::new(kind).await,
        }
    }

    async fn new(kind: Kind) -> Self {
        RUNTIME.spawn(Self::start(kind)).await.expect("a browser")
    }

    async fn start(kind: Kind) -> Self {
        let mut failures = Vec::new();
        while failures.len() < STARTS {
            match timeout(START_LIMIT, Self::try_start(kind)).await {
                Ok(Ok(session)) => return session,
                Ok(Err(failure)) => failures.push(failure),
                Err(_) => failures.push(format!("it took longer than {START_LIMIT:?}")),
            }
        }
        panic!("Chromium does not start: {failures:?}; {INSTALL_HINT}")
    }

    async fn try_start(kind: Kind) -> Result<Self, String> {
        let driver = spawn_blocking(Driver::start).await.map_err(|error| error.to_string())?;
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities(kind));
        let address = format!("http://127.0.0.1:{}", driver.port);
        let client = builder.connect(&address).await.map_err(|error| error.to_string())?;
        let limits = TimeoutConfiguration::new(Some(LOAD_LIMIT), Some(LOAD_LIMIT), Some(Duration::ZERO));
        client.update_timeouts(limits).await.map_err(|error| error.to_string())?;
        // Several windows are open at once, and each test needs to see where the focus is in its own.
        let focused = chromium::Command("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        client.issue_cmd(focused).await.map_err(|error| error.to_string())?;
        let limit = driver.end_after(USE_LIMIT);
        Ok(Self { client, kind, driver, limit })
    }

    /// What went wrong in scripts since the last time, or nothing if the browser no longer answers.
    pub fn script_errors(&self) -> Vec<String> {
        let client = self.client.clone();
        // A test's own runtime runs this, and can't wait for itself.
        let read = thread::spawn(move || RUNTIME.block_on(script_errors::read(&client)));
        read.join().ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Empties it, in its own time, and keeps it for the next test.
    pub fn put_back(self) {
        self.limit.abort();
        RUNTIME.spawn(async move {
            // One that cannot be emptied ends here.
            if self.empty().await.is_ok() {
                IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
            }
        });
    }

    async fn empty(&self) -> Result<(), CmdError> {
        let _ = self.client.dismiss_alert().await;
        self.client.release_actions().await?;
        self.client.delete_all_cookies().await?;
        screen::restore(&self.client).await?;
        self.client.execute("localStorage.clear(); sessionStorage.clear()", Vec::new()).await?;
        self.client.goto("about:blank").await
    }
}

fn capabilities(kind: Kind) -> Capabilities {
    let mut arguments = vec![
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--no-first-run".to_owned(),
        "--lang=en-US".to_owned(),
        // Drawn without a graphics processor, the transitions between pages would cost more than the pages.
        "--force-prefers-reduced-motion".to_owned(),
        format!("--window-size={},{}", kind.width, kind.height),
    ];
    let color_scheme = i32::from(!kind.dark);
    let runs_scripts = kind.runs_scripts;
    arguments
        .push(format!("--blink-settings=preferredColorScheme={color_scheme},scriptEnabled={runs_scripts}"));
    let options = json!({ "args": arguments, "binary": BROWSER });
    // The identity provider of the tests has a certificate from an authority of the tests.
    let wanted = [
        ("goog:chromeOptions", options),
        ("goog:loggingPrefs", json!({ "browser": "SEVERE" })),
        ("acceptInsecureCerts", json!(true)),
    ];
    wanted.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// The process that drives a browser. Dropping it ends both.
struct Driver {
    shell: Child,
    leash: Leash,
    port: u16,
}

/// The end of the pipe that keeps a driver running. The driver ends when it is taken out and dropped.
type Leash = Arc<Mutex<Option<ChildStdin>>>;

impl Driver {
    fn start() -> Self {
        let started = Command::new("sh")
            .args(["-c", WATCHED_DRIVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut shell = started.expect("starting a shell");
        let mut output = BufReader::new(shell.stdout.take().expect("its output"));
        let mut lines = output.by_ref().lines().map_while(Result::ok);
        let started = lines.find(|line| line.contains("successfully on port "));
        let port = started.and_then(|line| line.rsplit(' ').next()?.trim_end_matches('.').parse().ok());
        // Kept open, because the driver cannot write to a closed pipe.
        shell.stdout = Some(output.into_inner());
        let port = port.unwrap_or_else(|| panic!("chromedriver does not start: {INSTALL_HINT}"));
        let leash = Arc::new(Mutex::new(shell.stdin.take()));
        Self { shell, leash, port }
    }

    fn end_after(&self, limit: Duration) -> AbortHandle {
        let leash = Arc::downgrade(&self.leash);
        let end = async move {
            sleep(limit).await;
            if let Some(leash) = leash.upgrade() {
                let_go(&leash);
            }
        };
        RUNTIME.spawn(end).abort_handle()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // At the end of the pipe the shell kills the driver and the browser.
        let_go(&self.leash);
        let _ = self.shell.wait();
    }
}

fn let_go(leash: &Leash) {
    leash.lock().unwrap_or_else(PoisonError::into_inner).take();
}
