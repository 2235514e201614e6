//! `rapport doctor`: checks for problems that could keep the service from working. Changes nothing.

use std::fmt::Display;
use std::net::TcpListener;
use std::process::ExitCode;

use rapport_app::Clock as _;
use rapport_jobs::Security;
use rapport_store::doctor::{Finding, Level, examine};

use super::print;
use crate::clock::SystemClock;
use crate::config::{Config, Setting};
use crate::file_limit::{self, Needs};
use crate::key_check::{KeyCheck, Unchecked};
use crate::option_value::Network;
use crate::tls::Certificate;
use crate::{backups, data_dir, extra_ca};

pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let mut findings = vec![look_at_data_dir(config), look_at_secret_key(config)];
    findings.extend(examine(&config.database.value.0).into_iter().map(|finding| Finding {
        text: format!("database {}: {}", config.database.value, finding.text),
        ..finding
    }));
    findings.push(look_at_listener(config));
    findings.push(look_at_destinations("webhooks", &config.allow_destination));
    findings.push(look_at_destinations("lookups by domain", &config.allow_lookup));
    findings.push(look_at_destinations("single sign-on", &config.allow_sso));
    findings.push(look_at_extra_ca(config));
    findings.extend(look_at_egress_proxy(config));
    findings.extend([look_at_mail(config), look_at_file_limit(config), look_at_backups(config)]);
    findings.extend([look_at_certificate(config), look_at_proxies(config)].into_iter().flatten());
    let line = |finding: &Finding| format!("{:<4}  {}\n", finding.level.as_str(), finding.text);
    print(&findings.iter().map(line).collect::<String>())?;
    let failed = findings.iter().any(|finding| finding.level == Level::Fail);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn finding(level: Level, text: impl Display) -> Finding {
    Finding { level, text: text.to_string() }
}

fn look_at_data_dir(config: &Config) -> Finding {
    let path = &config.data_dir.value;
    let shown = path.display();
    if !path.exists() {
        return finding(
            Level::Warn,
            format!("data directory {shown}: does not exist yet; the service creates it"),
        );
    }
    match (tempfile::tempfile_in(path), data_dir::is_open_to_others(path)) {
        (Err(error), _) | (_, Err(error)) => {
            finding(Level::Fail, format!("data directory {shown}: not writable (--data-dir): {error}"))
        }
        (Ok(_), Ok(true)) => finding(
            Level::Warn,
            format!("data directory {shown}: other users have access to it; run chmod 700"),
        ),
        (Ok(_), Ok(false)) => finding(Level::Ok, format!("data directory {shown}: writable and private")),
    }
}

fn look_at_secret_key(config: &Config) -> Finding {
    let path = config.secret_key_file.value.display();
    let check = match KeyCheck::make(config) {
        Ok(check) => check,
        Err(Unchecked::KeyFile(error)) => return finding(Level::Fail, format!("{error:#}")),
        Err(Unchecked::Database(_)) => {
            return finding(Level::Warn, format!("key file {path}: not compared with the database"));
        }
    };
    match (check.problem(config), check.key) {
        (Some(problem), _) => finding(Level::Fail, problem),
        (None, None) => {
            finding(Level::Warn, format!("key file {path}: does not exist yet; the service creates it"))
        }
        (None, Some(key)) => {
            let fingerprints = key.fingerprints().join(" and ");
            finding(Level::Ok, format!("key file {path}: fingerprint {fingerprints}"))
        }
    }
}

fn look_at_listener(config: &Config) -> Finding {
    let address = &config.listen.value;
    let bound = address.candidates().and_then(|candidates| TcpListener::bind(candidates.as_slice()));
    match bound {
        Ok(_) => finding(Level::Ok, format!("address {address}: free to listen on")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            finding(Level::Warn, format!("address {address}: in use by a running rapport or another program"))
        }
        Err(error) => finding(Level::Fail, format!("address {address}: {error} (--listen)")),
    }
}

fn look_at_destinations(what: &str, allowed: &Setting<Vec<Network>>) -> Finding {
    let networks = &allowed.value;
    if networks.is_empty() {
        let flag = allowed.flag();
        return finding(Level::Ok, format!("{what}: public addresses only ({flag} allows others)"));
    }
    let list = networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if networks.iter().any(|network| network.0.prefix_len() == 0) {
        return finding(Level::Warn, format!("{what}: every address is allowed ({list})"));
    }
    finding(Level::Ok, format!("{what}: public addresses and {list}"))
}

fn look_at_mail(config: &Config) -> Finding {
    let Some(server) = config.smtp_url.value.server() else {
        let text = "mail: not configured (--smtp-url); hand over invitation links yourself, and read digests in the app";
        return finding(Level::Warn, text);
    };
    let shown = format!("mail: through {}", config.smtp_url.value);
    match server.security {
        Security::Plain => {
            finding(Level::Warn, format!("{shown}, not encrypted; try it with rapport mail test"))
        }
        Security::Tls | Security::StartTls => {
            finding(Level::Ok, format!("{shown}; try it with rapport mail test"))
        }
    }
}

fn look_at_file_limit(config: &Config) -> Finding {
    let needs = Needs::of(config);
    match file_limit::hard_limit() {
        Ok(limit) => match needs.shortage(limit) {
            Some(shortage) => finding(Level::Warn, format!("open files: {shortage}")),
            None => finding(
                Level::Ok,
                format!("open files: the limit is {limit}, and at most {} are needed", needs.files()),
            ),
        },
        Err(error) => finding(Level::Warn, format!("open files: failed to read the limit: {error}")),
    }
}

fn look_at_backups(config: &Config) -> Finding {
    let (level, text) = backups::examine(config, SystemClock::new().now());
    finding(level, text)
}

fn look_at_extra_ca(config: &Config) -> Finding {
    match extra_ca::load(&config.extra_ca.value) {
        Ok(authorities) => {
            finding(Level::Ok, format!("extra certificate authorities: {}", authorities.len()))
        }
        Err(error) => finding(Level::Fail, format!("{error:#}")),
    }
}

fn look_at_egress_proxy(config: &Config) -> Option<Finding> {
    config.egress_proxy.value.proxy()?;
    let text = format!("egress proxy: webhooks are sent through {}", config.egress_proxy.value);
    Some(finding(Level::Ok, text))
}

fn look_at_certificate(config: &Config) -> Option<Finding> {
    let (cert, _) = config.tls_files()?;
    Some(match Certificate::load(config) {
        Ok(_) => finding(Level::Ok, format!("certificate {}: usable, with its key", cert.display())),
        Err(error) => finding(Level::Fail, format!("{error:#}")),
    })
}

fn look_at_proxies(config: &Config) -> Option<Finding> {
    let networks = &config.trusted_proxy.value;
    let list = networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if networks.iter().any(|network| network.0.prefix_len() == 0) {
        let text = format!("trusted proxies: {list}; anyone can claim any address (--trusted-proxy)");
        return Some(finding(Level::Warn, text));
    }
    (!networks.is_empty()).then(|| finding(Level::Ok, format!("trusted proxies: {list}")))
}
