//! Where a PostgreSQL server is and how to connect to it: the URL, what the environment adds, and TLS.
//! Everything that opens a connection does it here.
//!
//! Parameters and variables have the meaning they have for libpq, and the URL wins. The library's own
//! parser knows only some of them, so we take ours out first.

mod certificate;
mod channel_binding;
mod environment;
mod parts;
mod password_file;
mod sentence;
#[cfg(test)]
mod tests;
mod tls;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_postgres::config::{ChannelBinding, Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Connection, Socket};

use environment::Environment;
use parts::Parts;
pub use parts::shown;
use password_file::Login;
pub use tls::TlsStream;
use tls::{Failure, Root, Settings, Tls};

/// The parameters that the library must not see: it would reject them, or know too little.
const OURS: [&str; 7] =
    ["sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "passfile", "password"];
const SYSTEM_ROOTS: &str = "system";
const DEFAULT_PORT: u16 = 5432;
/// Directories whose socket libpq calls `localhost` in a password file.
const USUAL_SOCKETS: [&str; 3] = ["/var/run/postgresql", "/run/postgresql", "/tmp"];
const ROOT_AT_HOME: &str = ".postgresql/root.crt";
const CERTIFICATE_AT_HOME: &str = ".postgresql/postgresql.crt";
const KEY_AT_HOME: &str = ".postgresql/postgresql.key";
const PASSWORDS_AT_HOME: &str = ".pgpass";

/// The limit for reaching a server.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent packets may stay unacknowledged.
const USER_TIMEOUT: Duration = Duration::from_secs(10);
/// The library's default if nothing is configured.
const UNSET_KEEPALIVE_IDLE: Duration = Duration::from_hours(2);

/// How much TLS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    const ALL: [Self; 5] = [Self::Disable, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// A server, a login and a database. Cheap to clone; its parts are read once, when it is made.
#[derive(Clone)]
pub struct Address {
    config: Config,
    mode: Mode,
    tls: Tls,
    /// Whether to try again without TLS if it fails: only if nothing was to be verified.
    may_fall_back: bool,
    /// What a person should know although connecting may work.
    pub warnings: Vec<String>,
}

impl Address {
    pub fn parse(url: &str) -> Result<Self, String> {
        Self::parse_in(url, &Environment::of_process())
    }

    fn parse_in(url: &str, environment: &Environment) -> Result<Self, String> {
        let parts = Parts::split(url)?;
        let Plan { mut config, mode, root, certificate, key } = Plan::read(&parts, environment)?;
        if matches!(mode, Mode::VerifyCa | Mode::VerifyFull) && root.is_none() {
            return Err(format!(
                "sslmode={} needs certificate authorities: name a PEM file with sslrootcert (PGSSLROOTCERT), or \
                 sslrootcert=system for the system's",
                mode.as_str()
            ));
        }
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(_), None) => {
                return Err("sslcert needs a private key: name its file with sslkey (PGSSLKEY)".to_owned());
            }
            (None, _) => None,
        };
        let may_fall_back =
            mode == Mode::Prefer && root.is_none() && config.get_channel_binding() != ChannelBinding::Require;
        let settings = Settings { root, checks_name: mode == Mode::VerifyFull, client };
        let no_files = Settings { root: None, checks_name: false, client: None };
        let tls = Tls::load(if mode == Mode::Disable { &no_files } else { &settings })?;
        let mut warnings = Vec::new();
        if let Some(password) = password(&parts, &config, environment, &mut warnings)? {
            config.password(password);
        }
        Ok(Self { config, mode, tls, may_fall_back, warnings })
    }

    /// Whether one server is meant, so that every connection reaches the same one.
    pub fn is_one_server(&self) -> bool {
        self.config.get_hosts().len() <= 1 && self.config.get_hostaddrs().len() <= 1
    }

    pub async fn connect(&self) -> Result<(Client, Connection<Socket, TlsStream>), tokio_postgres::Error> {
        let error = match self.config.connect(self.tls.clone()).await {
            Err(error) if self.may_fall_back && is_about_tls(&error) => error,
            result => return result,
        };
        let mut plain = self.config.clone();
        plain.ssl_mode(SslMode::Disable);
        plain.connect(self.tls.clone()).await.map_err(|_| error)
    }

    /// For a request to cancel a statement, which is made on a connection of its own.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Why connecting failed, in a sentence.
    pub fn explained(&self, error: &tokio_postgres::Error) -> String {
        sentence::of_connecting(error, self.mode)
    }
}

/// Finds mistakes in a URL without reading any file.
pub fn check(url: &str) -> Result<(), String> {
    Plan::read(&Parts::split(url)?, &Environment::empty()).map(drop)
}

/// Whether a server might accept us without TLS: the handshake failed, or its rules refuse encrypted logins.
fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error);
    cause.is_some_and(<dyn std::error::Error>::is::<Failure>)
        || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// What the URL and the environment say, before any file is read.
