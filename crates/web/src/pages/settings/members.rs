//! The members of the company with their roles, and pending invitations.

use askama::Template;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::password_reset::SendReset;
use rapport_app::read::members::{self, Members};
use rapport_app::second_factor::ResetFactors;
use rapport_domain::id::PersonId;
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::Invitation;
use rapport_domain::member::{Member, Patch};
use rapport_domain::right::Right;
use serde_json::Value;

use super::{back_to, role_draft, roles_up_to, stretch, tabbed};
use crate::pages::kit::action::{Action, banner};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visit::{Load, Visit, show};
use crate::pages::{MEMBERS, Pages};

pub(super) const PATH: &str = "/settings/members";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show::<MembersPage, ()>).post(super::invitations::invite))
        .route("/settings/members/{id}/role", post(change_role).merge(back_to(PATH)))
        .route("/settings/members/{id}/deactivate", post(deactivate).merge(back_to(PATH)))
        .route("/settings/members/{id}/reactivate", post(reactivate).merge(back_to(PATH)))
        .route("/settings/members/{id}/password-reset", post(reset_password).merge(back_to(PATH)))
        .route("/settings/members/{id}/factor-reset", post(reset_factors).merge(back_to(PATH)))
        .route("/settings/members/{id}/remove", post(remove).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/members.html")]
pub struct MembersPage {
    frame: Frame,
    members: Vec<Member>,
    /// Those who have a second factor.
    with_factor: Vec<PersonId>,
    next: Option<PersonId>,
    invitations: Vec<Invitation>,
    roles: Vec<(&'static str, &'static str)>,
    /// The invitation form.
    pub draft: Draft,
    link: Option<Link>,
}
framed!("settings": MembersPage);
tabbed!("members": MembersPage);

/// A link to share by hand, shown once.
struct Link {
    what: String,
    url: String,
}

impl<I: Sync> Load<I> for MembersPage {
    async fn load(visit: &Visit<I>) -> Result<Self, Refusal> {
        let after = visit.query.text("after").parse().ok();
        let found = visit.read(MEMBERS, |snapshot, _| members::page(snapshot));
        let Shown { frame, reply: Members { members, with_factor, invitations } } = found.await?;
        let (members, next) = stretch(members, |member| member.person, after.as_ref());
        let roles = roles_up_to(frame.role);
        let draft = role_draft();
        Ok(Self { frame, members, with_factor, next, invitations, roles, draft, link: None })
    }
}

impl MembersPage {
    /// The page with a link, once.
    pub async fn with_link<I: Sync>(
        visit: &Visit<I>,
        what: String,
        url: String,
    ) -> Result<Response, Refusal> {
        Ok(Self { link: Some(Link { what, url }), ..Self::load(visit).await? }.respond())
    }

    /// Whether the visitor may change this member. Nobody may change a higher role.
    fn may_change(&self, member: &Member) -> bool {
        member.role <= self.frame.role
    }

    /// Their own second factor is on their profile.
    fn may_reset_factors(&self, member: &Member) -> bool {
        let has_one = self.with_factor.contains(&member.person);
        has_one && self.frame.may(Right::Factors) && !self.is_own(member)
    }

    fn is_own(&self, member: &Member) -> bool {
        member.person == self.frame.person
    }
}

async fn change_role(action: Action<PersonId>) -> Result<Response, Refusal> {
    let command = read_role(&action.form).map(|Patch { role, active }| ChangeMember {
        person: action.id,
        role,
        active,
    });
    let changed = action.run(command, banner::<MembersPage>).await?;
    action.done(PATH, format!("{} now has the role {}.", changed.name, changed.role.as_str()))
}

fn read_role(form: &Form) -> Result<Patch, Invalid> {
    let mut members = form.members(&[("role", As::Text)]);
    // A role can be changed but not left out.
    members.entry("role").or_insert_with(|| Value::from(""));
    Patch::parse(&members)
}

async fn deactivate(action: Action<PersonId>) -> Result<Response, Refusal> {
    let change = ChangeMember { person: action.id, role: None, active: Some(false) };
    let changed = action.act::<MembersPage, _>(change).await?;
    let flash = Flash::good(format!("{} can no longer log in.", changed.name));
    action.done(PATH, flash.undo(format!("/settings/members/{}/reactivate", action.id), Vec::new()))
}

async fn reactivate(action: Action<PersonId>) -> Result<Response, Refusal> {
    let change = ChangeMember { person: action.id, role: None, active: Some(true) };
    let changed = action.act::<MembersPage, _>(change).await?;
    action.done(PATH, format!("{} can log in again.", changed.name))
}

async fn remove(action: Action<PersonId>) -> Result<Response, Refusal> {
    action.act::<MembersPage, _>(RemoveMember(action.id)).await?;
    action.done(PATH, "Member removed. Their changes stay in the history.")
}

async fn reset_password(action: Action<PersonId>) -> Result<Response, Refusal> {
    match action.act::<MembersPage, _>(SendReset(action.id)).await? {
        None => action.done(PATH, "A mail with a password-reset link is on its way."),
        Some(url) => {
            let what = "The password-reset link. It works once and expires in an hour.".to_owned();
            MembersPage::with_link(&action, what, url).await
        }
    }
}

async fn reset_factors(action: Action<PersonId>) -> Result<Response, Refusal> {
    let found = action.act::<MembersPage, _>(ResetFactors(action.id)).await?;
    action.done(PATH, format!("{} is logged out, and has no second factor any more.", found.name))
}
