//! A real Chromium, driven as a person would: by what buttons say and what fields are called. Debian's chromium and
//! chromium-driver; each browser has a driver and a profile of its own, and ends with the test in whatever way.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Hands;

const INSTALL_HINT: &str = "install Debian's chromium and chromium-driver, or run ./scripts/test, which does";
const AXE_HINT: &str = "axe-core is missing: run ./scripts/test, which fetches it";
/// The shell holds the other end of a pipe: when this process ends, so do driver and browser.
const WATCHED_DRIVER: &str = "chromedriver --port=0 --log-level=WARNING & read gone; kill -KILL -$$";
/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

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
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// A window for the service at this address, such as `http://127.0.0.1:8080`.
    pub async fn open(base: &str) -> Self {
        Self::open_as(base, Setup::default()).await
    }

    pub async fn open_as(base: &str, setup: Setup) -> Self {
        let profile = tempfile::tempdir().expect("a profile");
        let (driver, port) = start_driver();
        let mut capabilities = Capabilities::new();
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
            // Drawn without a graphics processor, the passage from page to page costs more than the pages.
            "--force-prefers-reduced-motion".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
            format!("--window-size={},{}", setup.width, setup.height),
        ];
        if setup.dark {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let scripts = if setup.hands == Hands::NoScripts { 2 } else { 1 };
        let preferences = json!({ "profile.managed_default_content_settings.javascript": scripts });
        capabilities
            .insert("goog:chromeOptions".to_owned(), json!({ "args": arguments, "prefs": preferences }));
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let connected = builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await;
        let client =
            connected.unwrap_or_else(|error| panic!("Chromium does not start: {error}; {INSTALL_HINT}"));
        let base = base.trim_end_matches('/').to_owned();
        Self { client, hands: setup.hands, base, driver, _profile: profile }
    }

    pub async fn go(&self, path: &str) {
        let address = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        self.client.goto(&address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    pub async fn reload(&self) {
        self.client.refresh().await.expect("the page loads again");
    }

    /// To the page before, as the browser's button does.
    pub async fn back(&self) {
        self.client.back().await.expect("a page before");
    }

    pub async fn path(&self) -> String {
        let url = self.client.current_url().await.expect("an address");
        url.path().to_owned()
    }

    /// Clicks the first link, button or menu that says exactly this.
    pub async fn click(&self, text: &str) {
        self.click_on(Locator::XPath(&saying(text)), text).await;
    }

    /// Clicks it twice, as fast as can be.
    pub async fn click_twice(&self, text: &str) {
        let found = self.shown(Locator::XPath(&saying(text))).await;
        let found = found.unwrap_or_else(|| panic!("there is no {text:?} to click"));
        self.push_twice(found).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// Clicks what a selector finds.
    pub async fn click_css(&self, selector: &str) {
        self.click_on(Locator::Css(selector), selector).await;
    }

    async fn click_on(&self, locator: Locator<'_>, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let refused = match self.shown(locator).await {
                Some(element) => match self.push(element).await {
                    Ok(()) => return,
                    Err(error) => error.to_string(),
                },
                None => "it is not there".to_owned(),
            };
            if Instant::now() > deadline {
                self.give_up(format!("cannot click {what:?}: {refused}")).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The first element that is displayed.
    async fn shown(&self, locator: Locator<'_>) -> Option<Element> {
        for element in self.client.find_all(locator).await.ok()? {
            if element.is_displayed().await.unwrap_or(false) {
                return Some(element);
            }
        }
        None
    }

    /// Types into the field of this name, instead of what stood there.
    pub async fn fill(&self, name: &str, text: &str) {
        let field = self.field(name).await;
        self.write(&field, text).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Chooses a file.
    pub async fn attach(&self, name: &str, file: &str) {
        let field = self.field(name).await;
        self.put(&field, file).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Chooses an option by its value.
    pub async fn choose(&self, name: &str, value: &str) {
        let field = self.field(name).await;
        self.pick(&field, value).await.unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }

    /// The same in the field that a selector finds, where several have one name.
    pub async fn choose_css(&self, selector: &str, value: &str) {
        let field = self.found(selector).await;
        self.pick(&field, value).await.unwrap_or_else(|error| panic!("{selector}={value}: {error}"));
    }

    async fn field(&self, name: &str) -> Element {
        self.found(&format!("[name=\"{name}\"]:not([type=hidden])")).await
    }

    async fn found(&self, selector: &str) -> Element {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(field) = self.shown(Locator::Css(selector)).await {
                return field;
            }
            if Instant::now() > deadline {
                self.give_up(format!("there is no field {selector}")).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Presses keys wherever the focus is, one after the other; `\u{e007}` is Enter.
    pub async fn press(&self, keys: &str) {
        let pressed = keys.chars().fold(KeyActions::new("keyboard".to_owned()), |actions, value| {
            actions.then(KeyAction::Down { value }).then(KeyAction::Up { value })
        });
        self.client.perform_actions(pressed).await.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    }

    /// Presses a key while another one is held.
    pub async fn press_with(&self, held: char, key: char) {
        let pressed = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value: key })
            .then(KeyAction::Up { value: key })
            .then(KeyAction::Up { value: held });
        self.client.perform_actions(pressed).await.unwrap_or_else(|error| panic!("{key:?}: {error}"));
    }

    /// Waits until the page says something.
    pub async fn see(&self, text: &str) {
        self.wait(&format!("the page to say {text:?}"), async |browser: &Self| {
            browser.text().await.contains(text)
        })
        .await;
    }

    /// Waits until the page does not say it any more.
    pub async fn see_not(&self, text: &str) {
        self.wait(&format!("the page not to say {text:?}"), async |browser: &Self| {
            !browser.text().await.contains(text)
        })
        .await;
    }

    pub async fn wait(&self, what: &str, done: impl AsyncFn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(self).await {
            if Instant::now() > deadline {
                self.give_up(format!("waited in vain for {what}")).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// What a person reads.
    pub async fn text(&self) -> String {
        if self.hands != Hands::NoScripts {
            // The same as below, at a small part of its price.
            let text = self.client.execute("return document.body?.innerText ?? ''", Vec::new()).await;
            return text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
        }
        match self.client.find(Locator::Css("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// The text of the first element that a selector finds.
    pub async fn text_of(&self, selector: &str) -> String {
        let found = self.client.find(Locator::Css(selector)).await;
        let found = found.unwrap_or_else(|error| panic!("{selector}: {error}"));
        found.text().await.unwrap_or_default()
    }

    /// An attribute of the first element that a selector finds; empty where it has none.
    pub async fn attribute_of(&self, selector: &str, name: &str) -> String {
        let found = self.client.find(Locator::Css(selector)).await;
        let found = found.unwrap_or_else(|error| panic!("{selector}: {error}"));
        found.attr(name).await.ok().flatten().unwrap_or_default()
    }

    /// What stands in the field of this name.
    pub async fn value_of(&self, name: &str) -> String {
        let value = self.field(name).await.prop("value").await;
        value.unwrap_or_else(|error| panic!("{name}: {error}")).unwrap_or_default()
    }

    /// The cookies of the page, as a browser sends them along.
    pub async fn cookies(&self) -> String {
        let cookies = self.client.get_all_cookies().await.expect("cookies");
        let pairs = cookies.iter().map(|cookie| format!("{}={}", cookie.name(), cookie.value()));
        pairs.collect::<Vec<_>>().join("; ")
    }

    pub async fn count(&self, selector: &str) -> usize {
        self.client.find_all(Locator::Css(selector)).await.map_or(0, |found| found.len())
    }

    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute(script, arguments).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Drags one element onto another, as a mouse does.
    pub async fn drag(&self, from: &str, to: &str) {
        // Chromium's driver makes no drag events of mouse moves when headless: they are made here.
        let script = "
            const [from, to] = [...arguments].map((selector) => document.querySelector(selector));
            const dataTransfer = new DataTransfer();
            const send = (target, kind) =>
                target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }));
            send(from, 'dragstart'); send(to, 'dragover'); send(to, 'drop'); send(from, 'dragend');";
        self.run(script, vec![json!(from), json!(to)]).await;
    }

    /// What axe-core finds wrong with the page, one line each.
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

    /// A picture of the window.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a picture")
    }

    pub async fn close(self) {
        let _ = self.client.clone().close().await;
    }

    /// Says why, and what the page says.
    async fn give_up(&self, why: String) -> ! {
        let address = self.client.current_url().await.map_or_else(|_| String::new(), |url| url.to_string());
        panic!("{why}\nat {address}, which says:\n{}", self.text().await)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell's end of the pipe closes, and it ends the driver and the browser with itself.
        drop(self.driver.stdin.take());
        let _ = self.driver.wait();
    }
}

fn start_driver() -> (Child, u16) {
    let started = Command::new("sh")
        .args(["-c", WATCHED_DRIVER])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut driver = started.expect("starting a shell");
    let mut output = BufReader::new(driver.stdout.take().expect("its output"));
    let said =
        output.by_ref().lines().map_while(Result::ok).find(|line| line.contains("successfully on port "));
    let port = said.as_deref().and_then(|line| line.rsplit(' ').next()?.trim_end_matches('.').parse().ok());
    // Whoever reads no more is written to no more.
    driver.stdout = Some(output.into_inner());
    (driver, port.unwrap_or_else(|| panic!("chromedriver does not start: {INSTALL_HINT}")))
}

fn axe_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/node_modules/axe-core/axe.min.js")
}

/// Where to find a link, a button or a menu that says exactly this.
fn saying(text: &str) -> String {
    format!(
        "//*[self::a or self::button or self::summary or self::label][normalize-space(.)={0} or @aria-label={0}]",
        quoted(text)
    )
}

/// A text as XPath reads it.
fn quoted(text: &str) -> String {
    if text.contains('"') { format!("'{text}'") } else { format!("\"{text}\"") }
}
