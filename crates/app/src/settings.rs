//! The company's name and settings.

use rapport_domain::audit::Action;
use rapport_domain::company::{Company, Settings, Weekday, time_zone_name};
use rapport_domain::pipeline::Status;
use rapport_domain::right::Right;
use rapport_store::{Tx, company, digest};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// A PATCH of the name and the settings; its members are checked against the current ones.
pub struct PatchSettings(pub Map<String, Value>);

impl Command for PatchSettings {
    type Reply = Company;
    const NEEDS: Needs = Needs::Right(Right::Settings);

    /// A stolen session must not make itself last longer, nor shorten what is remembered of it.
    fn needs_proof(&self, cx: &Context) -> bool {
        let settings = cx.settings();
        settings.patched(&self.0).is_ok_and(|patched| settings.guards_differ(&patched))
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Company, Error> {
        let found = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
        let changed = found.patched(&self.0)?;
        if changed == found {
            return Ok(found);
        }
        company::rename(tx, &changed.name)?;
        company::update_settings(tx, &changed.settings)?;
        if schedule(&changed.settings) != schedule(&found.settings) {
            digest::set_schedule_since(tx, cx.now)?;
        }
        let detail = audit::changes(&shown(&found), &shown(&changed));
        audit::record(tx, cx, Action::SettingsChanged, None, &detail)?;
        cx.wake_cadence(tx);
        Ok(changed)
    }
}

/// The settings that decide when the digest is due.
fn schedule(settings: &Settings) -> (bool, Weekday, &str) {
    (settings.digest_enabled, settings.digest_weekday, time_zone_name(&settings.time_zone))
}

/// The name and the settings as the wire spells them.
pub(crate) fn shown(company: &Company) -> Value {
    let Company { name, settings, .. } = company;
    let stages: Vec<&str> = settings.tracked_stages.statuses().into_iter().map(Status::as_str).collect();
    json!({
        "name": name,
        "cadence_days": settings.cadence_days,
        "tracked_stages": stages,
        "digest_enabled": settings.digest_enabled,
        "digest_weekday": settings.digest_weekday.as_str(),
        "time_zone": time_zone_name(&settings.time_zone),
        "default_currency": settings.default_currency.code(),
        "audit_days": settings.audit_days,
        "export_role": settings.grants.export.as_str(),
        "delete_role": settings.grants.delete.as_str(),
        "session_idle_minutes": settings.sessions.idle_minutes,
        "session_max_minutes": settings.sessions.max_minutes,
        "second_factor_required": settings.second_factor_required,
        "late_events_move": settings.late_events_move,
    })
}
