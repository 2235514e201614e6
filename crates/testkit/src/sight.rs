//! What is on a page, once it is there. Everything here waits: a page may still be loading, may change by itself or be
//! replaced between two looks, and a busy machine takes its time. So a test never asserts what a single look found.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::chromium::Failure;
use crate::elements::Target;
use crate::window::Document;
use crate::{Browser, Hands};

/// How long something may take to appear, on a machine with better things to do.
pub const PATIENCE: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a person without scripts looks at a page before reloading it.
const LOOK: Duration = Duration::from_millis(300);

/// What one look at a page found.
pub enum Look<T> {
    Found(T),
    /// Not what is waited for yet, but this.
    NotYet(String),
}

impl<T> Look<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::Found(found) => Look::Found(change(found)),
            Self::NotYet(seen) => Look::NotYet(seen),
        }
    }
}

/// The text of an element as a person reads it.
const TEXT: &str = "const one = document.querySelector(arguments[0]);
    const shows = one?.checkVisibility({ visibilityProperty: true });
    return one && (shows ? one.innerText.replace(/[\\t\\u00a0]/g, ' ').trim() : '')";

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
                let document = self.window().document();
                self.window().command("Page.reload", json!({})).await?;
                self.leave(&document, "reloading").await;
            }
            Ok(check(told, || "it doesn't".to_owned()))
        })
        .await;
    }

    /// Waits until the first element that a selector finds says something.
    pub async fn see_in(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} to say {text:?}"), async || {
            let said = self.text_in(selector).await?;
            Ok(check(said.contains(text), || format!("it says {said:?}")))
        })
        .await;
    }

    /// Waits until the first element that a selector finds doesn't say it.
    pub async fn see_not_in(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} not to say {text:?}"), async || {
            let said = self.text_in(selector).await?;
            Ok(check(!said.contains(text), || format!("it says {said:?}")))
        })
        .await;
    }

    /// Waits until the first element that a selector finds says exactly this.
    pub async fn expect_text(&self, selector: &str, text: &str) {
        self.until(&format!("{selector} to say exactly {text:?}"), async || {
            let said = self.text_in(selector).await?;
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
            let Some(held) = self.about(&Target::field(name), "return target.value", &Value::Null).await?
            else {
                return Ok(Look::NotYet("there is no such field".to_owned()));
            };
            Ok(check(held == value, || format!("it holds {held}")))
        })
        .await;
    }

    /// Waits until a script returns this.
    pub async fn expect_script(&self, script: &str, value: &Value) {
        self.until(&format!("{script} to return {value}"), async || {
            let answer = self.window().evaluate(script, &[]).await?;
            Ok(check(answer == *value, || format!("it returned {answer}")))
        })
        .await;
    }

    /// Waits until the page at this path is loaded.
    pub async fn arrive(&self, path: &str) {
        self.until(&format!("the page {path}"), async || {
            let open = self.window().evaluate("return location.pathname", &[]).await?;
            Ok(check(open == path, || format!("it is {open}")))
        })
        .await;
    }

    /// The text of the first element that a selector finds, once there is one.
    pub async fn text_of(&self, selector: &str) -> String {
        self.until(selector, async || Ok(Look::Found(self.text_in(selector).await?))).await
    }

    /// An attribute of the first element that a selector finds, once there is one; empty if it lacks the attribute.
    pub async fn attribute_of(&self, selector: &str, name: &str) -> String {
        let what = format!("{name} of {selector}");
        let script = "return document.querySelector(arguments[0]).getAttribute(arguments[1])";
        let value = self.until(&what, async || {
            Ok(Look::Found(self.window().evaluate(script, &[json!(selector), json!(name)]).await?))
        });
        value.await.as_str().unwrap_or_default().to_owned()
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
        let run = async || Ok(Look::Found(self.window().evaluate(script, &arguments).await?));
        self.until(script.lines().next().unwrap_or_default(), run).await
    }

    /// Runs a script that calls its last argument when it is done.
    pub async fn run_async(&self, script: &str, arguments: Vec<Value>) -> Value {
        let done = self.window().evaluate_async(script, &arguments).await;
        done.unwrap_or_else(|failure| panic!("{script}: {failure}"))
    }

    /// Looks until something is found. An error that occurs because the page is just changing is not an answer yet.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Result<Look<T>, Failure>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.window().settle().await;
            let seen = match look().await {
                Ok(Look::Found(found)) => return found,
                Ok(Look::NotYet(seen)) => seen,
                Err(Failure::Passing(why)) => why,
                Err(Failure::Final(why)) => self.give_up(format!("cannot look for {what}: {why}")).await,
            };
            if Instant::now() > deadline {
                self.give_up(format!("waited {PATIENCE:?} for {what}; last look: {seen}")).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until a document was replaced by another one that has loaded.
    pub(crate) async fn leave(&self, document: &Document, cause: &str) {
        if !self.window().leave(document).await {
            self.give_up(format!("no other page came after {cause}")).await;
        }
    }

    async fn text_in(&self, selector: &str) -> Result<String, Failure> {
        let text = self.window().evaluate(TEXT, &[json!(selector)]).await?;
        let none = || Failure::Passing(format!("there is no {selector}"));
        text.as_str().map(str::to_owned).ok_or_else(none)
    }

    async fn count_now(&self, selector: &str) -> Result<usize, Failure> {
        let script = "return document.querySelectorAll(arguments[0]).length";
        let count = self.window().evaluate(script, &[json!(selector)]).await?;
        Ok(count.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default())
    }

    async fn text_now(&self) -> Result<String, Failure> {
        let text = self.window().evaluate("return document.body?.innerText ?? ''", &[]).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Panics, and says why and what is there instead.
    async fn give_up(&self, why: String) -> ! {
        let address = self.window().evaluate("return location.href", &[]).await;
        let address = address.map_or_else(|failure| failure.to_string(), |address| address.to_string());
        let text = self.text_now().await.unwrap_or_else(|failure| failure.to_string());
        panic!("{why}\nat {address}, which says:\n{text}")
    }
}

fn check(done: bool, seen: impl FnOnce() -> String) -> Look<()> {
    if done { Look::Found(()) } else { Look::NotYet(seen()) }
}

fn one_of(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" or ")
}
