//! A real Chromium window: Debian's chromium-headless-shell and chromium-driver. What a person does in it is in `acts`
//! and `hands`, what they see in `sight`, what axe-core sees in `axe`; where browsers come from is in `drivers`.

use fantoccini::Client;
use serde_json::json;

use crate::Hands;
use crate::chromium;
use crate::drivers::{Kind, Session};

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
    pub(crate) client: Client,
    pub(crate) hands: Hands,
    base: String,
    session: Option<Session>,
}

impl Browser {
    /// A window for the service at this address, such as `http://127.0.0.1:8080`.
    pub async fn open(base: &str) -> Self {
        Self::open_as(base, Setup::default()).await
    }

    pub async fn open_as(base: &str, setup: Setup) -> Self {
        let Setup { width, height, dark, hands } = setup;
        let kind = Kind { width, height, dark, runs_scripts: hands != Hands::NoScripts };
        let session = Session::take(kind).await;
        let client = session.client.clone();
        let base = base.trim_end_matches('/').to_owned();
        Self { client, hands, base, session: Some(session) }
    }

    /// Gives the browser a cookie of the service, before any page of it is open.
    pub async fn add_cookie(&self, name: &str, value: &str) {
        let cookie = json!({ "url": self.base, "name": name, "value": value });
        let command = chromium::Command("Network.setCookie", cookie);
        let answer =
            self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("no cookie: {error}"));
        assert_eq!(answer["success"], true, "{name}: {answer}");
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

    /// A screenshot of the window.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a screenshot")
    }

    /// Closes the window, unlike a person who leaves it open until the end of the test.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What a failed test left behind is nothing for the next one.
        let Some(session) = self.session.take().filter(|_| !std::thread::panicking()) else { return };
        let errors = session.script_errors();
        session.put_back();
        assert!(errors.is_empty(), "errors in the pages' scripts:\n{}", errors.join("\n"));
    }
}
