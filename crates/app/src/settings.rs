//! The company's settings.

use rapport_domain::company::Company;
use rapport_domain::member::Role;
use rapport_store::{Tx, company};
use serde_json::{Map, Value};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// A PATCH of the settings; its members are read against what is there.
pub struct PatchSettings(pub Map<String, Value>);

impl Command for PatchSettings {
    type Reply = Company;
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Company, Error> {
        let found = company::lock(tx)?.ok_or(Error::NotFound("company"))?;
        let settings = found.settings.patched(&self.0)?;
        if settings != found.settings {
            company::update_settings(tx, &settings)?;
            audit::record(tx, cx, "settings.changed", None, &Value::Object(self.0.clone()))?;
            cx.wake_cadence(tx);
        }
        Ok(Company { settings, ..found })
    }
}
