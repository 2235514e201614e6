//! Sends, resends and revokes invitations. If mail is not configured, the link is shown once instead.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use rapport_app::invitation::{Invite, Invited, ResendInvitation, RevokeInvitation};
use rapport_domain::id::InvitationId;
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::{INVITATION_DAYS, Request};

use super::back_to;
use super::members::{MembersPage, PATH};
use crate::pages::Pages;
use crate::pages::kit::action::Action;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/settings/invitations/{id}/resend", post(resend).merge(back_to(PATH)))
        .route("/settings/invitations/{id}/revoke", post(revoke).merge(back_to(PATH)))
}

/// Handles the invitation form on the members page.
pub async fn invite(action: Action) -> Result<Response, Refusal> {
    let invited = action.run(read(&action.form), |page: &mut MembersPage, draft| page.draft = draft).await?;
    sent(&action, invited).await
}

async fn resend(action: Action<InvitationId>) -> Result<Response, Refusal> {
    let invited = action.act::<MembersPage, _>(ResendInvitation(action.id)).await?;
    sent(&action, invited).await
}

async fn revoke(action: Action<InvitationId>) -> Result<Response, Refusal> {
    action.act::<MembersPage, _>(RevokeInvitation(action.id)).await?;
    action.done(PATH, "Invitation revoked. Its link no longer works.")
}

fn read(form: &Form) -> Result<Invite, Invalid> {
    let members = form.members(&[("email", As::Text), ("role", As::Text)]);
    Request::parse(&members).map(|Request { email, name, role }| Invite { email, name, role })
}

/// Says that the mail is on its way, or shows the link.
async fn sent<I: Send + Sync>(action: &Action<I>, invited: Invited) -> Result<Response, Refusal> {
    let Invited { invitation, link } = invited;
    let email = invitation.email.as_str();
    let Some(url) = link else {
        return action.done(PATH, format!("An invitation to {email} is on its way."));
    };
    let what = format!("The invitation for {email}. It works once and expires in {INVITATION_DAYS} days.");
    MembersPage::with_link(action, what, url).await
}
