//! A company with its running service, its programs and its people.

use std::ffi::OsString;
use std::fs::{self, DirEntry, Permissions};
use std::sync::LazyLock;
use std::time::Instant;

use rapport_store::Database;
use rapport_testkit::browser::Setup;
use rapport_testkit::{Browser, Hands, PATIENCE, Receiver, raw};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{self, Place, Service};

const MOST_TRIES: usize = 60;
/// The owner's password.
const PASSWORD: &str = "the password of Ana Ruiz";

/// The company Acme as the command line makes it. Making it takes a while, so each office begins with a copy.
static NEW_COMPANY: LazyLock<NewCompany> = LazyLock::new(NewCompany::make);

struct NewCompany {
    /// The name, the mode and the content of each file.
    files: Vec<(OsString, Permissions, Vec<u8>)>,
    made: Value,
    /// The cookie of a browser in which the owner has logged in.
    browser: String,
}

impl NewCompany {
    fn make() -> Self {
        let place = Place::sqlite();
        let arguments = [
            "company",
            "create",
            "acme",
            "--name",
            "Acme",
            "--owner",
            "ana@acme.test",
            "--owner-name",
            "Ana Ruiz",
        ];
        let made = place.json(&[&arguments[..], &["--json"]].concat());
        let mut service = place.serve();
        service.accept(&made, PASSWORD);
        let owner = Login { email: "ana@acme.test".to_owned(), password: PASSWORD.to_owned() };
        let head = send_login(&service, &owner, None);
        let (session, browser) = (cookie_in(&head, "rapport"), cookie_in(&head, "browser"));
        let cookies = format!("rapport={session}");
        let headers = [("Cookie", cookies.as_str()), ("Sec-Fetch-Site", "same-origin")];
        service.exchange("POST", "/logout", &headers, "").expect("an answer");
        service.signal("TERM");
        assert!(service.wait().success());
        let read = |entry: std::io::Result<DirEntry>| {
            let entry = entry.expect("a file");
            let permissions = entry.metadata().expect("its metadata").permissions();
            (entry.file_name(), permissions, fs::read(entry.path()).expect("its content"))
        };
        let files = fs::read_dir(place.path()).expect("a data directory").map(read).collect();
        Self { files, made, browser }
    }

    fn copy(&self) -> (Place, &Value) {
        let place = Place::sqlite();
        for (name, permissions, content) in &self.files {
            let path = place.path().join(name);
            fs::write(&path, content).expect("a copy");
            fs::set_permissions(&path, permissions.clone()).expect("its mode");
        }
        (place, &self.made)
    }
}

/// The company Acme on its own service.
pub struct Office {
    pub service: Service,
    pub owner: Login,
    token: String,
    ingest_key: String,
    /// The cookie of a browser in which the owner has logged in before.
    known_browser: Option<String>,
    /// Its files, which are deleted with it.
    files: Files,
}

enum Files {
    Place(Place),
    #[expect(dead_code, reason = "it is kept until it is dropped")]
    Temporary(TempDir),
}

pub struct Login {
    pub email: String,
    pub password: String,
}

impl Office {
    pub fn open() -> Self {
        Self::open_with(&[])
    }

    /// With further options for the service.
    pub fn open_with(options: &[&str]) -> Self {
        let (place, made) = NEW_COMPANY.copy();
        let service = place.serve_with(options);
        Self::of(place, made, service)
    }

    /// At `localhost` instead of an IP address, because passkeys need a host name.
    pub fn open_by_name() -> Self {
        let (place, made) = NEW_COMPANY.copy();
        let service = place.start(&mut place.command(&["serve", "--listen", "localhost:0"]));
        Self::of(place, made, service)
    }

    fn of(place: Place, made: &Value, service: Service) -> Self {
        let word = |value: &Value| value.as_str().expect("a text").to_owned();
        let owner = Login { email: word(&made["owner"]["email"]), password: PASSWORD.to_owned() };
        let (token, ingest_key) = (word(&made["api_token"]), word(&made["ingest_key"]));
        let known_browser = Some(NEW_COMPANY.browser.clone());
        Self { service, owner, token, ingest_key, known_browser, files: Files::Place(place) }
    }

    /// An office whose webhooks may point at this receiver.
    pub fn open_for(receiver: &Receiver) -> Self {
        let authority = receiver.ca_file().to_str().expect("a path");
        Self::open_with(&["--extra-ca", authority, "--allow-destination", "127.0.0.0/8"])
    }

