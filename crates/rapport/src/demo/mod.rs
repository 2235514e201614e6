//! `rapport demo`: the service on a temporary database with two years of a made-up company, and a local receiver
//! that its webhooks really reach.
//!
//! The past is created by the same commands that serve requests, on its own clock. Nothing bypasses them, so what
//! the demo shows is what the service does.

mod chance;
mod deliveries;
mod lives;
mod past;
mod story;
mod unhurried;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rapport_app::{Clock as _, Parts};
use rapport_store::Database;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cli::Demo;
use crate::clock::{OsRandom, SystemClock};
use crate::commands::print;
use crate::config::{Config, Origin, Setting};
use crate::listen::Beside;
use crate::mail_option::{MailFrom, SmtpUrl, TrustedRelay};
use crate::option_value::{BaseUrl, DatabaseAddress};
use crate::outbound::Outbound;
use crate::secret_key::SecretKey;
use crate::stop::Signals;
use crate::{data_dir, database, mailing, serve};

use past::{Credentials, PastClock};

const UNHURRIED: Duration = Duration::from_hours(1);

pub fn run(config: &Config, demo: &Demo) -> anyhow::Result<ExitCode> {
    refuse_real_data(config)?;
    let home = Home::make(demo.keep.as_deref())?;
    let ended = show(config, &home);
    home.leave()?;
    ended
}

/// People who name their own data would expect the demo to use it, and it never should.
fn refuse_real_data(config: &Config) -> anyhow::Result<()> {
    for (flag, origin) in [("--database", &config.database.origin), ("--data-dir", &config.data_dir.origin)] {
        if *origin == Origin::CommandLine {
            bail!(
                "the demo uses its own temporary database: leave out {flag}, or choose a directory with --keep"
            );
        }
    }
    Ok(())
}

/// The demo's data directory.
enum Home {
    ThrownAway(TempDir),
    Kept(PathBuf),
}

impl Home {
    fn make(keep: Option<&Path>) -> anyhow::Result<Self> {
        let Some(keep) = keep else {
            let made = tempfile::Builder::new().prefix("rapport-demo-").tempdir();
            return Ok(Self::ThrownAway(made.context("failed to create a temporary directory")?));
        };
        let is_used = fs::read_dir(keep).is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            bail!("{} is not empty (--keep)", keep.display());
        }
        Ok(Self::Kept(std::path::absolute(keep)?))
    }

    fn path(&self) -> &Path {
        match self {
            Self::ThrownAway(directory) => directory.path(),
            Self::Kept(path) => path,
        }
    }

    fn leave(self) -> anyhow::Result<()> {
        match self {
            Self::ThrownAway(directory) => directory.close().context("failed to remove the demo's directory"),
            Self::Kept(_) => Ok(()),
        }
    }
}

fn show(given: &Config, home: &Home) -> anyhow::Result<ExitCode> {
    let runtime = serve::runtime()?;
    let mut config = own_config(given, home.path());
    data_dir::prepare(&config)?;
    // Bound first, because the past already refers to both addresses.
    let reserved = serve::bind(&config)?;
    let receiver = Beside::bind(&home.path().join("listen"))?;
    config.extra_ca.value = vec![receiver.ca_file.clone()];
    let address = reserved.address()?;
    let stop = CancellationToken::new();
    let signals = runtime.block_on(async { Signals::catch() }).context("failed to catch signals")?;
    let finished = CancellationToken::new();
    runtime.spawn(signals.watch(stop.clone(), finished.clone()));
    print(&format!("Creating two years of data for {} …\n", story::COMPANY))?;
    let is_kept = matches!(home, Home::Kept(_));
    let made = runtime.block_on(make_past(&config, address, &receiver, is_kept, &stop))?;
    let Some(credentials) = made else {
        return Ok(ExitCode::SUCCESS);
    };
    print(&welcome(&BaseUrl::of_listener(address), &credentials, home))?;
    receiver.start(credentials.webhook_secrets).context("failed to start the local receiver")?;
    // From here on the service itself handles signals.
    finished.cancel();
    if stop.is_cancelled() {
        return Ok(ExitCode::SUCCESS);
    }
    serve::run_in(runtime, &config, Some(reserved))
}

