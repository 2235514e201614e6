//! The members of the company with their roles, and pending invitations.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use rapport_app::member::{ChangeMember, RemoveMember};
use rapport_app::password_reset::SendReset;
use rapport_app::read::members;
use rapport_app::{Command, Error};
use rapport_domain::id::PersonId;
use rapport_domain::invalid::{Invalid, Members, as_str};
use rapport_domain::invitation::Invitation;
use rapport_domain::member::{Member, Role};

use super::{back_to, roles_up_to, stretch, tabbed};
use crate::pages::kit::draft::Draft;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::frame::{Frame, Page as _, Shown, framed};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;
use crate::pages::{ADMIN, Pages};

pub(super) const PATH: &str = "/settings/members";

pub fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(show).post(super::invitations::invite))
        .route("/settings/members/{id}/role", post(change_role).merge(back_to(PATH)))
        .route("/settings/members/{id}/deactivate", post(deactivate).merge(back_to(PATH)))
        .route("/settings/members/{id}/reactivate", post(reactivate).merge(back_to(PATH)))
        .route("/settings/members/{id}/password-reset", post(reset_password).merge(back_to(PATH)))
        .route("/settings/members/{id}/remove", post(remove).merge(back_to(PATH)))
}

#[derive(Template)]
#[template(path = "settings/members.html")]
struct MembersPage {
    frame: Frame,
    members: Vec<Member>,
    next: Option<PersonId>,
    invitations: Vec<Invitation>,
    roles: Vec<(&'static str, &'static str)>,
    /// The invitation form.
    draft: Draft,
    /// The faults of an action on a member or an invitation.
    acted: Draft,
    link: Option<Link>,
}
framed!("settings": MembersPage);
tabbed!("members": MembersPage);

/// A link to share by hand, shown once.
struct Link {
    what: String,
    url: String,
}

impl MembersPage {
    async fn load(pages: &Pages, visitor: &Visitor, after: Option<PersonId>) -> Result<Self, Refusal> {
        let found = pages.show(visitor, ADMIN, |snapshot, _| members::page(snapshot));
        let Shown { frame, reply: (members, invitations) } = found.await?;
        let (members, next) = stretch(members, |member| member.person, after.as_ref());
        let roles = roles_up_to(frame.role);
        let (draft, acted) = (Draft::default(), Draft::default());
        Ok(Self { frame, members, next, invitations, roles, draft, acted, link: None })
    }

    /// Whether the visitor may change this member. Nobody may change a higher role.
    fn may_change(&self, member: &Member) -> bool {
        member.role <= self.frame.role
    }

    fn is_own(&self, member: &Member) -> bool {
        member.person == self.frame.person
    }
}

async fn show(
    State(pages): State<Pages>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let after = Form::of_query(query.as_deref()).text("after").parse().ok();
    Ok(MembersPage::load(&pages, &visitor, after).await?.respond())
}

/// Runs an action on a member or an invitation. Its faults are shown at the top of the page.
pub(super) async fn act<C: Command>(
    pages: &Pages,
    visitor: &Visitor,
    form: &Form,
    command: C,
    done: impl FnOnce(C::Reply) -> Flash,
) -> Result<Response, Refusal> {
    match pages.submit(visitor, form, command).await {
        Ok(reply) => Ok(pages.done(PATH, done(reply))),
        Err(error) => refuse_act(pages, visitor, form, error).await,
    }
}

pub(super) async fn refuse_act(
    pages: &Pages,
    visitor: &Visitor,
    form: &Form,
    error: Error,
) -> Result<Response, Refusal> {
    let acted = Draft::refused(form, error).map_err(|error| visitor.refused(error))?;
    Ok(MembersPage { acted, ..MembersPage::load(pages, visitor, None).await? }.refuse())
}

/// Shows the invitation form again with its faults.
pub(super) async fn refuse_invite(
    pages: &Pages,
    visitor: &Visitor,
    form: &Form,
    error: Error,
) -> Result<Response, Refusal> {
    let draft = Draft::refused(form, error).map_err(|error| visitor.refused(error))?;
    Ok(MembersPage { draft, ..MembersPage::load(pages, visitor, None).await? }.refuse())
}

/// Shows the page with a link, once.
pub(super) async fn show_link(
    pages: &Pages,
    visitor: &Visitor,
    what: String,
    url: String,
) -> Result<Response, Refusal> {
    let page = MembersPage::load(pages, visitor, None).await?;
    Ok(MembersPage { link: Some(Link { what, url }), ..page }.respond())
}

fn person(id: &str) -> Result<PersonId, Refusal> {
    id.parse().map_err(|_| Refusal::not_found("member"))
}

async fn change_role(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let person = person(&id)?;
    let role = match read_role(&form) {
        Ok(role) => role,
        Err(invalid) => return refuse_act(&pages, &visitor, &form, invalid.into()).await,
    };
    let change = ChangeMember { person, role: Some(role), active: None };
    act(&pages, &visitor, &form, change, |changed| {
        Flash::good(format!("{} now has the role {}.", changed.name, changed.role.as_str()))
    })
    .await
}

fn read_role(form: &Form) -> Result<Role, Invalid> {
    let members = form.members(&[("role", As::Text)]);
    let mut members = Members::of(&members);
    let role = members.required("role", |value| Role::parse(as_str(value)?));
    members.finish()?;
    Ok(role.unwrap_or(Role::Member))
}

async fn deactivate(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let person = person(&id)?;
    let change = ChangeMember { person, role: None, active: Some(false) };
    act(&pages, &visitor, &form, change, |changed| {
        Flash::good(format!("{} can no longer log in.", changed.name))
            .undo(format!("/settings/members/{person}/reactivate"), Vec::new())
    })
    .await
}

async fn reactivate(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let change = ChangeMember { person: person(&id)?, role: None, active: Some(true) };
    act(&pages, &visitor, &form, change, |changed| Flash::good(format!("{} can log in again.", changed.name)))
        .await
}

async fn remove(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let person = person(&id)?;
    act(&pages, &visitor, &form, RemoveMember(person), |()| {
        Flash::good("Member removed. Their changes stay in the history.")
    })
    .await
}

async fn reset_password(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let person = person(&id)?;
    match pages.submit(&visitor, &form, SendReset(person)).await {
        Ok(None) => Ok(pages.done(PATH, Flash::good("A mail with a password-reset link is on its way."))),
        Ok(Some(url)) => {
            let what = "The password-reset link. It works once and expires in an hour.".to_owned();
            show_link(&pages, &visitor, what, url).await
        }
        Err(error) => refuse_act(&pages, &visitor, &form, error).await,
    }
}
