//! A real Chromium window: Debian's chromium and chromium-driver. Each browser has its own driver and profile, and ends
//! with the test, however that ends. What a person does in it is in `acts` and `hands`, what they see is in `sight`.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::error::NewSessionError;
use fantoccini::wd::{Capabilities, TimeoutConfiguration};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tempfile::TempDir;

use crate::Hands;

const INSTALL_HINT: &str = "install Debian's chromium and chromium-driver, or run ./scripts/test, which does";
const AXE_HINT: &str = "axe-core is missing: run ./scripts/test, which fetches it";
/// The shell holds the other end of a pipe: when this process ends, so do the driver and the browser.
const WATCHED_DRIVER: &str = "chromedriver --port=0 --log-level=WARNING & read gone; kill -KILL -$$";
/// A browser that did not start in time on a busy machine is started again.
const STARTS: usize = 3;
/// How long a page may take to load, and a script to run.
const LOAD_LIMIT: Duration = Duration::from_mins(2);

/// How a browser is set up.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
    pub hands: Hands,
}

impl Default for Setup {
    fn default() -> Self {
        Self { width: 1280, height: 900, dark: false, hands: Hands::Mouse }
    }
}

/// An open browser window.
pub struct Browser {
    pub(crate) client: Client,
    pub(crate) hands: Hands,
    base: String,
    _driver: Driver,
    _profile: TempDir,
}

impl Browser {
    /// A window for the service at this address, such as `http://127.0.0.1:8080`.
    pub async fn open(base: &str) -> Self {
        Self::open_as(base, Setup::default()).await
    }

    pub async fn open_as(base: &str, setup: Setup) -> Self {
        let mut started = Self::start(base, setup).await;
        for _ in 1..STARTS {
            if started.is_err() {
                started = Self::start(base, setup).await;
            }
        }
        started.unwrap_or_else(|error| panic!("Chromium does not start: {error}; {INSTALL_HINT}"))
    }

    async fn start(base: &str, setup: Setup) -> Result<Self, NewSessionError> {
        let profile = tempfile::tempdir().expect("a profile");
        let driver = Driver::start();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities(&profile, setup));
        let client = builder.connect(&format!("http://127.0.0.1:{}", driver.port)).await?;
        let limits = TimeoutConfiguration::new(Some(LOAD_LIMIT), Some(LOAD_LIMIT), Some(Duration::ZERO));
        client.update_timeouts(limits).await.map_err(NewSessionError::UnexpectedError)?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { client, hands: setup.hands, base, _driver: driver, _profile: profile })
    }

    /// Opens a page and waits until it is loaded.
    pub async fn go(&self, path: &str) {
        let address = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        self.client.goto(&address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        self.client.refresh().await.unwrap_or_else(|error| panic!("the page did not reload: {error}"));
    }

    /// Goes back to the previous page, like the browser's button.
    pub async fn back(&self) {
        let before = self.document().await;
        self.client.back().await.unwrap_or_else(|error| panic!("there is no page to go back to: {error}"));
        self.leave(&before, "going back").await;
    }

    /// The path of the page that is open now.
    pub async fn path(&self) -> String {
        let url = self.client.current_url().await.unwrap_or_else(|error| panic!("no address: {error}"));
        url.path().to_owned()
    }

    /// The page's cookies, as the browser sends them.
    pub async fn cookies(&self) -> String {
        let cookies = self.client.get_all_cookies().await.expect("cookies");
        let pairs = cookies.iter().map(|cookie| format!("{}={}", cookie.name(), cookie.value()));
        pairs.collect::<Vec<_>>().join("; ")
    }

    /// The problems that axe-core finds on the page, one line each.
    pub async fn axe(&self) -> Vec<String> {
        let axe = std::fs::read_to_string(axe_file()).unwrap_or_else(|error| panic!("{AXE_HINT}: {error}"));
        self.run(&axe, Vec::new()).await;
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'] }).then((found) => done(found.violations));";
        let found = self.client.execute_async(script, Vec::new()).await.expect("axe runs");
        let mut lines = Vec::new();
        for violation in found.as_array().into_iter().flatten() {
            for node in violation["nodes"].as_array().into_iter().flatten() {
                let mut line = format!("{}: {}", violation["id"], violation["help"]);
                let _ = write!(line, " at {}", node["html"]);
                lines.push(line);
            }
        }
        lines
    }

    /// A screenshot of the window.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a screenshot")
    }

    pub async fn close(self) {
        let _ = self.client.clone().close().await;
    }
}

fn capabilities(profile: &TempDir, setup: Setup) -> Capabilities {
    let mut arguments = vec![
        "--headless=new".to_owned(),
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
        format!("--user-data-dir={}", profile.path().display()),
        format!("--window-size={},{}", setup.width, setup.height),
    ];
    if setup.dark {
        arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
    }
    let scripts = if setup.hands == Hands::NoScripts { 2 } else { 1 };
    let preferences = json!({ "profile.managed_default_content_settings.javascript": scripts });
    let options = json!({ "args": arguments, "prefs": preferences });
    [("goog:chromeOptions".to_owned(), options)].into_iter().collect()
}

/// The process that drives a browser. Dropping it ends both.
struct Driver {
    shell: Child,
    port: u16,
}

impl Driver {
    fn start() -> Self {
        let started = Command::new("sh")
            .args(["-c", WATCHED_DRIVER])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut shell = started.expect("starting a shell");
        let mut output = BufReader::new(shell.stdout.take().expect("its output"));
        let said =
            output.by_ref().lines().map_while(Result::ok).find(|line| line.contains("successfully on port "));
        let port =
            said.as_deref().and_then(|line| line.rsplit(' ').next()?.trim_end_matches('.').parse().ok());
        // Kept open, because the driver cannot write to a closed pipe.
        shell.stdout = Some(output.into_inner());
        Self { shell, port: port.unwrap_or_else(|| panic!("chromedriver does not start: {INSTALL_HINT}")) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // At the end of the pipe the shell kills the driver and the browser together with itself.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn axe_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/node_modules/axe-core/axe.min.js")
}
