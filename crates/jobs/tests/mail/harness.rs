//! Shared by these tests: the application, a real mail server, and nodes that send.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rapport_app::{Outside, Parts};
use rapport_domain::id::PersonId;
use rapport_domain::mail::State;
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use rapport_jobs::{MailServer as Configured, Mailer, Security};
use rapport_store::mail::Mail;
use rapport_testkit::{Engine, MailSecurity, MailServer, ReceivedMail, TestApp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub const FROM: &str = "Rapport <rapport@crm.acme.test>";
pub const BASE_URL: &str = "https://crm.acme.test";
pub const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Polls until there is a result.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(since.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(POLL_EVERY);
    }
}

/// A server as an operator would configure it.
pub fn configured(server: &MailServer) -> Configured {
    let security = match server.security() {
        MailSecurity::Tls => Security::Tls,
        MailSecurity::StartTls => Security::StartTls,
        MailSecurity::Plain => Security::Plain,
    };
    Configured { host: server.host(), port: server.port(), security, login: server.login() }
}

pub fn trusted(server: &MailServer) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).expect("a certificate")
}

pub fn mailer(server: &MailServer) -> Arc<Mailer> {
    let mailer = Mailer::new(&configured(server), FROM, &[trusted(server)]);
    Arc::new(mailer.expect("a mailer"))
}

/// The application, a mail server, and as many nodes as a test starts.
pub struct Mailing {
    pub server: MailServer,
    /// Declared last, because dropping it deletes its files.
    pub test: TestApp,
}

impl Mailing {
    pub fn on(engine: Engine, security: MailSecurity) -> Self {
        eprintln!("on {engine} by {security:?}");
        let test = TestApp::with(engine, with_mail);
        Self { server: MailServer::start(security), test }
    }

    /// Checks a rule on both engines, one with STARTTLS, the other with TLS from the start.
    pub fn on_both(rule: impl Fn(&mut Self)) {
        rule(&mut Self::on(Engine::Sqlite, MailSecurity::StartTls));
        rule(&mut Self::on(Engine::Postgres, MailSecurity::Tls));
    }

    /// Starts another process that sends mail and creates digests.
    pub fn node(&self) -> Node {
        Node::start(&self.test, &self.server)
    }

    pub fn at(&self, time: &str) {
        self.test.clock().set(Time::parse(time).expect("a time"));
    }

    pub fn member(&self, email: &str, role: Role) -> PersonId {
        self.test.employ(email, "A Person", role).person
    }

    /// The company's mails, oldest first.
    pub fn mails(&self) -> Vec<Mail> {
        let page = self.test.read(|snapshot| rapport_store::mail::list(snapshot, None, 1000));
        page.items.into_iter().rev().collect()
    }

    /// Waits until this many mails have the state.
    #[track_caller]
    pub fn wait_for_state(&self, state: State, count: usize) -> Vec<Mail> {
        eventually(&format!("{count} mails {}", state.as_str()), || {
            let mails: Vec<Mail> = self.mails().into_iter().filter(|mail| mail.state == state).collect();
            (mails.len() >= count).then_some(mails)
        })
    }

    /// Waits until the first mail has this many attempts.
    #[track_caller]
    pub fn wait_for_failure(&self, attempts: i64) -> Mail {
        eventually(&format!("attempt {attempts} to fail"), || {
            let mail = self.mails().into_iter().next()?;
            (mail.attempts == attempts && mail.error.is_some()).then_some(mail)
        })
    }

    #[track_caller]
    pub fn received(&self, count: usize) -> Vec<ReceivedMail> {
        self.server.wait_for(count, PATIENCE)
    }
}

fn with_mail(parts: &mut Parts) {
    parts.outside = Outside { base_url: BASE_URL.to_owned(), mail_configured: true };
}

/// A sending process.
pub struct Node {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Node {
    fn start(test: &TestApp, server: &MailServer) -> Self {
        let app = test.another_node();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let mailer = Some(mailer(server));
        tasks.spawn_on(
            rapport_jobs::mail::run(app.clone(), mailer, stop.clone(), LOOK_EVERY),
            runtime.handle(),
        );
        tasks.spawn_on(rapport_jobs::digest::run(app, stop.clone(), LOOK_EVERY), runtime.handle());
        Self { runtime: Some(runtime), stop, tasks }
    }

    /// Stops cleanly: mails in progress are finished.
    pub fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        let runtime = self.runtime.as_ref().expect("a runtime");
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.tasks.wait()).await });
        ended.expect("the node did not stop");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(PATIENCE);
        }
    }
}
