//! Chromium's headless shell, and its own protocol over a pipe. There is no driver in between: it needs ten times as long
//! for a command as the browser itself, and a test is hundreds of commands.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Chromium without the windows, menus and services around the page. It starts in a sixth of the time.
const BROWSER: &str = "/usr/bin/chromium-headless-shell";
/// The browser ends with the pipe, so also when this process ends, and its files go with it.
const RUN: &str = r#"
files=$(mktemp -d) || exit
TMPDIR=$files "$0" --user-data-dir="$files" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1
rm -rf "$files""#;
const OPTIONS: [&str; 16] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-component-update",
    "--disable-sync",
    "--enable-automation",
    "--no-first-run",
    "--lang=en-US",
    // A page takes keys and clicks as soon as it has loaded, not only once it was drawn.
    "--allow-pre-commit-input",
    "--disable-features=IgnoreDuplicateNavs,PaintHolding",
    // The identity provider of the tests has a certificate from an authority of the tests.
    "--ignore-certificate-errors",
    // Drawn without a graphics processor, the transitions between pages would cost more than the pages.
    "--force-prefers-reduced-motion",
];
/// How long a command may take: a page that is slow to load, or a script that looks at all of a page.
const LIMIT: Duration = Duration::from_mins(2);
const ENDED: &str = "the browser has ended";
/// Codes of JSON-RPC: no such command, wrong parameters; and Chromium's own for a page that is gone.
const MISTAKES: [i64; 3] = [-32601, -32602, -32001];

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The page is just being replaced, or doesn't have what a script needs yet. It may work at the next look.
    Passing(String),
    /// It will fail every time.
    Final(String),
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Passing(why) | Self::Final(why)) = self;
        f.write_str(why)
    }
}

impl Failure {
    fn of_command(error: &Value) -> Self {
        let why = error["message"].as_str().unwrap_or_default().to_owned();
        let is_mistake = error["code"].as_i64().is_some_and(|code| MISTAKES.contains(&code));
        if is_mistake { Self::Final(why) } else { Self::Passing(why) }
    }

    fn of_script(details: &Value) -> Self {
        let why = describe(details);
        // The script itself, or a selector in it.
        if why.starts_with("SyntaxError") { Self::Final(why) } else { Self::Passing(why) }
    }
}

/// What a script threw.
pub fn describe(details: &Value) -> String {
    let thrown = &details["exception"];
    let text = thrown["description"].as_str().or(thrown["value"].as_str()).or(details["text"].as_str());
    text.unwrap_or_default().to_owned()
}

/// Told about each event of a page, in their order: its name and what it says.
pub type Listener = Box<dyn Fn(&str, &Value) + Send>;

/// A running browser.
pub struct Chromium {
    input: Mutex<Option<ChildStdin>>,
    inbox: Arc<Inbox>,
    commands: AtomicU64,
    shell: Child,
}

/// What waits for the browser.
#[derive(Default)]
struct Inbox {
    answers: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Failure>>>>,
    listener: Mutex<Option<(String, Listener)>>,
}

impl Chromium {
    pub fn start() -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", RUN, BROWSER])
            .args(OPTIONS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starting a shell");
        let input = Mutex::new(shell.stdin.take());
        let mut output = BufReader::new(shell.stdout.take().expect("its output"));
        let inbox = Arc::new(Inbox::default());
        let reader = Arc::clone(&inbox);
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|_| message.pop() == Some(0)) {
                reader.take(serde_json::from_slice(&message).expect("a message"));
                message.clear();
            }
            // Nobody may wait for an answer that doesn't come.
            lock(&reader.answers).clear();
        });
        Self { input, inbox, commands: AtomicU64::new(0), shell }
    }

    /// From now on, the events of this page and no other are told to a listener.
    pub fn listen(&self, session: &str, listener: Listener) {
        *lock(&self.inbox.listener) = Some((session.to_owned(), listener));
    }

    /// Sends a command, to a page or to the browser itself. Commands are carried out in their order, whether or not
    /// somebody waits for the answers.
    pub fn send(&self, session: Option<&str>, method: &str, parameters: Value) -> Answer {
        let id = self.commands.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let (answer, receiver) = oneshot::channel();
        lock(&self.inbox.answers).insert(id, answer);
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let written = lock(&self.input).as_mut().map(|input| input.write_all(&bytes));
        if !matches!(written, Some(Ok(()))) {
            lock(&self.inbox.answers).remove(&id);
        }
        Answer { method: method.to_owned(), receiver }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // At the end of the pipe the browser ends, and with it the shell.
        lock(&self.input).take();
        let _ = self.shell.wait();
    }
}

impl Inbox {
    fn take(&self, mut message: Value) {
        let Some(id) = message["id"].as_u64() else { return self.tell(&message) };
        let answer = match message.get("error") {
            Some(error) => Err(Failure::of_command(error)),
            None => Ok(message["result"].take()),
        };
        if let Some(waiting) = lock(&self.answers).remove(&id) {
            // Many commands are sent without waiting.
            let _ = waiting.send(answer);
        }
    }

    fn tell(&self, event: &Value) {
        let listener = lock(&self.listener);
        if let Some((session, listener)) = &*listener
            && event["sessionId"] == **session
        {
            listener(event["method"].as_str().unwrap_or_default(), &event["params"]);
        }
    }
}

/// The answer to a command that was sent.
pub struct Answer {
    method: String,
    receiver: oneshot::Receiver<Result<Value, Failure>>,
}

impl Answer {
    pub async fn wait(self) -> Result<Value, Failure> {
        match timeout(LIMIT, self.receiver).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Failure::Final(ENDED.to_owned())),
            Err(_) => Err(Failure::Final(format!("no answer to {} within {LIMIT:?}", self.method))),
        }
    }

    /// The value of a script, if it is the answer to one.
    pub async fn value(self) -> Result<Value, Failure> {
        let mut answer = self.wait().await?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(Failure::of_script(details)),
            None => Ok(answer["result"]["value"].take()),
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
