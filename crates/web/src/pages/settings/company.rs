//! The company: its name, time zone and currency, how long its audit log is kept, and who may export and delete.

use std::sync::LazyLock;

use askama::Template;
use axum::Router;
use axum::response::{Redirect, Response};
use axum::routing::get;
use rapport_app::settings::PatchSettings;
use rapport_domain::company::time_zone_name;
use rapport_domain::right::Grant;
use serde_json::Value;

use super::{CURRENCIES, tabbed, typed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::form::As;
use crate::pages::kit::frame::{Frame, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{Pages, SETTINGS};

const PATH: &str = "/settings";
const FIELDS: [&str; 2] = ["time_zone", "default_currency"];

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<CompanyPage, ()>).post(save))
        // Webhooks are settings too, but have their own page.
        .route("/settings/webhooks", get(|| async { Redirect::to("/webhooks") }))
}

#[derive(Template)]
#[template(path = "settings/company.html")]
struct CompanyPage {
    frame: Frame,
    draft: Draft,
    zones: &'static [String],
    currencies: &'static [&'static str],
    /// Who a right can be granted to.
    grants: [(&'static str, &'static str); 2],
}
framed!("settings": CompanyPage);
tabbed!("company": CompanyPage);

impl Load<()> for CompanyPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let frame = visit.frame(SETTINGS).await?;
        let settings = &frame.company.settings;
        let draft = Draft::new([
            ("name", frame.company.name.clone()),
            ("time_zone", time_zone_name(&settings.time_zone).to_owned()),
            ("default_currency", settings.default_currency.code().to_owned()),
            ("audit_days", settings.audit_days.to_string()),
            ("export_role", settings.grants.export.as_str().to_owned()),
            ("delete_role", settings.grants.delete.as_str().to_owned()),
        ]);
        let grants = Grant::ALL.map(|grant| (grant.as_str(), grant.label()));
        Ok(Self { frame, draft, zones: &ZONES, currencies: &CURRENCIES, grants })
    }
}

/// The common names of time zones.
static ZONES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let is_usual = |name: &str| {
        let area = name.split_once('/').map(|(area, _)| area);
        name == "UTC"
            || area.is_some_and(|area| !matches!(area, "posix" | "right" | "Etc" | "SystemV" | "US"))
    };
    let names = jiff::tz::db().available().map(|name| name.as_str().to_owned());
    let mut names: Vec<String> = names.filter(|name| is_usual(name)).collect();
    names.sort_unstable();
    names
});

async fn save(action: Action) -> Result<Response, Refusal> {
    let mut members = typed(&action.form, &FIELDS);
    let others = [
        ("name", As::Text),
        ("audit_days", As::Number),
        ("export_role", As::Text),
        ("delete_role", As::Text),
    ];
    members.extend(action.form.members(&others));
    for name in ["audit_days", "name"] {
        if action.form.is_ticked(name) {
            // An empty field is an invalid value, not a missing member.
            members.entry(name).or_insert_with(|| Value::from(""));
        }
    }
    let command = PatchSettings(members);
    action.send(command, |page: &mut CompanyPage, draft| page.draft = draft).await?;
    action.done(PATH, "Company settings saved.")
}
