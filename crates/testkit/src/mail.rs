//! A real mail server on loopback: Debian's python3-aiosmtpd, with TLS and AUTH. It records what it accepts, and parses
//! messages with Python's own parser. It can be stopped, started again on its port, and told to refuse.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::deadline::Deadline;

const SERVER: &str = include_str!("mail_server.py");
/// Debian's own Python, which has the package; another one on the PATH may not.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];
const INSTALL_HINT: &str = "install Debian's python3-aiosmtpd, or run ./scripts/test, which does";
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The login that the server asks for, unless it is plain.
pub const USER: &str = "rapport";
pub const PASSWORD: &str = "p:ss/w@rd%";

/// How connections to it are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSecurity {
    Tls,
    StartTls,
    Plain,
}

impl MailSecurity {
    const fn word(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::StartTls => "starttls",
            Self::Plain => "plain",
        }
    }
}

/// A message that the server has accepted.
#[derive(Debug, Clone)]
pub struct ReceivedMail {
    pub from: String,
    pub to: Vec<String>,
    pub authenticated: bool,
    pub encrypted: bool,
    /// Decoded, in order.
    pub headers: Vec<(String, String)>,
    pub content_type: String,
    pub plain: String,
    pub html: String,
    /// As it came over the wire.
    pub raw: String,
}

impl ReceivedMail {
    /// The value of a header that occurs exactly once.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) => value,
            (first, _) => {
                panic!("the header {name} occurs {} times", if first.is_some() { "many" } else { "no" })
            }
        }
    }

    fn read(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).expect("a line of JSON");
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
        };
        let header = |pair: &Value| {
            let mut pair = list(pair).into_iter();
            (pair.next().unwrap_or_default(), pair.next().unwrap_or_default())
        };
        Self {
            from: text("from"),
            to: list(&value["to"]),
            authenticated: value["authenticated"] == Value::Bool(true),
            encrypted: value["encrypted"] == Value::Bool(true),
            headers: value["headers"].as_array().into_iter().flatten().map(header).collect(),
            content_type: text("type"),
            plain: text("plain"),
            html: text("html"),
            raw: text("raw"),
        }
    }
}

/// A running server. Dropping it, or the end of this process, ends it.
#[derive(Debug)]
pub struct MailServer {
    security: MailSecurity,
    directory: TempDir,
    authority_pem: String,
    port: u16,
    process: Option<Child>,
}

impl MailServer {
    pub fn start(security: MailSecurity) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the mail server");
        fs::write(directory.path().join("server.py"), SERVER).expect("writing the mail server");
        let authority_pem = certify(&directory);
        let mut server = Self { security, directory, authority_pem, port: 0, process: None };
        server.start_again();
        server
    }

    /// Starts it after [`stop`](Self::stop), on the same port.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the mail server is running");
        let python = PYTHONS.into_iter().find(|python| has_aiosmtpd(python));
        let python = python.unwrap_or_else(|| panic!("no Python here has aiosmtpd: {INSTALL_HINT}"));
        let mut process = Command::new(python)
            .arg(self.path("server.py"))
            .args([self.security.word(), &self.port.to_string()])
            .arg(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It warns about settings that are intended.
            .stderr(Stdio::null())
            .spawn()
            .expect("starting the mail server");
        let _deadline = Deadline::of(process.id());
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("reading its output");
        self.port = line.trim().parse().expect("the mail server says its port");
        self.process = Some(process);
    }

    /// Stops it; connections are refused from now on.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub fn host(&self) -> String {
        Ipv4Addr::LOCALHOST.to_string()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn security(&self) -> MailSecurity {
        self.security
    }

    /// User and password, if it asks for them.
    pub fn login(&self) -> Option<(String, String)> {
        (self.security != MailSecurity::Plain).then(|| (USER.to_owned(), PASSWORD.to_owned()))
    }

    /// The certificate to trust, as PEM text.
    pub fn ca_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The certificate to trust, as a file that lives as long as the server.
    pub fn ca_file(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// The answer to every recipient from now on, such as `550 no such mailbox`; `None` accepts.
    pub fn refuse(&self, answer: Option<&str>) {
        fs::write(self.path("refuse.txt"), answer.unwrap_or_default()).expect("telling the mail server");
    }

    /// Everything it has accepted, in order.
    pub fn received(&self) -> Vec<ReceivedMail> {
        let lines = fs::read_to_string(self.path("messages.jsonl")).unwrap_or_default();
        // The last line may be half written.
        lines.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(ReceivedMail::read).collect()
    }

    /// Waits until it has accepted at least `count`.
    #[track_caller]
    pub fn wait_for(&self, count: usize, timeout: Duration) -> Vec<ReceivedMail> {
        let since = Instant::now();
        loop {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            assert!(
                since.elapsed() < timeout,
                "{} of {count} mails arrived within {timeout:?}",
                received.len()
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn has_aiosmtpd(python: &str) -> bool {
    let tried = Command::new(python)
        .args(["-c", "import aiosmtpd"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// Writes a certificate for loopback, and the authority that signed it.
fn certify(directory: &TempDir) -> String {
    let authority_key = KeyPair::generate().expect("a key for the authority");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Rapport test mail authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = params.self_signed(&authority_key).expect("the authority's certificate");
    let issuer = rcgen::Issuer::new(params, authority_key);
    let key = KeyPair::generate().expect("a key for the mail server");
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut params = CertificateParams::new(names).expect("valid names");
    params.distinguished_name.push(DnType::CommonName, "Rapport test mail server");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer).expect("the mail server's certificate");
    let write =
        |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("writing a certificate");
    write("cert.pem", &certificate.pem());
    write("key.pem", &key.serialize_pem());
    write("authority.pem", &authority.pem());
    authority.pem()
}
