//! The effective configuration: each setting's value from the strongest source, and which source that
//! was. From strongest to weakest: command line, environment, file, default.

use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rapport_store::Database;
use toml::Value;

use crate::backup_option::Interval;
use crate::egress_option::EgressUrl;
use crate::listen_address::ListenAddress;
use crate::mail_option::{MailFrom, SmtpUrl, TrustedRelay};
use crate::option_value::{BaseUrl, DatabaseAddress, LogFilter, LogFormat, Network};
use crate::options::{self, Environment, Options};

const DEFAULT_LISTEN: &str = "127.0.0.1:8080";
const DEFAULT_DATA_DIR: &str = "rapport-data";
const CONFIG_FILE: &str = "rapport.toml";
const DATABASE_FILE: &str = "rapport.db";
const SECRET_KEY_FILE: &str = "secret.key";
const DEFAULT_PAGE_CACHE_MIB: u32 = 64;
const DEFAULT_READERS: u32 = 3;
const DEFAULT_WRITERS: u32 = 4;
const DEFAULT_RATE_LIMIT: u32 = 2_000;
const DEFAULT_IMPORT_MAX_MIB: u32 = 1_024;
const DEFAULT_BACKUP_EVERY: Interval = Interval(Duration::from_hours(24));
const DEFAULT_BACKUP_KEEP: u32 = 7;
const DEFAULT_LOG: &str = "info";
const PAGE_CACHE_MIB: RangeInclusive<u32> = 1..=65_536;
const THREADS: RangeInclusive<u32> = 1..=64;
const RATE_LIMIT: RangeInclusive<u32> = 1..=1_000_000;
const IMPORT_MAX_MIB: RangeInclusive<u32> = 1..=65_536;
const BACKUP_KEEP: RangeInclusive<u32> = 1..=10_000;
/// A command that runs next to the service reads and writes only a few rows.
const BESIDE_PAGE_CACHE_BYTES: usize = 4 << 20;

/// A problem with the configuration, in one line.
#[derive(Debug, PartialEq, Eq)]
pub struct BadConfig(String);

impl BadConfig {
    pub fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    CommandLine,
    Environment,
    File,
    Default,
}

#[derive(Debug, Clone)]
pub struct Setting<T> {
    /// As spelled in the file.
    pub name: &'static str,
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// As spelled on the command line, for messages that say what to change.
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    pub fn is_default(&self) -> bool {
        self.origin == Origin::Default
    }

    fn origin_text(&self, file: Option<&Path>) -> String {
        match self.origin {
            Origin::CommandLine => format!("command line ({})", self.flag()),
            Origin::Environment => format!("environment ({})", options::variable(self.name)),
            Origin::File => format!("file {}", file.unwrap_or(Path::new("")).display()),
            Origin::Default => "default".to_owned(),
        }
    }

    fn within(self, range: &RangeInclusive<u32>) -> Result<Self, BadConfig>
    where
        T: PartialOrd<u32> + Copy,
        u32: PartialOrd<T>,
    {
        if range.contains(&self.value) {
            return Ok(self);
        }
        let (least, most) = (range.start(), range.end());
        let source = match self.origin {
            Origin::Environment => options::variable(self.name),
            Origin::CommandLine | Origin::Default => self.flag(),
            Origin::File => format!("{} in the configuration file", self.name),
        };
        Err(BadConfig(format!("{source}: must be from {least} to {most}")))
    }
}

#[derive(Debug, Clone)]
pub struct Config {
    /// The file that was read, if any.
    pub file: Option<Setting<PathBuf>>,
    pub listen: Setting<ListenAddress>,
    pub database: Setting<DatabaseAddress>,
    pub data_dir: Setting<PathBuf>,
    pub base_url: Setting<BaseUrl>,
    pub trusted_proxy: Setting<Vec<Network>>,
    /// Empty if the service speaks plain HTTP, like `tls_key`.
    pub tls_cert: Setting<PathBuf>,
    pub tls_key: Setting<PathBuf>,
    pub allow_destination: Setting<Vec<Network>>,
    pub allow_lookup: Setting<Vec<Network>>,
    pub allow_sso: Setting<Vec<Network>>,
    pub extra_ca: Setting<Vec<PathBuf>>,
    pub egress_proxy: Setting<EgressUrl>,
    pub secret_key_file: Setting<PathBuf>,
    pub smtp_url: Setting<SmtpUrl>,
    pub mail_from: Setting<MailFrom>,
    pub trusted_mail_relay: Setting<TrustedRelay>,
    pub page_cache_mb: Setting<u32>,
    pub database_readers: Setting<u32>,
    pub database_writers: Setting<u32>,
    pub rate_limit: Setting<u32>,
    pub import_max_mb: Setting<u32>,
    /// Empty without scheduled backups.
    pub backup_dir: Setting<PathBuf>,
    pub backup_every: Setting<Interval>,
    pub backup_keep: Setting<u32>,
    pub log: Setting<LogFilter>,
    pub log_format: Setting<LogFormat>,
    pub access_log: Setting<bool>,
}

