//! What is on a page, once it is there. Everything here waits: a page may still be loading, may change by itself or be
//! replaced between two looks, and a busy machine takes its time. So a test never asserts what a single look found.

use std::time::{Duration, Instant};

use fantoccini::Locator;
use fantoccini::elements::{Element, ElementRef};
use fantoccini::error::{CmdError, ErrorStatus};
use serde_json::Value;

use crate::{Browser, Hands};

/// How long something may take to appear, on a machine with better things to do.
pub const PATIENCE: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a person without scripts looks at a page before reloading it.
const LOOK: Duration = Duration::from_millis(300);

/// What one look at a page found.
pub(crate) enum Look<T> {
    Found(T),
    /// Not what is waited for yet, but this.
    NotYet(String),
}

impl Browser {
    /// Waits until the page says something.
    pub async fn see(&self, text: &str) {
        self.see_any(&[text]).await;
    }

    /// Waits until the page says one of these.
    pub async fn see_any(&self, texts: &[&str]) {
        self.until(&format!("the page to say {}", one_of(texts)), async || {
            let said = self.text_now().await?;
            Ok(check(texts.iter().any(|text| said.contains(text)), || "it doesn't".to_owned()))
        })
        .await;
    }

    /// Waits until the page no longer says this. A page that is still loading says nothing, which does not count.
    pub async fn see_not(&self, text: &str) {
        self.until(&format!("the page not to say {text:?}"), async || {
            let said = self.text_now().await?;
            Ok(check(!said.is_empty() && !said.contains(text), || "it does".to_owned()))
        })
        .await;
    }

    /// Waits until the page says what happened in the meantime. Without scripts a person reloads it.
    pub async fn see_news(&self, text: &str) {
        self.until(&format!("the page to bring the news {text:?}"), async || {
            let told = self.text_now().await?.contains(text);
            if !told && self.hands == Hands::NoScripts {
                tokio::time::sleep(LOOK).await;
                self.client.refresh().await?;
            }
            Ok(check(told, || "it doesn't".to_owned()))
        })
        .await;
    }

