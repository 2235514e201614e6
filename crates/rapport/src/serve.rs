//! `rapport serve`: assembles the parts, runs them, and stops them in order.

use std::io::Write as _;
use std::net::SocketAddr;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use metrics_exporter_prometheus::PrometheusHandle;
use rapport_app::{App, Parts, password};
use rapport_jobs::Mailer;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{OsRandom, SystemClock};
use crate::commands::explained;
use crate::config::Config;
use crate::data_dir::{self, Locks};
use crate::file_limit::{self, Needs};
use crate::listener::Reserved;
use crate::option_value::BaseUrl;
use crate::outbound::Outbound;
use crate::secret_key::SecretKey;
use crate::sending::Reach;
use crate::stop::{Signals, Stop};
use crate::tls::Certificate;
use crate::{
    background, backups, database, key_agreement, mailing, sending, telemetry, unknown_variables, welcome,
};

/// Sockets and parsing need no more than this; the database has its own threads.
const MOST_WORKER_THREADS: usize = 4;
/// Measured from the signal: requests in progress end within the first limit, background work within
/// the second, and the database is closed within the third.
const HTTP_LIMIT: Duration = Duration::from_secs(5);
const BACKGROUND_LIMIT: Duration = Duration::from_secs(7);
const STOP_LIMIT: Duration = Duration::from_millis(9_500);
/// Behind a proxy: long enough for it to notice and to close the connections that it keeps, within `HTTP_LIMIT`.
const DRAIN: rapport_web::Drain =
    rapport_web::Drain { accepting: Duration::from_secs(1), idle: Duration::from_millis(4_500) };

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    telemetry::log_of_service(config);
    unknown_variables::warn();
    run_in(runtime()?, config, None)
}

/// Runs the service in an existing runtime, on an address that is reserved already if there is one.
pub fn run_in(runtime: Runtime, config: &Config, reserved: Option<Reserved>) -> anyhow::Result<ExitCode> {
    let stop = Stop::default();
    let signals = runtime.block_on(async { Signals::catch() }).context("failed to catch signals")?;
    runtime.spawn(signals.guard(stop.clone()));
    file_limit::raise(Needs::of(config));
    data_dir::prepare(config)?;
    let locks = Locks::take(config)?;
    let random = Arc::new(OsRandom::new());
    let secret_key = SecretKey::load(config, random.as_ref())?;
    let outbound = Outbound::load(config)?;
    let certificate = Certificate::load(config)?;
    let mailer = mailing::mailer(config, &outbound)?;
    let reserved = match reserved {
        Some(reserved) => reserved,
        None => bind(config)?,
    };
    let listening = reserved.address()?;
    let base_url = base_url(config, listening);
    let reach = Reach::new(&outbound);
    let metrics = telemetry::start_metrics()?;
    let parts = Parts {
        destinations: Arc::clone(&reach.guard) as _,
        home_pages: Arc::new(reach.lookup()),
        providers: Arc::new(reach.sso()),
        outside: mailing::outside(config, &base_url),
        mail_route: mailing::route(config),
        trusted_relay: config.trusted_mail_relay.value.relay().cloned(),
        ..Parts::new(Arc::new(SystemClock::new()), random, secret_key.vault())
    };
    // Outside the runtime, because the PostgreSQL client is synchronous.
    let app = database::open(config, &config.store(), parts)?;
    let key_fingerprint = key_agreement::agree(config, &app, &secret_key)?;
    let setup = password::generate(app.services()).replace('-', "");
    let identity = locks.identity().map(str::to_owned);
    let setup = setup.into();
    let service = Service {
        config,
        app,
        listening,
        base_url,
        outbound,
        mailer,
        key_fingerprint,
        metrics,
        setup,
        identity,
    };
    let ended = runtime.block_on(service.run(reserved, reach, certificate, &stop));
    // Anything that did not end in time must not hold up the process.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

pub fn runtime() -> anyhow::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built =
        builder.worker_threads(cores.min(MOST_WORKER_THREADS)).thread_name("http").enable_all().build();
    built.context("failed to start the service's threads")
}

pub fn bind(config: &Config) -> anyhow::Result<Reserved> {
    Reserved::new(&config.listen.value)
}

/// The configured URL, or else the real listening address, which is only known now if the port is 0.
fn base_url(config: &Config, listening: SocketAddr) -> BaseUrl {
    let configured = &config.base_url;
    if !configured.is_default() {
        return configured.value.clone();
    }
    config.listen.value.base_url_at(listening).over_tls(config.tls_files().is_some())
}

