//! Single sign-on: the company's identity provider, its domains, and who may do without. For owners only.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::read::sso::{self, Domain, Page as Found};
use rapport_app::sso::settings::{PutSso, RemoveSso, test as test_provider};
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::invalid::Invalid;
use rapport_domain::member::Role;
use rapport_domain::sso::{Change, Mode, Settings, callback_path, default_roles};
use serde_json::Value;

use super::{back_to, role_label, tabbed};
use crate::pages::kit::action::Action;
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{Pages, SSO};
use crate::shared::sentence;

const PATH: &str = "/settings/sso";
const FIELDS: [(&str, As); 6] = [
    ("mode", As::Text),
    ("issuer", As::Text),
    ("client_id", As::Text),
    ("client_secret", As::Verbatim),
    ("default_role", As::Text),
    ("break_glass_owner", As::Text),
];

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<SsoPage, ()>).post(save))
        .route("/settings/sso/test", post(test).merge(back_to(PATH)))
        .route("/settings/sso/remove", post(remove).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/sso.html")]
struct SsoPage {
    frame: Frame,
    draft: Draft,
    /// The domains that are saved. None if nothing is.
    domains: Option<Vec<Domain>>,
    /// Where the provider sends people back to.
    callback_url: String,
    modes: Vec<(&'static str, &'static str)>,
    roles: Vec<(&'static str, &'static str)>,
    /// The possible break-glass owners, and the choice of none.
    owners: Vec<(String, String)>,
}
framed!("settings": SsoPage);
tabbed!("sso": SsoPage);

impl Load<()> for SsoPage {
    async fn load(visit: &Visit) -> Result<Self, Refusal> {
        let Shown { frame, reply } = visit.read(SSO, |snapshot, _| sso::page(snapshot)).await?;
        let Found { shown, owners } = reply;
        let path = callback_path(frame.company.slug.as_str());
        let none = (String::new(), "Nobody".to_owned());
        let owners = owners.into_iter().map(|owner| {
            let label = format!("{} ({})", owner.name, owner.email.as_str());
            (owner.person.to_string(), label)
        });
        Ok(Self {
            callback_url: format!("{}{path}", frame.outside().base_url),
            draft: draft(shown.as_ref().map(|shown| &shown.sso.settings)),
            domains: shown.map(|shown| shown.domains),
            modes: Mode::ALL.map(|mode| (mode.as_str(), mode_label(mode))).to_vec(),
            roles: default_roles().map(|role| (role.as_str(), role_label(role))).collect(),
            owners: std::iter::once(none).chain(owners).collect(),
            frame,
        })
    }
}

/// The form with the settings, except the secret, which is never shown again.
fn draft(settings: Option<&Settings>) -> Draft {
    let Some(settings) = settings else {
        return Draft::new([("default_role", Role::Member.as_str().to_owned())]);
    };
    let domains: Vec<&str> = settings.domains.iter().map(EmailDomain::as_str).collect();
    Draft::new([
        ("mode", settings.mode.as_str().to_owned()),
        ("issuer", settings.issuer.as_str().to_owned()),
        ("client_id", settings.client_id.clone()),
        ("domains", domains.join("\n")),
        ("default_role", settings.role.as_str().to_owned()),
        ("break_glass_owner", settings.break_glass.map(|person| person.to_string()).unwrap_or_default()),
    ])
}

const fn mode_label(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "Off",
        Mode::Optional => "Optional: members can also log in with a password",
        Mode::Required => "Required: only the break-glass owner can log in with a password",
    }
}

async fn save(action: Action) -> Result<Response, Refusal> {
    let command = read(&action.form).map(PutSso);
    action.run(command, |page: &mut SsoPage, draft| page.draft = draft).await?;
    action.done(PATH, "Single sign-on saved.")
}

fn read(form: &Form) -> Result<Change, Invalid> {
    let mut members = form.members(&FIELDS);
    let domains = form.text("domains").split([',', ' ', '\n', '\t']).filter(|domain| !domain.is_empty());
    members.insert("domains".to_owned(), domains.map(Value::from).collect());
    Change::parse(&members)
}

/// Asks the provider how it is set up.
async fn test(action: Action) -> Result<Response, Refusal> {
    let tested = test_provider(action.pages.app(), &action.visitor.access()).await;
    match tested.map_err(|error| action.visitor.refused(error))? {
        Ok(()) => action.done(PATH, "The provider answers, and we can work with it. Log in to try the rest."),
        Err(error) => action.done(PATH, Flash::bad(sentence(&error.to_string()))),
    }
}

async fn remove(action: Action) -> Result<Response, Refusal> {
    action.act::<SsoPage, _>(RemoveSso).await?;
    action.done(PATH, "Single sign-on removed.")
}
