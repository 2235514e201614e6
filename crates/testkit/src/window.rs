//! The window of a test: a page in a browser that knows nothing of earlier tests, and what is known about its document.
//! Starting a browser takes longer than most tests, so tests use browsers one after another.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Hands;
use crate::browser::Setup;
use crate::chromium::{Answer, Chromium, Failure, describe, lock};

const INSTALL_HINT: &str = "install Debian's chromium-headless-shell, or run ./scripts/test, which does";
/// A browser that a busy machine kept from starting in time is started again.
const STARTS: usize = 3;
/// How long a page may take to load.
const LOAD_LIMIT: Duration = Duration::from_mins(2);

static IDLE: Mutex<Vec<Chromium>> = Mutex::new(Vec::new());

/// The document of a page. Another page, or the same one loaded again, is another document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document(String);

/// What the browser said about the documents of a page.
#[derive(Debug, Default)]
struct Documents {
    open: Document,
    /// The last one that has loaded completely.
    loaded: Document,
    /// The last one that has been drawn. Before that, the browser may drop keys.
    drawn: Document,
    /// Whether the page is loading, or about to be replaced.
    is_busy: bool,
}

impl Documents {
    fn is_settled(&self) -> bool {
        self.loaded == self.open && self.drawn == self.open && !self.is_busy
    }
}