    /// The made-up company of `rapport demo`.
    pub fn demo() -> Self {
        let temporary = TempDir::new().expect("a directory");
        let (service, said) = program::demo(temporary.path());
        let printed = |label: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(label));
            line.unwrap_or_else(|| panic!("{label} is missing in:\n{said}")).trim().to_owned()
        };
        let owner = Login { email: printed("login"), password: printed("password") };
        let (token, ingest_key) = (printed("API token"), printed("ingest key"));
        Self { service, owner, token, ingest_key, known_browser: None, files: Files::Temporary(temporary) }
    }

    /// Creates another company on this service, and invites the same owner.
    pub fn second_company(&self, project: &str, name: &str, options: &[&str]) {
        let Files::Place(place) = &self.files else { panic!("the demo keeps its files to itself") };
        let create = ["company", "create", project, "--name", name, "--owner", &self.owner.email, "--json"];
        place.json(&[&create[..], options].concat());
    }

    /// Runs a command of the server's administrator, which must succeed.
    pub fn command_line(&self, arguments: &[&str]) {
        let Files::Place(place) = &self.files else { panic!("the demo keeps its files to itself") };
        let ended = place.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
    }

    /// Invites somebody, who accepts at once with this password; returns the member.
    pub fn employ(&self, email: &str, name: &str, role: &str, password: &str) -> Value {
        let invited =
            self.api("POST", "/api/invitations/", &json!({ "email": email, "name": name, "role": role }));
        let link = invited["link"].as_str().expect("a link, because this office has no mail");
        self.join(link, password)
    }

    /// Accepts the invitation of a link.
    pub fn join(&self, link: &str, password: &str) -> Value {
        let token = link.rsplit('/').next().expect("a token");
        let accept = json!({ "token": token, "password": password });
        self.api("POST", "/api/invitations/accept/", &accept)["member"].clone()
    }

    pub fn ingest_key(&self) -> &str {
        &self.ingest_key
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.service.address)
    }

    /// A browser in which the owner is logged in and sees the dashboard.
    pub async fn browser(&self) -> Browser {
        self.browser_as(Setup::default()).await
    }

    /// The same, operated this way.
    pub async fn browser_with(&self, hands: Hands) -> Browser {
        self.browser_at("/", hands).await
    }

    pub async fn browser_as(&self, setup: Setup) -> Browser {
        self.enter("/", setup).await
    }

    /// A browser in which the owner is logged in and sees this page first.
    pub async fn browser_at(&self, path: &str, hands: Hands) -> Browser {
        self.enter(path, Setup { hands, ..Setup::default() }).await
    }

    /// Logs the owner in without filling in the page, which has its own tests.
    async fn enter(&self, path: &str, setup: Setup) -> Browser {
        let browser = Browser::open_as(&self.base(), setup).await;
        let head = send_login(&self.service, &self.owner, self.known_browser.as_deref());
        browser.add_cookie("rapport", &cookie_in(&head, "rapport")).await;
        browser.go(path).await;
        browser
    }

    /// Makes every session's last proof of who is there an old one.
    pub fn age_proofs(&self) {
        let Files::Place(place) = &self.files else { panic!("the demo keeps its files to itself") };
        let database = Database::Sqlite(place.path().join("rapport.db"));
        raw::run(&database, "UPDATE session SET proved_at = 0");
    }

    /// A browser in which nobody is logged in.
    pub async fn stranger(&self, hands: Hands) -> Browser {
        Browser::open_as(&self.base(), Setup { hands, ..Setup::default() }).await
    }

    /// The status of a response of the API to a request with this header.
    pub fn status(&self, method: &str, path: &str, header: (&str, &str), body: &Value) -> u16 {
        let headers = [header, ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.request(method, path, &headers, &body).0
    }

    /// Sends a request to the API and returns its response.
    pub fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, "application/json", &body)
    }

    /// Uploads a file and returns its import.
    pub fn upload(&self, file: &str) -> Value {
        self.send("POST", "/api/imports/", "text/csv", file)
    }

    fn send(&self, method: &str, path: &str, media_type: &str, body: &str) -> Value {
        let authorization = format!("Bearer {}", self.token);
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X-Service-Ingest-Key", &self.ingest_key),
            ("Content-Type", media_type),
        ];
        let (status, answer) = self.request(method, path, &headers, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        if answer.is_empty() { Value::Null } else { serde_json::from_str(&answer).expect("JSON") }
    }

    /// "Busy" means that nothing was stored, so the request is repeated.
    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let since = Instant::now();
        loop {
            let (status, answer) = self.service.request(method, path, headers, body);
            let is_busy = status == 503 && answer.contains("urn:rapport:problem:busy");
            if !is_busy || since.elapsed() > PATIENCE {
                return (status, answer);
            }
        }
    }

    /// Upserts an account and returns it.
    pub fn account(&self, mut body: Value) -> Value {
        body["project"] = json!("acme");
        self.api("POST", "/api/accounts/upsert-by-imported-id/", &body)["account"].clone()
    }

    /// Creates a webhook for these events and returns its id.
    pub fn webhook(&self, url: &str, events: &[&str]) -> String {
        let made = self.api("POST", "/api/webhooks/", &json!({ "url": url, "events": events }));
        made["id"].as_str().expect("an id").to_owned()
    }

    pub fn ingest(&self, events: Value) {
        let answer = self.api("POST", "/api/pulse/ingest/", &json!({ "events": events }));
        assert_eq!(answer["accepted"], json!(events.as_array().map_or(0, Vec::len)), "{answer}");
    }
}

/// Sends the form of the login page; returns the head of the answer.
fn send_login(service: &Service, login: &Login, known_browser: Option<&str>) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("email", &login.email).append_pair("password", &login.password);
    let cookies = known_browser.map_or_else(|| "theme=light".to_owned(), |value| format!("browser={value}"));
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Cookie", cookies.as_str()),
    ];
    let form = form.finish();
    let log_in = || service.exchange("POST", "/login", &headers, &form).expect("an answer").0;
    // A service on a loaded machine may be busy, and says so.
    let head = (0..MOST_TRIES).map(|_| log_in()).find(|head| !head.starts_with("HTTP/1.1 503"));
    head.expect("an answer other than busy")
}

/// The value of a cookie that the head of an answer sets.
fn cookie_in(head: &str, name: &str) -> String {
    let prefix = format!("set-cookie: {name}=");
    let cookie = head.lines().find_map(|line| line.strip_prefix(&prefix));
    let value = cookie.and_then(|cookie| cookie.split(';').next());
    value.unwrap_or_else(|| panic!("nobody is logged in: {head}")).to_owned()
}

pub async fn log_in(browser: &Browser, login: &Login) {
    browser.go("/login").await;
    browser.fill("email", &login.email).await;
    browser.fill("password", &login.password).await;
    browser.click("Log in").await;
    browser.see("Dashboard").await;
}
