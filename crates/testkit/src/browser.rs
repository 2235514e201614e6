//! A real Chromium window: Debian's chromium-headless-shell. What a person does in it is in `acts` and `hands`, what they
//! see in `sight`, what axe-core sees in `axe`; where windows come from is in `window`.

use serde_json::{Value, json};

use crate::Hands;
use crate::window::Window;

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

/// An open browser window in which nobody is logged in yet.
pub struct Browser {
    pub(crate) hands: Hands,
    base: String,
    window: Option<Window>,
}

impl Browser {
    /// A window for the service at this address, such as `http://127.0.0.1:8080`.
    pub async fn open(base: &str) -> Self {
        Self::open_as(base, Setup::default()).await
    }

    pub async fn open_as(base: &str, setup: Setup) -> Self {
        let window = Window::open(setup).await;
        let base = base.trim_end_matches('/').to_owned();
        let browser = Self { hands: setup.hands, base, window: Some(window) };
        if setup.dark {
            browser.darken(true).await;
        }
        browser
    }

    pub(crate) fn window(&self) -> &Window {
        self.window.as_ref().expect("it is open until it is dropped")
    }

    /// Sends the browser a command that must succeed.
    pub(crate) async fn command(&self, method: &str, parameters: Value) -> Value {
        let answer = self.window().command(method, parameters).await;
        answer.unwrap_or_else(|failure| panic!("{method}: {failure}"))
    }

    /// Gives the browser a cookie of the service, before any page of it is open.
    pub async fn add_cookie(&self, name: &str, value: &str) {
        let cookie = json!({ "url": self.base, "name": name, "value": value });
        let answer = self.command("Network.setCookie", cookie).await;
        assert_eq!(answer["success"], true, "{name}: {answer}");
    }

    /// Opens a page and waits until it is loaded.
    pub async fn go(&self, path: &str) {
        let address = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let before = self.window().document();
        let answer = self.command("Page.navigate", json!({ "url": address })).await;
        assert!(answer.get("errorText").is_none(), "{address}: {answer}");
        self.leave(&before, &format!("going to {address}")).await;
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        let before = self.window().document();
        self.command("Page.reload", json!({})).await;
        self.leave(&before, "reloading").await;
    }

    /// Goes back to the previous page, like the browser's button.
    pub async fn back(&self) {
        let before = self.window().document();
        let history = self.command("Page.getNavigationHistory", json!({})).await;
        let now = history["currentIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
        let last = now.and_then(|now| history["entries"].get(now.checked_sub(1)?));
        let last = last.unwrap_or_else(|| panic!("there is no page to go back to: {history}"));
        self.command("Page.navigateToHistoryEntry", json!({ "entryId": last["id"] })).await;
        self.leave(&before, "going back").await;
    }

    /// The path of the page that is open now.
    pub async fn path(&self) -> String {
        let path = self.run("return location.pathname", Vec::new()).await;
        path.as_str().unwrap_or_default().to_owned()
    }

    /// The page's cookies, as the browser sends them.
    pub async fn cookies(&self) -> String {
        let answer = self.command("Network.getCookies", json!({ "urls": [self.base] })).await;
        let cookies = answer["cookies"].as_array().expect("cookies").iter();
        let word = |cookie: &Value, name: &str| cookie[name].as_str().unwrap_or_default().to_owned();
        let pairs = cookies.map(|cookie| format!("{}={}", word(cookie, "name"), word(cookie, "value")));
        pairs.collect::<Vec<_>>().join("; ")
    }

    /// The errors that no script caught since the last time, in this page and those before. A test in which one occurs
    /// fails when it closes the browser.
    pub async fn script_errors(&self) -> Vec<String> {
        self.window().script_errors().await.unwrap_or_else(|failure| panic!("no errors are told: {failure}"))
    }

    /// Closes the window, unlike a person who leaves it open until the end of the test.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What a failed test left behind is nothing for the next one.
        let Some(window) = self.window.take().filter(|_| !std::thread::panicking()) else { return };
        let errors = window.close();
        assert!(errors.is_empty(), "errors in the pages' scripts:\n{}", errors.join("\n"));
    }
}
