//! The settings of a single source: the command line, the environment or the file. Every field is
//! optional here; `config` decides which source wins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use serde::Deserialize;

use crate::backup_option::Interval;
use crate::config::BadConfig;
use crate::egress_option::EgressUrl;
use crate::listen_address::ListenAddress;
use crate::mail_option::{MailFrom, SmtpUrl, TrustedRelay};
use crate::option_value::{BaseUrl, DatabaseAddress, LogFilter, LogFormat, Network};

#[derive(Debug, Clone, Default, Args, Deserialize)]
#[command(next_help_heading = "Settings")]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The configuration file; by default rapport.toml in the data directory, if it exists
    #[arg(long, global = true, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// The address to listen on; by default 127.0.0.1:8080
    ///
    /// An address or a host name and a port, such as 0.0.0.0:8080 or localhost:8080. Of a name's addresses, the
    /// first one that works is used, IPv4 first. A port alone, such as :8080, means every IPv4 address of this
    /// machine; use [::]:8080 for IPv6 too.
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    pub listen: Option<ListenAddress>,

    /// sqlite:PATH or postgres://…; by default the SQLite file rapport.db in the data directory
    #[arg(long, global = true, value_name = "DATABASE")]
    pub database: Option<DatabaseAddress>,

    /// The directory for the service's files; by default ./rapport-data
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The URL that people and programs use; by default http:// and the listen address
    #[arg(long, global = true, value_name = "URL")]
    pub base_url: Option<BaseUrl>,

    /// A proxy in front of the service, whose Forwarded or X-Forwarded-For header is believed; repeatable
    ///
    /// An address or a network. Without this, those headers are ignored and every client of a proxy has the proxy's
    /// address. In the environment, separate several with commas.
    #[arg(long, global = true, value_name = "CIDR")]
    pub trusted_proxy: Option<Vec<Network>>,

    /// A PEM file with the certificate for https and the certificates of its issuers; by default plain http
    ///
    /// When the file or the key changes, the service uses the new certificate for new connections.
    #[arg(long, global = true, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// A PEM file with the private key of --tls-cert
    #[arg(long, global = true, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// A network that webhooks may be sent to although it is not public; repeatable
    ///
    /// It doesn't apply to lookups by domain and single sign-on; see --allow-lookup and --allow-sso. A single address is
    /// allowed too. In the environment, separate several with commas.
    #[arg(long, global = true, value_name = "CIDR")]
    pub allow_destination: Option<Vec<Network>>,

    /// A network whose sites may be looked up by domain although it is not public; repeatable
    ///
    /// Everyone who may look up an account can then read home pages in this network. A single address is allowed
    /// too. In the environment, separate several with commas.
    #[arg(long, global = true, value_name = "CIDR")]
    pub allow_lookup: Option<Vec<Network>>,

    /// A network in which companies may have their identity provider although it is not public; repeatable
    ///
    /// For single sign-on with a provider inside your own network. Every company's owners can then send requests to the
    /// hosts in this network. A single address is allowed too. In the environment, separate several with commas.
    #[arg(long, global = true, value_name = "CIDR")]
    pub allow_sso: Option<Vec<Network>>,

    /// A PEM file with certificate authorities to trust besides the system's; repeatable
    ///
    /// In the environment, separate several with commas.
    #[arg(long, global = true, value_name = "FILE")]
    pub extra_ca: Option<Vec<PathBuf>>,

    /// The HTTP proxy that webhooks are sent through: http://user:password@host:port; by default none
    ///
    /// It must support CONNECT. We resolve the receiver's name, check its addresses as always, and ask the proxy for a
    /// connection to the address, so the proxy can't be used to reach a network that is not allowed. Mail, lookups by
    /// domain and single sign-on don't use it. Percent-encode special characters in the user and password.
    #[arg(long, global = true, value_name = "URL")]
    pub egress_proxy: Option<EgressUrl>,

    /// The key that encrypts secrets in the database; by default secret.key in the data directory
    ///
    /// The default file is created for a new database. A file given here must exist and contain 64 hexadecimal
    /// digits. A database accepts no key but its own, so with several nodes on one PostgreSQL database, give every
    /// node the same file. See also rapport key.
    #[arg(long, global = true, value_name = "FILE")]
    pub secret_key_file: Option<PathBuf>,

    /// The mail server: smtps://user:password@host, or smtp:// for STARTTLS; by default no mail is sent
    ///
    /// smtps:// uses TLS from the start (port 465). smtp:// requires STARTTLS (port 587). smtp+plain:// is not
    /// encrypted (port 25) and meant for a server on this machine. Percent-encode special characters in the user
    /// and password, for example @ as %40.
    #[arg(long, global = true, value_name = "URL")]
    pub smtp_url: Option<SmtpUrl>,

    /// The sender of mail, such as "Rapport <rapport@acme.test>"; required with --smtp-url
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub mail_from: Option<MailFrom>,

    /// The mail relay whose checks of inbound mail are believed; by default every sender is
    ///
    /// The name at the start of the Authentication-Results header that your relay adds (its authserv-id), such as
    /// mx.acme.test. The relay must remove headers with its name from mail that it receives. A mail whose sender it
    /// didn't verify with DMARC, DKIM or SPF is logged, but not as a mail from that member or account.
    #[arg(long, global = true, value_name = "NAME")]
    pub trusted_mail_relay: Option<TrustedRelay>,

    /// SQLite's page cache in MiB; by default 64
    #[arg(long, global = true, value_name = "MIB")]
    pub page_cache_mb: Option<u32>,

    /// Threads that read from the database, on PostgreSQL each with a connection; by default 3
    #[arg(long, global = true, value_name = "COUNT")]
    pub database_readers: Option<u32>,

    /// PostgreSQL connections that write; by default 4. SQLite always has one writer
    #[arg(long, global = true, value_name = "COUNT")]
    pub database_writers: Option<u32>,

    /// Requests per second that each token or key may make; by default 2000
    #[arg(long, global = true, value_name = "COUNT")]
    pub rate_limit: Option<u32>,

    /// The largest CSV file that may be uploaded, in MiB; by default 1024
    #[arg(long, global = true, value_name = "MIB")]
    pub import_max_mb: Option<u32>,

    /// The directory for scheduled backups; by default none are made
    #[arg(long, global = true, value_name = "DIR")]
    pub backup_dir: Option<PathBuf>,

    /// How often to make a backup, such as 12h or 7d; by default 24h
    #[arg(long, global = true, value_name = "TIME")]
    pub backup_every: Option<Interval>,

    /// How many scheduled backups to keep; by default 7
    #[arg(long, global = true, value_name = "COUNT")]
    pub backup_keep: Option<u32>,

    /// What to log: a level, or targets with levels such as info,rapport_web=debug; by default info
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<LogFilter>,

    /// The format of log lines; by default text
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Log every request, at level info of the target `access`; by default off
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub access_log: Option<bool>,
}

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The environment variable of a setting.
pub fn variable(name: &str) -> String {
    format!("RAPPORT_{}", name.to_uppercase())
}