impl Config {
    pub fn load(command_line: Options, environment: Environment) -> Result<Self, BadConfig> {
        let environment = Options::from_environment(environment)?;
        let mut layers = Layers { command_line, environment, file: Options::default() };
        let file = layers.read_file()?;

        let default_listen = || DEFAULT_LISTEN.parse().expect("an address");
        let listen = layers.pick("listen", |o| &mut o.listen, default_listen);
        let data_dir = layers.pick("data_dir", |o| &mut o.data_dir, || DEFAULT_DATA_DIR.into());
        let in_data_dir = |name: &str| data_dir.value.join(name);
        let default_database = || DatabaseAddress(Database::Sqlite(in_data_dir(DATABASE_FILE)));
        let smtp_url = layers.pick("smtp_url", |o| &mut o.smtp_url, SmtpUrl::default);
        let mail_from = layers.pick("mail_from", |o| &mut o.mail_from, MailFrom::default);
        if smtp_url.value.server().is_some() && mail_from.value.as_str().is_empty() {
            return Err(BadConfig("--mail-from: required with --smtp-url".to_owned()));
        }
        let tls_cert = layers.pick("tls_cert", |o| &mut o.tls_cert, PathBuf::new);
        let tls_key = layers.pick("tls_key", |o| &mut o.tls_key, PathBuf::new);
        for (one, other) in [(&tls_cert, &tls_key), (&tls_key, &tls_cert)] {
            if one.value.as_os_str().is_empty() && !other.value.as_os_str().is_empty() {
                return Err(BadConfig(format!("{}: required with {}", one.flag(), other.flag())));
            }
        }
        let is_tls = !tls_cert.value.as_os_str().is_empty();
        let default_base_url = || listen.value.base_url().over_tls(is_tls);
        let default_log = || DEFAULT_LOG.parse().expect("a valid filter");
        Ok(Self {
            database: layers.pick("database", |o| &mut o.database, default_database),
            base_url: layers.pick("base_url", |o| &mut o.base_url, default_base_url),
            trusted_proxy: layers.pick("trusted_proxy", |o| &mut o.trusted_proxy, Vec::new),
            tls_cert,
            tls_key,
            allow_destination: layers.pick("allow_destination", |o| &mut o.allow_destination, Vec::new),
            allow_lookup: layers.pick("allow_lookup", |o| &mut o.allow_lookup, Vec::new),
            allow_sso: layers.pick("allow_sso", |o| &mut o.allow_sso, Vec::new),
            extra_ca: layers.pick("extra_ca", |o| &mut o.extra_ca, Vec::new),
            egress_proxy: layers.pick("egress_proxy", |o| &mut o.egress_proxy, EgressUrl::default),
            secret_key_file: layers.pick(
                "secret_key_file",
                |o| &mut o.secret_key_file,
                || in_data_dir(SECRET_KEY_FILE),
            ),
            smtp_url,
            mail_from,
            trusted_mail_relay: layers.pick(
                "trusted_mail_relay",
                |o| &mut o.trusted_mail_relay,
                TrustedRelay::default,
            ),
            page_cache_mb: layers
                .pick("page_cache_mb", |o| &mut o.page_cache_mb, || DEFAULT_PAGE_CACHE_MIB)
                .within(&PAGE_CACHE_MIB)?,
            database_readers: layers
                .pick("database_readers", |o| &mut o.database_readers, || DEFAULT_READERS)
                .within(&THREADS)?,
            database_writers: layers
                .pick("database_writers", |o| &mut o.database_writers, || DEFAULT_WRITERS)
                .within(&THREADS)?,
            rate_limit: layers
                .pick("rate_limit", |o| &mut o.rate_limit, || DEFAULT_RATE_LIMIT)
                .within(&RATE_LIMIT)?,
            import_max_mb: layers
                .pick("import_max_mb", |o| &mut o.import_max_mb, || DEFAULT_IMPORT_MAX_MIB)
                .within(&IMPORT_MAX_MIB)?,
            backup_dir: layers.pick("backup_dir", |o| &mut o.backup_dir, PathBuf::new),
            backup_every: layers.pick("backup_every", |o| &mut o.backup_every, || DEFAULT_BACKUP_EVERY),
            backup_keep: layers
                .pick("backup_keep", |o| &mut o.backup_keep, || DEFAULT_BACKUP_KEEP)
                .within(&BACKUP_KEEP)?,
            log: layers.pick("log", |o| &mut o.log, default_log),
            log_format: layers.pick("log_format", |o| &mut o.log_format, || LogFormat::Text),
            access_log: layers.pick("access_log", |o| &mut o.access_log, || false),
            file,
            listen,
            data_dir,
        })
    }