struct Plan {
    config: Config,
    mode: Mode,
    root: Option<Root>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Plan {
    fn read(parts: &Parts, environment: &Environment) -> Result<Self, String> {
        // A value, and the name it goes by where it was found.
        let given = |name: &'static str, variable: &'static str| {
            let written = parts.parameters.iter().rfind(|(known, _)| known == name);
            let written = written.map(|(_, value)| value.clone()).filter(|value| !value.is_empty());
            written.map(|value| (value, name)).or_else(|| Some((environment.variable(variable)?, variable)))
        };
        let file = |name, variable, at_home| {
            let named = given(name, variable).map(|(path, _)| PathBuf::from(path));
            named.or_else(|| environment.file_at_home(at_home))
        };
        let root = match given("sslrootcert", "PGSSLROOTCERT") {
            Some((value, _)) if value == SYSTEM_ROOTS => Some(Root::System),
            Some((value, _)) => Some(Root::File(PathBuf::from(value))),
            None => environment.file_at_home(ROOT_AT_HOME).map(Root::File),
        };
        let mode = match given("sslmode", "PGSSLMODE") {
            Some((value, name)) => Mode::parse(&value).ok_or_else(|| {
                format!("{name} must be disable, prefer, require, verify-ca or verify-full")
            })?,
            None if root == Some(Root::System) => Mode::VerifyFull,
            None => Mode::Prefer,
        };
        // Anyone can get a certificate from one of those authorities, for a host of their own.
        if root == Some(Root::System) && !matches!(mode, Mode::VerifyFull | Mode::Disable) {
            let mode = mode.as_str();
            return Err(format!(
                "sslrootcert=system needs sslmode=verify-full: {mode} would accept any host's certificate"
            ));
        }
        let binding = match given("channel_binding", "PGCHANNELBINDING") {
            None => ChannelBinding::Prefer,
            Some((value, name)) => match value.as_str() {
                "disable" => ChannelBinding::Disable,
                "prefer" => ChannelBinding::Prefer,
                "require" => ChannelBinding::Require,
                _ => return Err(format!("{name} must be disable, prefer or require")),
            },
        };
        let mut config = library_config(parts)?;
        let library_mode = library_mode(mode, &config);
        config.channel_binding(binding).ssl_mode(library_mode);
        let certificate = file("sslcert", "PGSSLCERT", CERTIFICATE_AT_HOME);
        let key = file("sslkey", "PGSSLKEY", KEY_AT_HOME);
        Ok(Self { config, mode, root, certificate, key })
    }
}

fn library_mode(mode: Mode, config: &Config) -> SslMode {
    // PostgreSQL offers no TLS there, and libpq ignores the mode too.
    let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    match mode {
        Mode::Disable => SslMode::Disable,
        _ if is_local => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
    }
}

/// Everything except what is ours, in the library's terms, and what all our connections have in common.
fn library_config(parts: &Parts) -> Result<Config, String> {
    let login = parts.user.map_or_else(String::new, |user| format!("{user}@"));
    let database = parts.database.map_or_else(String::new, |database| format!("/{database}"));
    let parameters = parts.parameters.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    let parameters: Vec<String> = parameters
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
        .collect();
    let url = format!("postgres://{login}{}{database}?{}", parts.hosts, parameters.join("&"));
    let mut config = Config::from_str(&url).map_err(|error| {
        let cause = std::error::Error::source(&error);
        cause.map_or_else(|| error.to_string(), ToString::to_string)
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("must name a host".to_owned());
    }
    if config.get_hosts().is_empty() {
        // The library makes no TLS connection without a name.
        for address in config.get_hostaddrs().to_vec() {
            config.host(address.to_string());
        }
    }
    config.connect_timeout(CONNECT_LIMIT).application_name("rapport");
    if config.get_keepalives_idle() == UNSET_KEEPALIVE_IDLE {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(USER_TIMEOUT);
    }
    Ok(config)
}

fn password(
    parts: &Parts,
    config: &Config,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Option<Vec<u8>>, String> {
    if let Some(password) = parts.password()? {
        return Ok(Some(password));
    }
    if let Some(password) = environment.variable("PGPASSWORD") {
        return Ok(Some(password.into_bytes()));
    }
    let named = parts.parameters.iter().rfind(|(name, value)| name == "passfile" && !value.is_empty());
    let named = named.map(|(_, value)| value.clone()).or_else(|| environment.variable("PGPASSFILE"));
    let path = named.map(PathBuf::from).or_else(|| environment.file_at_home(PASSWORDS_AT_HOME));
    let Some(path) = path else { return Ok(None) };
    let contents = match password_file::read(&path) {
        Ok(contents) => contents,
        Err(warning) => {
            warnings.push(warning);
            return Ok(None);
        }
    };
    let user = config.get_user().map(str::to_owned).or_else(|| whoami::username().ok()).unwrap_or_default();
    let database = config.get_dbname().unwrap_or(&user);
    let ports = config.get_ports();
    let mut found = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let host = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) if USUAL_SOCKETS.iter().any(|usual| path.as_os_str() == *usual) => {
                "localhost".to_owned()
            }
            Host::Unix(path) => path.display().to_string(),
        };
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
        password_file::find(&contents, &Login { host: &host, port, database, user: &user })
    });
    let first = found.next().flatten();
    if found.any(|other| other != first) {
        return Err(
            "the password file has different passwords for the hosts of this address; all need the same"
                .to_owned(),
        );
    }
    Ok(first)
}
