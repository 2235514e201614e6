//! A real identity provider on loopback: npm's oidc-provider over TLS. It can be told to misbehave (`oidc_server.mjs`
//! says how), and logs people in for tests that have no browser.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{COOKIE, HOST, HeaderMap, LOCATION, SET_COOKIE};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rapport_domain::time::Time;
use rustls::ClientConfig;
use rustls::pki_types::{IpAddr, ServerName};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::deadline::Deadline;
use crate::receiver::certificates::Authority;

const SERVER: &str = include_str!("oidc_server.mjs");
const INSTALL_HINT: &str = "oidc-provider is missing: run ./scripts/test, which fetches it";
/// A login takes four steps.
const MOST_STEPS: usize = 10;

/// A running provider with one client. Dropping it, or the end of this process, ends it.
#[derive(Debug)]
pub struct OidcProvider {
    directory: TempDir,
    process: Child,
    pub issuer: String,
    pub client_id: String,
    pub client_secret: String,
    started_at: Time,
}

impl OidcProvider {
    /// Starts it. Nobody can log in yet.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory for the provider");
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("a file");
        let files = Authority::shared().server_files(&["127.0.0.1"]);
        write("cert.pem", &files.certificate);
        write("key.pem", &files.key);
        write("authority.pem", &Authority::shared().pem);
        write("server.mjs", SERVER);
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/oidc");
        let modules = modules.canonicalize().unwrap_or_else(|error| panic!("{INSTALL_HINT}: {error}"));
        let mut process = Command::new("node")
            .arg(directory.path().join("server.mjs"))
            .args([&modules, directory.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It warns about settings that are intended.
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("node does not start: {error}"));
        let _deadline = Deadline::of(process.id());
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("reading its output");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{INSTALL_HINT}: {line}"));
        let text = |name: &str| said[name].as_str().expect("a text").to_owned();
        Self {
            started_at: Time::from_micros(said["now"].as_i64().expect("a time") * 1_000),
            issuer: text("issuer"),
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            directory,
            process,
        }
    }

    /// Tells it who its people are and what to do wrong, from the next request on.
    pub fn order(&self, orders: &Value) {
        let (path, part) = (self.path("orders.json"), self.path("orders.part"));
        fs::write(&part, orders.to_string())
            .and_then(|()| fs::rename(&part, &path))
            .expect("telling the provider");
    }

    /// The real time when it started. Its tokens are dated, so the clock of a test begins here.
    pub fn started_at(&self) -> Time {
        self.started_at
    }

    /// The certificate to trust, as PEM text.
    pub fn ca_pem(&self) -> &str {
        &Authority::shared().pem
    }

    /// The certificate to trust, as a file that lives as long as the provider.
    pub fn ca_file(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// The requests that arrived, such as `POST /token`.
    pub fn requests(&self) -> Vec<String> {
        let lines = fs::read_to_string(self.path("requests.jsonl")).unwrap_or_default();
        let said = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        said.map(|request| format!("{} {}", word(&request["method"]), word(&request["path"]))).collect()
    }

    /// Does what a browser does with the address of a login page, until it leads away from the provider. The orders must
    /// say who logs in (`silent`). Returns the address that it leads to.
    pub async fn log_in(&self, page: &str) -> String {
        let (mut at, mut cookies) = (page.to_owned(), BTreeMap::new());
        for _ in 0..MOST_STEPS {
            let Some(path) = at.strip_prefix(&self.issuer) else { return at };
            let response = self.get(path, &cookies).await;
            cookies.extend(set_cookies(response.headers()));
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let location = location.unwrap_or_else(|| panic!("{at} is answered {}", response.status()));
            at = if location.starts_with('/') {
                format!("{}{location}", self.issuer)
            } else {
                location.to_owned()
            };
        }
        panic!("the provider leads in circles: {at}")
    }

    async fn get(&self, path: &str, cookies: &BTreeMap<String, String>) -> Response<Incoming> {
        let host = self.issuer.trim_start_matches("https://");
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(Authority::shared().roots())
            .with_no_client_auth();
        let stream = TcpStream::connect(host).await.expect("a connection to the provider");
        let name = ServerName::IpAddress(IpAddr::try_from("127.0.0.1").expect("an address"));
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("TLS");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let cookies =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let request =
            Request::get(path).header(HOST, host).header(COOKIE, cookies).body(Empty::<Bytes>::new());
        sender.send_request(request.expect("a request")).await.expect("an answer of the provider")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Somebody whom the provider knows, with a verified address.
pub fn person(email: &str, name: &str) -> Value {
    json!({ "email": email, "email_verified": true, "name": name })
}

fn set_cookies(headers: &HeaderMap) -> Vec<(String, String)> {
    let lines = headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = lines.filter_map(|line| line.split(';').next()?.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