    /// The files of the certificate and its key, if the service speaks TLS.
    pub fn tls_files(&self) -> Option<(&Path, &Path)> {
        let (cert, key) = (&self.tls_cert.value, &self.tls_key.value);
        (!cert.as_os_str().is_empty()).then_some((cert, key))
    }

    /// How the service opens the database.
    pub fn store(&self) -> rapport_store::Config {
        rapport_store::Config {
            page_cache_bytes: (self.page_cache_mb.value as usize) << 20,
            readers: self.database_readers.value as usize,
            writers: self.database_writers.value as usize,
            ..rapport_store::Config::new(self.database.value.0.clone())
        }
    }

    /// How a command opens the database, next to a service that may be running.
    pub fn store_beside(&self) -> rapport_store::Config {
        let page_cache_bytes = BESIDE_PAGE_CACHE_BYTES;
        rapport_store::Config { page_cache_bytes, readers: 1, writers: 1, ..self.store() }
    }

    /// The configuration in the format of the file, each value with its origin. Secrets are hidden.
    pub fn to_toml(&self) -> String {
        let source = self.file.as_ref().map_or("none".to_owned(), |file| file.value.display().to_string());
        let mut text = format!("# The effective configuration. File read: {source}\n\n");
        for (name, value, origin) in self.entries() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} = {value}  # {origin}");
        }
        text
    }

    fn entries(&self) -> Vec<(&'static str, Value, String)> {
        let file = self.file.as_ref().map(|file| file.value.as_path());
        fn entry<T>(
            file: Option<&Path>,
            setting: &Setting<T>,
            value: impl Fn(&T) -> Value,
        ) -> (&'static str, Value, String) {
            (setting.name, value(&setting.value), setting.origin_text(file))
        }
        let path = |path: &PathBuf| Value::String(path.display().to_string());
        let networks = |networks: &Vec<Network>| -> Value {
            networks.iter().map(ToString::to_string).collect::<Vec<_>>().into()
        };
        let number = |number: &u32| Value::Integer(i64::from(*number));
        vec![
            entry(file, &self.listen, |address| Value::String(address.to_string())),
            entry(file, &self.database, |address| Value::String(address.to_string())),
            entry(file, &self.data_dir, path),
            entry(file, &self.base_url, |url| Value::String(url.as_str().to_owned())),
            entry(file, &self.trusted_proxy, networks),
            entry(file, &self.tls_cert, path),
            entry(file, &self.tls_key, path),
            entry(file, &self.allow_destination, networks),
            entry(file, &self.allow_lookup, networks),
            entry(file, &self.allow_sso, networks),
            entry(file, &self.extra_ca, |files| files.iter().map(path).collect::<Vec<_>>().into()),
            entry(file, &self.egress_proxy, |url| Value::String(url.to_string())),
            entry(file, &self.secret_key_file, path),
            entry(file, &self.smtp_url, |url| Value::String(url.to_string())),
            entry(file, &self.mail_from, |from| Value::String(from.as_str().to_owned())),
            entry(file, &self.trusted_mail_relay, |relay| Value::String(relay.as_str().to_owned())),
            entry(file, &self.page_cache_mb, number),
            entry(file, &self.database_readers, number),
            entry(file, &self.database_writers, number),
            entry(file, &self.rate_limit, number),
            entry(file, &self.import_max_mb, number),
            entry(file, &self.backup_dir, path),
            entry(file, &self.backup_every, |every| Value::String(every.to_string())),
            entry(file, &self.backup_keep, number),
            entry(file, &self.log, |filter| Value::String(filter.as_str().to_owned())),
            entry(file, &self.log_format, |format| Value::String(format.as_str().to_owned())),
            entry(file, &self.access_log, |on| Value::Boolean(*on)),
        ]
    }
}