    /// Waits until the first element that a selector finds says something.
    pub async fn see_in(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} to say {text:?}"), async || {
            let said = self.first(selector).await?.text().await?;
            Ok(check(said.contains(text), || format!("it says {said:?}")))
        })
        .await;
    }

    /// Waits until the first element that a selector finds doesn't say it.
    pub async fn see_not_in(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} not to say {text:?}"), async || {
            let said = self.first(selector).await?.text().await?;
            Ok(check(!said.contains(text), || format!("it says {said:?}")))
        })
        .await;
    }

    /// Waits until the first element that a selector finds says exactly this.
    pub async fn expect_text(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} to say exactly {text:?}"), async || {
            let said = self.first(selector).await?.text().await?;
            Ok(check(said == text, || format!("it says {said:?}")))
        })
        .await;
    }

    /// Waits until a selector finds this many elements.
    pub async fn expect_count(&self, selector: &str, count: usize) {
        self.until(&format!("{count} of {selector}"), async || {
            let found = self.count_now(selector).await?;
            Ok(check(found == count, || format!("there are {found}")))
        })
        .await;
    }

    /// Waits until a selector finds something.
    pub async fn expect_some(&self, selector: &str) {
        self.until(&format!("some of {selector}"), async || {
            let found = self.count_now(selector).await?;
            Ok(check(found > 0, || "none were found".to_owned()))
        })
        .await;
    }

    /// Waits until the field of this name holds this value.
    pub async fn expect_value(&self, name: &str, value: &str) {
        self.until(&format!("the field {name} to hold {value:?}"), async || {
            let Some(field) = self.shown(Locator::Css(&field_of(name))).await? else {
                return Ok(Look::NotYet("there is no such field".to_owned()));
            };
            let held = field.prop("value").await?.unwrap_or_default();
            Ok(check(held == value, || format!("it holds {held:?}")))
        })
        .await;
    }

    /// Waits until a script returns this.
    pub async fn expect_script(&self, script: &str, value: &Value) {
        self.until(&format!("{script} to return {value}"), async || {
            let answer = self.client.execute(script, Vec::new()).await?;
            Ok(check(answer == *value, || format!("it returned {answer}")))
        })
        .await;
    }

    /// Waits until the page at this path is loaded.
    pub async fn arrive(&self, path: &str) {
        self.until(&format!("the page {path}"), async || {
            let url = self.client.current_url().await?;
            let arrived = url.path() == path && self.is_loaded().await?;
            Ok(check(arrived, || format!("it is {url}")))
        })
        .await;
    }

    /// The text of the first element that a selector finds, once there is one.
    pub async fn text_of(&self, selector: &str) -> String {
        self.until(selector, async || Ok(Look::Found(self.first(selector).await?.text().await?))).await
    }

    /// An attribute of the first element that a selector finds, once there is one; empty if it lacks the attribute.
    pub async fn attribute_of(&self, selector: &str, name: &str) -> String {
        let what = format!("{name} of {selector}");
        let look =
            async || Ok(Look::Found(self.first(selector).await?.attr(name).await?.unwrap_or_default()));
        self.until(&what, look).await
    }

    /// How many elements a selector finds on the page as it is now. To assert a number, use
    /// [`expect_count`](Self::expect_count).
    pub async fn count(&self, selector: &str) -> usize {
        self.until(selector, async || Ok(Look::Found(self.count_now(selector).await?))).await
    }

    /// What a person reads on the page as it is now. To assert a text, use [`see`](Self::see).
    pub async fn text(&self) -> String {
        self.until("a page", async || Ok(Look::Found(self.text_now().await?))).await
    }

    /// What a script returns. It runs again if the page was replaced in the meantime.
    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        let run = async || Ok(Look::Found(self.client.execute(script, arguments.clone()).await?));
        self.until(script.lines().next().unwrap_or_default(), run).await
    }

    /// Runs a script that calls its last argument when it is done.
    pub async fn run_async(&self, script: &str) -> Value {
        self.client
            .execute_async(script, Vec::new())
            .await
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Looks until something is found. An error that occurs because the page is just changing is not an answer yet.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Result<Look<T>, CmdError>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = match look().await {
                Ok(Look::Found(found)) => return found,
                Ok(Look::NotYet(seen)) => seen,
                Err(error) if is_passing(&error) => error.to_string(),
                Err(error) => self.give_up(format!("cannot look for {what}: {error}")).await,
            };
            if Instant::now() > deadline {
                self.give_up(format!("waited {PATIENCE:?} for {what}; last look: {seen}")).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The open document. Another page, or the same one loaded again, is another document.
    pub(crate) async fn document(&self) -> ElementRef {
        self.until("a page", async || Ok(Look::Found(self.first("html").await?.element_id()))).await
    }

    /// Waits until a document was replaced by another one that has loaded.
    pub(crate) async fn leave(&self, document: &ElementRef, cause: &str) {
        self.until(&format!("another page after {cause}"), async || {
            if self.first("html").await?.element_id() == *document {
                return Ok(Look::NotYet("the page is still the same".to_owned()));
            }
            Ok(check(self.is_loaded().await?, || "it is loading".to_owned()))
        })
        .await;
    }

    /// The first element that is displayed.
    pub(crate) async fn shown(&self, locator: Locator<'_>) -> Result<Option<Element>, CmdError> {
        for element in self.client.find_all(locator).await? {
            if element.is_displayed().await? {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    async fn first(&self, selector: &str) -> Result<Element, CmdError> {
        self.client.find(Locator::Css(selector)).await
    }

    async fn count_now(&self, selector: &str) -> Result<usize, CmdError> {
        // While a page is being replaced there may be no document at all, and nothing would be found in it.
        self.first("body").await?;
        Ok(self.client.find_all(Locator::Css(selector)).await?.len())
    }

    async fn text_now(&self) -> Result<String, CmdError> {
        // The driver's own way to read an element takes ten times as long.
        if self.hands == Hands::NoScripts {
            return Ok(self.first("body").await?.prop("innerText").await?.unwrap_or_default());
        }
        let text = self.client.execute("return document.body?.innerText ?? ''", Vec::new()).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Whether the page has loaded. Without scripts there is no way to ask, and the driver itself waits for pages.
    async fn is_loaded(&self) -> Result<bool, CmdError> {
        if self.hands == Hands::NoScripts {
            return Ok(true);
        }
        Ok(self.client.execute("return document.readyState", Vec::new()).await? == "complete")
    }

    /// Panics, and says why and what is there instead.
    async fn give_up(&self, why: String) -> ! {
        let address = self.client.current_url().await.map_or_else(|_| String::new(), |url| url.to_string());
        let text = self.text_now().await.unwrap_or_else(|error| error.to_string());
        panic!("{why}\nat {address}, which says:\n{text}")
    }
}

/// The selector of the field with this name.
pub(crate) fn field_of(name: &str) -> String {
    format!("[name=\"{name}\"]:not([type=hidden])")
}

fn check(done: bool, seen: impl FnOnce() -> String) -> Look<()> {
    if done { Look::Found(()) } else { Look::NotYet(seen()) }
}

fn one_of(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" or ")
}

/// Whether an error may be gone at the next look, because the page is just changing: the element or the whole document
/// is gone or not there yet. The driver has many names for that, so the errors that cannot pass are listed instead.
pub(crate) fn is_passing(error: &CmdError) -> bool {
    let CmdError::Standard(refusal) = error else { return false };
    !matches!(
        refusal.error,
        ErrorStatus::InvalidSelector
            | ErrorStatus::InvalidArgument
            | ErrorStatus::InvalidSessionId
            | ErrorStatus::NoSuchWindow
            | ErrorStatus::UnknownCommand
            | ErrorStatus::UnknownMethod
            | ErrorStatus::UnknownPath
            | ErrorStatus::UnsupportedOperation
    )
}

/// Whether an error means that a click never reached its element.
pub(crate) fn is_missed(error: &CmdError) -> bool {
    let CmdError::Standard(refusal) = error else { return false };
    matches!(
        refusal.error,
        ErrorStatus::NoSuchElement
            | ErrorStatus::StaleElementReference
            | ErrorStatus::ElementNotInteractable
            | ErrorStatus::ElementClickIntercepted
            | ErrorStatus::InvalidElementState
            | ErrorStatus::MoveTargetOutOfBounds
    )
}