struct Service<'a> {
    config: &'a Config,
    app: App,
    listening: SocketAddr,
    base_url: BaseUrl,
    outbound: Outbound,
    mailer: Option<Arc<Mailer>>,
    key_fingerprint: String,
    metrics: PrometheusHandle,
    /// The secret in the link that creates the first company.
    setup: Arc<str>,
    /// Names the place that is this process's own, as the lock on the data directory proves.
    identity: Option<String>,
}

impl Service<'_> {
    async fn run(
        self,
        reserved: Reserved,
        reach: Reach,
        certificate: Option<Arc<Certificate>>,
        stop: &Stop,
    ) -> anyhow::Result<()> {
        let (stop_http, stop_background) = (stop.asked.clone(), CancellationToken::new());
        let tasks = TaskTracker::new();
        background::start(&self.app, self.metrics.clone(), &tasks, &stop_background);
        let identity = self.identity.clone();
        let sending = sending::start(&self.app, self.config, reach, identity, &tasks, &stop_background);
        sending.await.map_err(explained).context("failed to start the webhook sender")?;
        mailing::start(&self.app, self.mailer.clone(), &tasks, &stop_background);
        backups::start(&self.app, self.config, &tasks, &stop_background);
        let tls = certificate.as_ref().map(Certificate::server_config).transpose()?;
        if let Some(certificate) = certificate {
            tasks.spawn(certificate.watch(stop_background.clone()));
        }
        stop.serving();
        let listener = reserved.open()?;
        let mut http = tokio::spawn(self.http(listener, tls, stop_http.clone()));
        self.say_hello().await;

        tokio::select! {
            biased;
            () = stop_http.cancelled() => {}
            _ = &mut http => bail!("the HTTP server stopped unexpectedly"),
        }
        let asked_at = Instant::now();
        http.await.context("the HTTP server panicked")?;
        stop_background.cancel();
        tasks.close();
        if timeout_at(asked_at + BACKGROUND_LIMIT, tasks.wait()).await.is_err() {
            tracing::warn!("background work did not end in time");
        }
        if !close_store(self.app, asked_at + STOP_LIMIT).await? {
            bail!("the database did not close in time: it is not answering");
        }
        stop.finished.cancel();
        tracing::info!("stopped");
        Ok(())
    }

    fn http(
        &self,
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + 'static {
        let (app, figures) = (self.app.clone(), self.metrics.clone());
        let proxies: Vec<_> = self.config.trusted_proxy.value.iter().map(|network| network.0).collect();
        let per_second = self.config.rate_limit.value;
        let config = rapport_web::Config {
            per_credential: rapport_web::Rate { per_second, burst: per_second },
            max_import_bytes: u64::from(self.config.import_max_mb.value) << 20,
            shutdown_timeout: HTTP_LIMIT,
            drain: if proxies.is_empty() { rapport_web::Drain::default() } else { DRAIN },
            stopping: stop.clone(),
            trusted_proxies: rapport_web::TrustedProxies::new(proxies),
            tls,
            metrics: Some(Arc::new(move || telemetry::render(&figures, &app))),
            setup: Some(Arc::clone(&self.setup)),
            access_log: self.config.access_log.value,
            ..rapport_web::Config::default()
        };
        let router = rapport_web::router(self.app.clone(), &config);
        async move { rapport_web::serve(listener, router, &config, stop).await }
    }

    async fn say_hello(&self) {
        let (listening, base_url) = (self.listening, &self.base_url);
        let companies = self.app.read_across(rapport_store::company::list).await;
        let is_empty = companies.is_ok_and(|companies| companies.is_empty());
        let program = std::env::args().next().unwrap_or_else(|| "rapport".to_owned());
        let setup = is_empty.then(|| format!("{}/setup/{}", base_url.as_str(), self.setup));
        let text = welcome::text(self.config, &program, base_url.as_str(), listening, setup.as_deref());
        // It is fine if nobody reads this.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            %listening,
            base_url = base_url.as_str(),
            database = %self.config.database.value,
            secret_key = self.key_fingerprint,
            allowed_destinations = self.config.allow_destination.value.len(),
            extra_authorities = self.outbound.authorities.len(),
            mail = self.mailer.is_some(),
            tls = self.config.tls_files().is_some(),
            trusted_proxies = self.config.trusted_proxy.value.len(),
            "serving"
        );
    }
}

/// Closes the store, and returns whether it was closed by the deadline.
async fn close_store(app: App, deadline: Instant) -> anyhow::Result<bool> {
    let limit = deadline.saturating_duration_since(Instant::now());
    let closing = tokio::task::spawn_blocking(move || app.store().close_within(limit));
    closing.await.context("closing the database panicked")
}