struct Layers {
    command_line: Options,
    environment: Options,
    file: Options,
}

impl Layers {
    /// Reads the file that was named, or else the one in the data directory if it exists.
    fn read_file(&mut self) -> Result<Option<Setting<PathBuf>>, BadConfig> {
        let named = self.pick("config", |o| &mut o.config, PathBuf::new);
        if !named.is_default() {
            self.file = Options::from_file(&named.value)?;
            return Ok(Some(named));
        }
        let data_dir = self.command_line.data_dir.as_deref().or(self.environment.data_dir.as_deref());
        let path = data_dir.unwrap_or(Path::new(DEFAULT_DATA_DIR)).join(CONFIG_FILE);
        if !path.is_file() {
            return Ok(None);
        }
        self.file = Options::from_file(&path)?;
        if self.file.data_dir.is_some() {
            let path = path.display();
            return Err(BadConfig(format!("{path}: data_dir cannot be set by a file in the data directory")));
        }
        Ok(Some(Setting { value: path, ..named }))
    }

    fn pick<T>(
        &mut self,
        name: &'static str,
        field: impl Fn(&mut Options) -> &mut Option<T>,
        default: impl FnOnce() -> T,
    ) -> Setting<T> {
        let sources = [
            (&mut self.command_line, Origin::CommandLine),
            (&mut self.environment, Origin::Environment),
            (&mut self.file, Origin::File),
        ];
        for (options, origin) in sources {
            if let Some(value) = field(options).take() {
                return Setting { name, value, origin };
            }
        }
        Setting { name, value: default(), origin: Origin::Default }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use super::*;

    fn load(command_line: Options, variables: &[(&str, &str)]) -> Result<Config, BadConfig> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        Config::load(command_line, &find)
    }

