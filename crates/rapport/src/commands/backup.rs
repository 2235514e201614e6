//! `rapport backup`: copies the database into one file, next to a service that may be running, or checks such a
//! file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use jiff::tz::TimeZone;
use rapport_app::Clock as _;
use rapport_domain::time::Time;
use rapport_store::copy::Pace;
use rapport_store::copy::backup::{About, Verified, back_up, verify};

use super::{copy, print, progress};
use crate::cli;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::secret_key::SecretKey;

const WITH_KEY: &str = "\
This backup contains the key that encrypts the webhook secrets, so it is all that is needed to restore the service.
Anyone who has the file can read the secrets and sign webhooks in your name. Keep it as safe as the key itself.
";

pub fn run(config: &Config, arguments: &cli::Backup) -> anyhow::Result<ExitCode> {
    if arguments.verify {
        let Some(file) = &arguments.file else { bail!("name the backup to verify") };
        let verified = verify(file, &mut progress::shown(Pace::Full))?;
        return print(&describe(file, &verified));
    }
    let now = SystemClock::new().now();
    let file = arguments.file.clone().unwrap_or_else(|| default_file(now));
    let about = About::new(&config.database.value.0, now, env!("CARGO_PKG_VERSION"));
    let about = with_key(config, arguments.with_key, about)?;
    if arguments.with_key {
        eprint!("{WITH_KEY}");
    }
    let made = back_up(&config.database.value.0, &file, &about, &mut progress::shown(Pace::Gentle));
    let tables = made.with_context(|| format!("{} was not backed up", config.database.value))?;
    let shown = file.display();
    let mut text = describe(&file, &Verified { about, tables });
    let _ = writeln!(text, "Backed up {} to {shown}.", config.database.value);
    if !arguments.with_key {
        let key = config.secret_key_file.value.display();
        let _ = writeln!(text, "The encryption key is not in it: keep a copy of {key} in another place.");
    }
    print(&text)
}

/// Adds what a backup says about the key. A database can be backed up without having its key.
fn with_key(config: &Config, with_key: bool, about: About) -> anyhow::Result<About> {
    let path = &config.secret_key_file.value;
    if !path.exists() && !with_key {
        eprintln!(
            "The key file {} doesn't exist, so the backup won't say which key it needs.",
            path.display()
        );
        return Ok(about);
    }
    let key = SecretKey::read(path)?;
    let fingerprint = key.fingerprints().into_iter().next();
    Ok(About { fingerprint, key: with_key.then(|| key.to_hex()), ..about })
}

fn default_file(now: Time) -> PathBuf {
    let at = now.to_timestamp().to_zoned(TimeZone::UTC);
    format!("rapport-{}.backup", at.strftime("%Y%m%d-%H%M%S")).into()
}

/// What a backup contains and says about itself.
pub fn describe(file: &Path, Verified { about, tables }: &Verified) -> String {
    let mut text = copy::table(tables);
    let key = match (&about.fingerprint, &about.key) {
        (Some(fingerprint), Some(_)) => format!("{fingerprint}, which is in the file"),
        (Some(fingerprint), None) => format!("{fingerprint}, which is not in the file"),
        (None, _) => "unknown".to_owned(),
    };
    let _ = writeln!(text, "\n{} is complete and intact.", file.display());
    let _ = writeln!(text, "made      {} by rapport {}", about.made_at, about.program);
    let _ = writeln!(text, "from      {}, schema version {}", about.engine, about.schema);
    let _ = writeln!(text, "rows      {}", tables.iter().map(|sum| sum.rows).sum::<u64>());
    let _ = writeln!(text, "key       {key}");
    text
}
