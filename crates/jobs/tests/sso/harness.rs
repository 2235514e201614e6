//! A company whose people log in at a real provider.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rapport_app::sso::domain::ClaimDomain;
use rapport_app::sso::login::{NotIn, Returned, SignedIn, Started, finish, start, start_proof};
use rapport_app::sso::settings::{PutSso, test};
use rapport_app::{Access, Outside};
use rapport_domain::audit::{Action, Filter};
use rapport_domain::credential::Presented;
use rapport_domain::destination::AddressPolicy;
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::member::Member;
use rapport_domain::sso::entry::Reason;
use rapport_domain::sso::{Change, callback_path};
use rapport_jobs::client::tls_config;
use rapport_jobs::guard::{BoxFuture, ResolveError, Resolver};
use rapport_jobs::{Guard, SingleSignOn};
use rapport_store::{audit, member};
use rapport_testkit::{Engine, OidcProvider, TestApp, TestClock};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;

const BASE_URL: &str = "https://crm.acme.test";
const PATIENCE: Duration = Duration::from_mins(1);

/// Names of tests, of which one is private.
struct Names;

impl Resolver for Names {
    fn resolve(&self, host: String) -> BoxFuture<'static, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(async move {
            let address = if host.starts_with("private.") { "10.0.0.1" } else { "127.0.0.1" };
            Ok(vec![address.parse().expect("an address")])
        })
    }
}

/// Talks to this provider, and dials nothing else that isn't public.
pub fn sso(provider: &OidcProvider, allowed: &[&str]) -> SingleSignOn {
    let authority = CertificateDer::from_pem_slice(provider.ca_pem().as_bytes()).expect("a certificate");
    let allowed = allowed.iter().map(|network| network.parse().expect("a network")).collect();
    let guard = Guard::new(AddressPolicy { allowed }, Arc::new(Names));
    SingleSignOn::new(Arc::new(guard), tls_config(&[authority]), TaskTracker::new()).within(PATIENCE)
}

/// Acme, its provider, and the orders of the provider that every login needs.
pub struct Scene {
    pub app: TestApp,
    pub provider: Arc<OidcProvider>,
    orders: Map<String, Value>,
}

impl Scene {
    /// Ana of Acme logs in unless the orders say otherwise.
    pub fn on(engine: Engine, provider: &Arc<OidcProvider>) -> Self {
        eprintln!("on {engine}");
        let reach = Arc::new(sso(provider, &["127.0.0.0/8"]));
        let clock = TestClock::at(provider.started_at());
        let app = TestApp::with_clock_and(engine, clock, move |parts| {
            parts.providers = Arc::clone(&reach) as _;
            parts.outside = Outside { base_url: BASE_URL.to_owned(), mail_configured: false };
        });
        let redirect = format!("{BASE_URL}{}", callback_path("acme"));
        let people = json!({
            "ana": {"email": "ana@acme.test", "email_verified": true, "name": "Ana Ruiz"},
            "eve": {"email": "eve@evil.test", "email_verified": true},
        });
        let orders = json!({ "people": people, "silent": "ana", "redirects": [redirect] });
        let orders = orders.as_object().expect("an object").clone();
        let scene = Self { app, provider: Arc::clone(provider), orders };
        let claim = ClaimDomain(EmailDomain::parse("acme.test").expect("a domain"));
        scene.app.write_as(&Access::CommandLine(scene.app.id()), claim).expect("claimed");
        scene.set_up(json!({}));
        scene.order(json!({}));
        scene
    }

    /// Turns single sign-on on, with changes to the usual settings.
    pub fn set_up(&self, changes: Value) {
        let OidcProvider { issuer, client_id, client_secret, .. } = &*self.provider;
        let mut body = json!({
            "mode": "optional", "issuer": issuer, "client_id": client_id, "client_secret": client_secret,
            "domains": ["acme.test"],
        });
        body.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        let change = Change::parse(body.as_object().expect("an object")).expect("settings");
        self.app.write(PutSso(change)).expect("saved");
    }

    /// Has the provider misbehave from now on.
    pub fn order(&self, more: Value) {
        let mut orders = self.orders.clone();
        orders.extend(more.as_object().expect("an object").clone());
        self.provider.order(&Value::Object(orders));
    }

    pub async fn start(&self) -> Result<Started, Reason> {
        start(self.app.app(), "acme", "/clients", None).await.map_err(reason)
    }

    /// Goes to the provider and comes back; returns the query that the browser brings.
    pub async fn visit(&self, started: &Started) -> Vec<(String, String)> {
        let back = self.provider.log_in(&started.url).await;
        let (path, query) = back.split_once('?').expect("an answer");
        assert_eq!(path, format!("{BASE_URL}{}", callback_path("acme")));
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }

    /// Hands in what a browser with this cookie brings back.
    pub async fn finish(&self, cookie: &str, query: &[(String, String)]) -> Result<SignedIn, Reason> {
        self.finish_in(None, cookie, query).await
    }

    /// The same in a browser that has a session.
    pub async fn finish_in(
        &self,
        session: Option<Presented>,
        cookie: &str,
        query: &[(String, String)],
    ) -> Result<SignedIn, Reason> {
        let value =
            |name: &str| query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
        let returned = Returned {
            cookie: Some(cookie),
            state: value("state"),
            code: value("code"),
            error: value("error"),
            issuer: value("iss"),
            browser: None,
            session,
        };
        finish(self.app.app(), "acme", returned, None).await.map_err(reason)
    }

    /// Lets the provider ask the person of a session again.
    pub async fn start_proof(&self, session: Presented) -> Result<Started, Reason> {
        start_proof(self.app.app(), session, "/clients", None).await.map_err(reason)
    }

    /// A whole login.
    pub async fn log_in(&self) -> Result<SignedIn, Reason> {
        let started = self.start().await?;
        let query = self.visit(&started).await;
        self.finish(&started.cookie, &query).await
    }

    /// What the connection test says.
    pub async fn test(&self) -> Option<String> {
        let tested = test(self.app.app(), self.app.token()).await.expect("an owner's token");
        tested.err().map(|error| error.to_string())
    }

    pub fn members(&self) -> Vec<Member> {
        self.app.read(member::list)
    }

    /// The reasons of refused logins in the audit log, newest first.
    pub fn reasons(&self) -> Vec<String> {
        let log = self.app.read(|snapshot| audit::list(snapshot, &Filter::default(), None, 200)).items;
        let failed = log.into_iter().filter(|entry| entry.action == Action::SessionFailed.as_str());
        let detail = failed.map(|entry| serde_json::from_str::<Value>(&entry.detail).expect("JSON"));
        detail.map(|detail| detail["reason"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

fn reason(not_in: NotIn) -> Reason {
    match not_in {
        NotIn::Refused(reason) => reason,
        NotIn::Failed(error) => panic!("{error:?}"),
    }
}

/// Checks a rule on both engines with one provider.
pub async fn on_both(rule: impl AsyncFn(&Scene)) {
    let provider = Arc::new(OidcProvider::start());
    for engine in Engine::BOTH {
        rule(&Scene::on(engine, &provider)).await;
    }
}