impl Options {
    pub fn from_environment(environment: Environment) -> Result<Self, BadConfig> {
        Ok(Self {
            config: one(environment, "config")?,
            listen: one(environment, "listen")?,
            database: one(environment, "database")?,
            data_dir: one(environment, "data_dir")?,
            base_url: one(environment, "base_url")?,
            trusted_proxy: several(environment, "trusted_proxy")?,
            tls_cert: one(environment, "tls_cert")?,
            tls_key: one(environment, "tls_key")?,
            allow_destination: several(environment, "allow_destination")?,
            allow_lookup: several(environment, "allow_lookup")?,
            allow_sso: several(environment, "allow_sso")?,
            extra_ca: several(environment, "extra_ca")?,
            egress_proxy: one(environment, "egress_proxy")?,
            secret_key_file: one(environment, "secret_key_file")?,
            smtp_url: one(environment, "smtp_url")?,
            mail_from: one(environment, "mail_from")?,
            trusted_mail_relay: one(environment, "trusted_mail_relay")?,
            page_cache_mb: one(environment, "page_cache_mb")?,
            database_readers: one(environment, "database_readers")?,
            database_writers: one(environment, "database_writers")?,
            rate_limit: one(environment, "rate_limit")?,
            import_max_mb: one(environment, "import_max_mb")?,
            backup_dir: one(environment, "backup_dir")?,
            backup_every: one(environment, "backup_every")?,
            backup_keep: one(environment, "backup_keep")?,
            log: one(environment, "log")?,
            log_format: one(environment, "log_format")?,
            access_log: one(environment, "access_log")?,
        })
    }

    pub fn from_file(path: &Path) -> Result<Self, BadConfig> {
        let bad = |error: &dyn std::fmt::Display| BadConfig::new(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| bad(&error))?;
        // Only the message: the full error also shows an excerpt of the file, which could contain a password.
        toml::from_str(&text).map_err(|error: toml::de::Error| match error.span() {
            Some(span) => {
                let line = text[..span.start].matches('\n').count() + 1;
                bad(&format!("line {line}: {}", error.message()))
            }
            None => bad(&error.message()),
        })
    }
}

/// Treats an empty variable as unset, because that is how container files leave one out.
fn text(environment: Environment, name: &str) -> Result<Option<String>, BadConfig> {
    let Some(value) = environment(&variable(name)).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.into_string();
    value.map(Some).map_err(|_| BadConfig::new(format!("{}: not valid UTF-8", variable(name))))
}

fn one<T: FromStr<Err: std::fmt::Display>>(
    environment: Environment,
    name: &str,
) -> Result<Option<T>, BadConfig> {
    text(environment, name)?.map(|text| read(name, &text)).transpose()
}

fn several<T: FromStr<Err: std::fmt::Display>>(
    environment: Environment,
    name: &str,
) -> Result<Option<Vec<T>>, BadConfig> {
    let Some(text) = text(environment, name)? else { return Ok(None) };
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| read(name, part)).collect::<Result<_, _>>().map(Some)
}

fn read<T: FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, BadConfig> {
    text.parse().map_err(|error| BadConfig::new(format!("{}: {error}", variable(name))))
}