    fn file(text: &str) -> (tempfile::TempDir, Options) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(CONFIG_FILE), text).unwrap();
        let options = Options { data_dir: Some(directory.path().to_owned()), ..Options::default() };
        (directory, options)
    }

    #[test]
    fn the_strongest_source_wins() {
        let text = "listen = '127.0.0.1:1'\nrate_limit = 11\npage_cache_mb = 12\nlog = 'warn'\n";
        let (_directory, mut options) = file(text);
        options.listen = Some("127.0.0.1:3".parse().unwrap());
        let variables =
            [("RAPPORT_LISTEN", "127.0.0.1:2"), ("RAPPORT_RATE_LIMIT", "22"), ("RAPPORT_PAGE_CACHE_MB", "")];
        let config = load(options, &variables).unwrap();
        assert_eq!(config.listen.value.to_string(), "127.0.0.1:3");
        assert_eq!(config.listen.origin, Origin::CommandLine);
        assert_eq!((config.rate_limit.value, config.rate_limit.origin), (22, Origin::Environment));
        assert_eq!((config.page_cache_mb.value, config.page_cache_mb.origin), (12, Origin::File));
        assert_eq!((config.database_readers.value, config.database_readers.origin), (3, Origin::Default));
    }

    #[test]
    fn a_certificate_and_its_key_come_together() {
        let cert = ("RAPPORT_TLS_CERT", "cert.pem");
        let key = ("RAPPORT_TLS_KEY", "key.pem");
        let config = load(Options::default(), &[cert, key]).unwrap();
        assert_eq!(config.tls_files(), Some((Path::new("cert.pem"), Path::new("key.pem"))));
        assert_eq!(config.base_url.value.as_str(), "https://127.0.0.1:8080");
        for (alone, missing) in [(cert, "--tls-key: required"), (key, "--tls-cert: required")] {
            let error = load(Options::default(), &[alone]).unwrap_err();
            assert!(error.to_string().starts_with(missing), "{error}");
        }
        assert_eq!(load(Options::default(), &[]).unwrap().tls_files(), None);
    }

    #[test]
    fn defaults_follow_the_data_directory_and_the_listener() {
        let variables = [("RAPPORT_DATA_DIR", "/nowhere/data"), ("RAPPORT_LISTEN", "0.0.0.0:81")];
        let config = load(Options::default(), &variables).unwrap();
        assert_eq!(config.database.value.to_string(), "sqlite:/nowhere/data/rapport.db");
        assert_eq!(config.secret_key_file.value, Path::new("/nowhere/data/secret.key"));
        assert_eq!(config.base_url.value.as_str(), "http://127.0.0.1:81");
    }

    #[test]
    fn a_mistake_in_the_file_is_named_with_its_line_and_without_its_value() {
        let table = [
            ("listen = '127.0.0.1:1'\nlisen = 'x'", "line 2: unknown field `lisen`"),
            ("database = 'mysql://u:hunter2@h'", "line 1: must be sqlite:PATH"),
            ("rate_limit = 'fast'", "line 1: invalid type"),
            ("rate_limit = 0", "rate_limit in the configuration file: must be from 1 to"),
            ("data_dir = 'x'", "data_dir cannot be set by a file in the data directory"),
            ("config = 'x'", "unknown field `config`"),
        ];
        for (text, expected) in table {
            let (_directory, options) = file(text);
            let message = load(options, &[]).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn a_mistake_in_the_environment_names_the_variable() {
        for (name, value) in [("RAPPORT_LISTEN", "8080"), ("RAPPORT_ALLOW_DESTINATION", "10.0.0.0/8,x")] {
            let message = load(Options::default(), &[(name, value)]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}: ")), "{message}");
        }
        let message = load(Options::default(), &[("RAPPORT_DATABASE_READERS", "0")]).unwrap_err().to_string();
        assert!(message.starts_with("RAPPORT_DATABASE_READERS: "), "{message}");
    }

    #[test]
    fn mail_needs_a_sender() {
        let url = ("RAPPORT_SMTP_URL", "smtps://u:p@mail.acme.test");
        let message = load(Options::default(), &[url]).unwrap_err().to_string();
        assert!(message.starts_with("--mail-from: "), "{message}");
        let config = load(Options::default(), &[url, ("RAPPORT_MAIL_FROM", "rapport@acme.test")]).unwrap();
        assert!(config.smtp_url.value.server().is_some());
        let none = load(Options::default(), &[]).unwrap();
        assert!(none.smtp_url.value.server().is_none());
        assert_eq!(none.mail_from.value.as_str(), "");
    }

    #[test]
    fn a_named_file_must_exist() {
        assert!(load(Options::default(), &[("RAPPORT_CONFIG", "/nowhere/rapport.toml")]).is_err());
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_configuration() {
        let variables = [
            ("RAPPORT_ALLOW_DESTINATION", "10.0.0.0/8, 127.0.0.1"),
            ("RAPPORT_ALLOW_LOOKUP", "10.1.0.0/16,::1"),
            ("RAPPORT_EXTRA_CA", "a.pem,b.pem"),
            ("RAPPORT_TRUSTED_PROXY", "127.0.0.1,fd00::/8"),
            ("RAPPORT_TLS_CERT", "cert.pem"),
            ("RAPPORT_TLS_KEY", "key.pem"),
            ("RAPPORT_DATABASE", "postgres://u@h/db"),
            ("RAPPORT_DATA_DIR", "/nowhere/data"),
            ("RAPPORT_SMTP_URL", "smtp://mail.acme.test:25"),
            ("RAPPORT_MAIL_FROM", "Rapport <rapport@acme.test>"),
            ("RAPPORT_EGRESS_PROXY", "http://proxy.acme.test:3128"),
            ("RAPPORT_TRUSTED_MAIL_RELAY", "mx.acme.test"),
        ];
        let printed = load(Options::default(), &variables).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy.toml");
        fs::write(&path, printed.to_toml()).unwrap();
        let config = Some(path);
        let read = load(Options { config, ..Options::default() }, &[]).unwrap();
        let values = |config: &Config| {
            config.entries().into_iter().map(|(name, value, _)| (name, value)).collect::<Vec<_>>()
        };
        assert_eq!(values(&read), values(&printed));
        assert!(read.entries().iter().all(|(_, _, origin)| origin.starts_with("file ")));
    }
}
