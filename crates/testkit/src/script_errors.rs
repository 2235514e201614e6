//! Errors in a page's scripts that nothing caught. A test in which one occurs fails when it closes the browser.

use fantoccini::error::CmdError;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, error::ErrorStatus};
use hyper::Method;
use serde_json::{Value, json};
use url::{ParseError, Url};

use crate::Browser;

/// Reads the browser's console since the last time.
#[derive(Debug)]
struct ReadLog;

impl WebDriverCompatibleCommand for ReadLog {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        base_url.join(&format!("session/{}/se/log", session_id.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "type": "browser" }).to_string()))
    }
}

impl Browser {
    /// The errors that nothing caught since the last time, in this page and those before.
    pub async fn script_errors(&self) -> Vec<String> {
        read(&self.client).await.unwrap_or_else(|error| panic!("no log: {error}"))
    }
}

/// The errors of a browser. One that has ended has none.
pub(crate) async fn read(client: &Client) -> Result<Vec<String>, CmdError> {
    let log = match client.issue_cmd(ReadLog).await {
        Err(CmdError::Standard(refusal)) if refusal.error == ErrorStatus::InvalidSessionId => Value::Null,
        log => log?,
    };
    let is_error = |entry: &&Value| entry["source"] == "javascript";
    let errors = log.as_array().into_iter().flatten().filter(is_error);
    Ok(errors.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect())
}
