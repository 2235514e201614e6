//! The company's settings.

use rapport_domain::audit::Action;
use rapport_domain::company::{Company, Settings, Weekday, time_zone_name};
use rapport_domain::member::Role;
use rapport_domain::pipeline::Status;
use rapport_store::{Tx, company, digest};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// A PATCH of the settings; its members are checked against the current ones.
pub struct PatchSettings(pub Map<String, Value>);

impl Command for PatchSettings {
    type Reply = Company;
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Company, Error> {
        let found = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
        let settings = found.settings.patched(&self.0)?;
        if settings != found.settings {
            company::update_settings(tx, &settings)?;
            if schedule(&settings) != schedule(&found.settings) {
                digest::set_schedule_since(tx, cx.now)?;
            }
            let detail = audit::changes(&shown(&found.settings), &shown(&settings));
            audit::record(tx, cx, Action::SettingsChanged, None, &detail)?;
            cx.wake_cadence(tx);
        }
        Ok(Company { settings, ..found })
    }
}

/// The settings that decide when the digest is due.
fn schedule(settings: &Settings) -> (bool, Weekday, &str) {
    (settings.digest_enabled, settings.digest_weekday, time_zone_name(&settings.time_zone))
}

/// The settings as the wire spells them.
fn shown(settings: &Settings) -> Value {
    let stages: Vec<&str> = settings.tracked_stages.statuses().into_iter().map(Status::as_str).collect();
    json!({
        "cadence_days": settings.cadence_days,
        "tracked_stages": stages,
        "digest_enabled": settings.digest_enabled,
        "digest_weekday": settings.digest_weekday.as_str(),
        "time_zone": time_zone_name(&settings.time_zone),
        "default_currency": settings.default_currency.code(),
        "audit_days": settings.audit_days,
    })
}
