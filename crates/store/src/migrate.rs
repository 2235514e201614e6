//! Migrations: one text for both engines, applied in order at startup.
//!
//! `migrations/README.md` describes the files. `steps` reads them, `postgres` and `sqlite` run them, and `progress`
//! is what they say while they do.

pub mod postgres;
pub mod progress;
pub mod sqlite;
mod steps;
#[cfg(test)]
mod tests;

use self::steps::Step;
use crate::error::Error;

const MIGRATIONS: [&str; 41] = [
    include_str!("../migrations/0001_core.sql"),
    include_str!("../migrations/0002_webhooks.sql"),
    include_str!("../migrations/0003_conversations.sql"),
    include_str!("../migrations/0004_cadence.sql"),
    include_str!("../migrations/0005_mail.sql"),
    include_str!("../migrations/0006_fields.sql"),
    include_str!("../migrations/0007_imports.sql"),
    include_str!("../migrations/0008_sessions.sql"),
    include_str!("../migrations/0009_saved_views.sql"),
    include_str!("../migrations/0010_channel_totals.sql"),
    include_str!("../migrations/0011_stage_totals.sql"),
    include_str!("../migrations/0012_ingest_rejects.sql"),
    include_str!("../migrations/0013_covering.sql"),
    include_str!("../migrations/0014_standing.sql"),
    include_str!("../migrations/0015_statistics.sql"),
    include_str!("../migrations/0016_node_identity.sql"),
    include_str!("../migrations/0017_fan_out.sql"),
    include_str!("../migrations/0018_reporting.sql"),
    include_str!("../migrations/0019_key.sql"),
    include_str!("../migrations/0020_audit_request.sql"),
    include_str!("../migrations/0021_identity.sql"),
    include_str!("../migrations/0022_audit_filters.sql"),
    include_str!("../migrations/0023_sender_proof.sql"),
    include_str!("../migrations/0024_rights.sql"),
    include_str!("../migrations/0025_sessions_and_tokens.sql"),
    include_str!("../migrations/0026_companies.sql"),
    include_str!("../migrations/0027_factors.sql"),
    include_str!("../migrations/0028_sso.sql"),
    include_str!("../migrations/0029_late_events.sql"),
    include_str!("../migrations/0030_token_limits.sql"),
    include_str!("../migrations/0031_kept_responses.sql"),
    include_str!("../migrations/0032_feed.sql"),
    include_str!("../migrations/0033_choose.sql"),
    include_str!("../migrations/0034_corrections.sql"),
    include_str!("../migrations/0035_real_files.sql"),
    include_str!("../migrations/0036_exchange_rates.sql"),
    include_str!("../migrations/0037_sample_data.sql"),
    include_str!("../migrations/0038_imported_contact.sql"),
    include_str!("../migrations/0039_account_orders.sql"),
    include_str!("../migrations/0040_last_seen_minutes.sql"),
    include_str!("../migrations/0041_subscription.sql"),
];
const VERSION_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)";

/// The schema version that this program supports.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// One version's steps, in an engine's own words.
struct Migration {
    version: i64,
    steps: Vec<Step>,
}

impl Migration {
    /// All of it at once, with the record that it was done.
    fn whole(&self) -> String {
        let steps: String = self.steps.iter().map(Step::whole).collect();
        format!("{steps}\n; {}", record(self.version))
    }
}

fn record(version: i64) -> String {
    format!("INSERT INTO schema_version (version) VALUES ({version})")
}

/// The migrations that a database of this version needs.
fn pending(found: i64, words: &[(&str, &str)]) -> Result<Vec<Migration>, Error> {
    let texts = (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found);
    let migrations = texts.map(|(version, text)| {
        let text = words.iter().fold(text.to_owned(), |text, (word, own)| text.replace(word, own));
        let steps =
            steps::read(&text).map_err(|error| Error::fault(format!("migration {version}: {error}")))?;
        Ok(Migration { version, steps })
    });
    migrations.collect()
}

fn refuse_newer(found: i64) -> Result<(), Error> {
    if found > VERSION {
        return Err(Error::fault(format!(
            "the database has schema version {found}, but this rapport supports up to {VERSION}: \
             it was used by a newer rapport; start that one, or restore a backup"
        )));
    }
    Ok(())
}