/// The given configuration, without anything that would reach or touch something real.
fn own_config(given: &Config, home: &Path) -> Config {
    let mut config = given.clone();
    config.file = None;
    to_default(&mut config.data_dir, home.to_owned());
    to_default(&mut config.database, DatabaseAddress(Database::Sqlite(home.join("rapport.db"))));
    to_default(&mut config.secret_key_file, home.join("secret.key"));
    to_default(&mut config.base_url, given.listen.value.base_url());
    to_default(&mut config.tls_cert, PathBuf::new());
    to_default(&mut config.tls_key, PathBuf::new());
    to_default(&mut config.smtp_url, SmtpUrl::default());
    to_default(&mut config.mail_from, MailFrom::default());
    to_default(&mut config.trusted_mail_relay, TrustedRelay::default());
    let loopback = "127.0.0.1/32".parse().expect("a network");
    to_default(&mut config.allow_destination, vec![loopback]);
    to_default(&mut config.allow_lookup, Vec::new());
    to_default(&mut config.allow_sso, Vec::new());
    config
}

fn to_default<T>(setting: &mut Setting<T>, value: T) {
    setting.value = value;
    setting.origin = Origin::Default;
}

async fn make_past(
    config: &Config,
    address: SocketAddr,
    receiver: &Beside,
    is_kept: bool,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Credentials>> {
    let random = Arc::new(OsRandom::new());
    let secret_key = SecretKey::load(config, random.as_ref())?.save()?;
    let now = SystemClock::new().now();
    let clock = PastClock::at(now.plus_days(-story::DAYS - 1));
    // Temporary data does not need a sync for each of several thousand commits. On a busy machine it takes longer to
    // make up, but nobody waits for a part of it.
    let store = rapport_store::Config { durable: is_kept, max_wait: UNHURRIED, ..config.store() };
    let parts = Parts {
        destinations: Arc::new(Outbound::load(config)?.guard()),
        outside: mailing::outside(config, &BaseUrl::of_listener(address)),
        ..Parts::new(Arc::new(clock.clone()), random, secret_key.vault())
    };
    let app = database::open_alone(config, &store, parts)?;
    let made = past::replay(&app, &clock, now, &receiver.url()?, stop).await;
    // The service reopens it with the real clock.
    tokio::task::spawn_blocking(move || app.store().close())
        .await
        .context("closing the database panicked")?;
    made
}

fn welcome(base_url: &BaseUrl, credentials: &Credentials, home: &Home) -> String {
    let base_url = base_url.as_str();
    let Credentials { password, api_token, ingest_key, .. } = credentials;
    let (address, project) = (story::OWNER.0, story::PROJECT);
    let fate = match home {
        Home::ThrownAway(directory) => {
            format!(
                "Everything is in {} and is deleted when the demo stops (Ctrl-C).",
                directory.path().display()
            )
        }
        Home::Kept(path) => {
            format!("Everything stays in {0}. To continue, run rapport serve --data-dir {0}", path.display())
        }
    };
    format!(
        "\n\
         address     {base_url}\n\
         login       {address}\n\
         password    {password}\n\
         project     {project}\n\
         API token   {api_token}\n\
         ingest key  {ingest_key}\n\n\
         Things to try, in another terminal:\n\n\
         # list the clients that are most overdue for contact\n\
         curl -s '{base_url}/api/clients/?tab=overdue&limit=5' -H 'Authorization: Bearer {api_token}'\n\n\
         # move an account, and see the signed webhook arrive below\n\
         curl -s {base_url}/api/accounts/upsert-by-imported-id/ -H 'Authorization: Bearer {api_token}' \\\n  \
         -H 'Content-Type: application/json' \\\n  \
         -d '{{\"project\": \"{project}\", \"imported_id\": \"crm-new\", \"name\": \"Nordlys Bank\", \"status\": \"contacted\"}}'\n\n\
         # report activity in your product: the account starts a trial\n\
         curl -s {base_url}/api/pulse/ingest/ -H 'X-Service-Ingest-Key: {ingest_key}' \\\n  \
         -H 'Content-Type: application/json' \\\n  \
         -d '{{\"events\": [{{\"imported_id\": \"crm-new\", \"kind\": \"trial_started\"}}]}}'\n\n\
         {fate}\n\n",
    )
}