pub struct Window {
    chromium: Chromium,
    /// What separates it from the browser's earlier and later windows: its own cookies, storage and cache.
    context: String,
    session: String,
    documents: watch::Receiver<Documents>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Window {
    pub async fn open(setup: Setup) -> Self {
        let mut failures = Vec::new();
        while failures.len() < STARTS {
            let idle = lock(&IDLE).pop();
            match Self::open_in(idle.unwrap_or_else(Chromium::start), setup).await {
                Ok(window) => return window,
                Err(failure) => failures.push(failure.to_string()),
            }
        }
        panic!("Chromium does not start: {failures:?}; {INSTALL_HINT}")
    }

    async fn open_in(chromium: Chromium, setup: Setup) -> Result<Self, Failure> {
        let word = |answer: &Value, name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let made = chromium.send(None, "Target.createBrowserContext", json!({})).wait().await?;
        let context = word(&made, "browserContextId");
        let page = json!({
            "url": "about:blank", "browserContextId": context, "width": setup.width, "height": setup.height,
        });
        let page = word(&chromium.send(None, "Target.createTarget", page).wait().await?, "targetId");
        let attach = json!({ "targetId": page, "flatten": true });
        let session = word(&chromium.send(None, "Target.attachToTarget", attach).wait().await?, "sessionId");

        let (sender, documents) = watch::channel(Documents::default());
        let errors = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&errors);
        let listener = move |event: &str, says: &Value| match event {
            "Runtime.exceptionThrown" => lock(&noted).push(describe(&says["exceptionDetails"])),
            _ => sender.send_modify(|documents| documents.note(&page, event, says)),
        };
        chromium.listen(&session, Box::new(listener));
        let window = Self { chromium, context, session, documents, errors };
        window.command("Page.enable", json!({})).await?;
        window.command("Page.setLifecycleEventsEnabled", json!({ "enabled": true })).await?;
        window.command("Runtime.enable", json!({})).await?;
        // Several windows are open at once, and each test needs to see where the focus is in its own.
        window.command("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await?;
        let is_script_off = setup.hands == Hands::NoScripts;
        window.command("Emulation.setScriptExecutionDisabled", json!({ "value": is_script_off })).await?;
        Ok(window)
    }

    /// Sends a command to the page, without waiting for its answer.
    pub fn send(&self, method: &str, parameters: Value) -> Answer {
        self.chromium.send(Some(&self.session), method, parameters)
    }

    pub async fn command(&self, method: &str, parameters: Value) -> Result<Value, Failure> {
        self.send(method, parameters).wait().await
    }

    /// What a script returns, such as `return arguments[0] + 1`.
    pub async fn evaluate(&self, script: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let expression = json!({ "expression": call(script, arguments), "returnByValue": true });
        self.evaluation(expression).value().await
    }

    /// The handle of the element that a script returns, if it returns one.
    pub async fn handle(&self, script: &str, arguments: &[Value]) -> Result<Option<String>, Failure> {
        let answer = self.evaluation(json!({ "expression": call(script, arguments) })).wait().await?;
        Ok(answer["result"]["objectId"].as_str().map(str::to_owned))
    }

    /// What a script hands to its last argument.
    pub async fn evaluate_async(&self, script: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let expression = format!(
            "new Promise((done) => (function () {{ {script}\n}}).apply(null, [...{}, done]))",
            json!(arguments)
        );
        let promise = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        self.evaluation(promise).value().await
    }

    /// Evaluates an expression as if a person had caused it.
    fn evaluation(&self, mut expression: Value) -> Answer {
        expression["userGesture"] = json!(true);
        self.send("Runtime.evaluate", expression)
    }

    pub fn document(&self) -> Document {
        self.documents.borrow().open.clone()
    }

    /// Waits until the page has loaded, shows and is not about to be replaced; not forever.
    pub async fn settle(&self) {
        let mut documents = self.documents.clone();
        let _ = timeout(LOAD_LIMIT, documents.wait_for(Documents::is_settled)).await;
    }

    /// Waits until a document was replaced by another one that has loaded. Returns whether that happened in time.
    pub async fn leave(&self, document: &Document) -> bool {
        let mut documents = self.documents.clone();
        let left = documents.wait_for(|now| now.open != *document && now.is_settled());
        timeout(LOAD_LIMIT, left).await.is_ok_and(|left| left.is_ok())
    }

    /// The errors that no script caught since the last time, in this page and those before. A browser that has ended has
    /// none.
    pub async fn script_errors(&self) -> Result<Vec<String>, Failure> {
        // What happened earlier is told before this answer.
        self.evaluation(json!({ "expression": "0" })).wait().await?;
        Ok(std::mem::take(&mut *lock(&self.errors)))
    }

    /// Closes it, and returns the errors that no script caught.
    pub fn close(self) -> Vec<String> {
        // A test's own runtime runs this, and can't wait for itself.
        let read = || {
            let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(self.script_errors())
        };
        let errors = thread::scope(|scope| scope.spawn(read).join().expect("an answer"));
        // One that doesn't answer ends here.
        let Ok(errors) = errors else { return Vec::new() };
        let context = json!({ "browserContextId": self.context });
        self.chromium.send(None, "Target.disposeBrowserContext", context);
        lock(&IDLE).push(self.chromium);
        errors
    }
}

fn call(script: &str, arguments: &[Value]) -> String {
    format!("(function () {{ {script}\n}}).apply(null, {})", json!(arguments))
}

impl Documents {
    fn note(&mut self, page: &str, event: &str, says: &Value) {
        let document = |of: &Value| Document(of["loaderId"].as_str().unwrap_or_default().to_owned());
        match event {
            "Page.frameNavigated" if says["frame"]["id"] == page => {
                self.open = document(&says["frame"]);
                // A page that is gone back to is shown as it was left.
                if says["type"] == "BackForwardCacheRestore" {
                    (self.loaded, self.drawn) = (self.open.clone(), self.open.clone());
                }
            }
            _ if says["frameId"] != page => {}
            "Page.lifecycleEvent" if says["name"] == "load" => {
                self.loaded = document(says);
                // The empty page of a new window loaded before anybody listened.
                if self.open == Document::default() {
                    (self.open, self.drawn) = (self.loaded.clone(), self.loaded.clone());
                }
            }
            "Page.lifecycleEvent" if says["name"] == "firstPaint" => self.drawn = document(says),
            "Page.frameStartedLoading" => self.is_busy = true,
            "Page.frameStoppedLoading" => self.is_busy = false,
            _ => {}
        }
    }
}
