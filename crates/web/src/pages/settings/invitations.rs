//! Sends, resends and revokes invitations. If mail is not configured, the link is shown once instead.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::post;
use rapport_app::invitation::{Invite, Invited, ResendInvitation, RevokeInvitation};
use rapport_domain::id::InvitationId;
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::{INVITATION_DAYS, Request};

use super::back_to;
use super::members::{PATH, act, refuse_act, refuse_invite, show_link};
use crate::pages::Pages;
use crate::pages::kit::flash::Flash;
use crate::pages::kit::form::{As, Form};
use crate::pages::kit::refusal::Refusal;
use crate::pages::kit::visitor::Visitor;

pub fn routes() -> Router<Pages> {
    Router::new()
        .route("/settings/invitations/{id}/resend", post(resend).merge(back_to(PATH)))
        .route("/settings/invitations/{id}/revoke", post(revoke).merge(back_to(PATH)))
}

/// Handles the invitation form on the members page.
pub async fn invite(State(pages): State<Pages>, visitor: Visitor, form: Form) -> Result<Response, Refusal> {
    let invited = match read(&form) {
        Ok(command) => pages.submit(&visitor, &form, command).await,
        Err(invalid) => Err(invalid.into()),
    };
    match invited {
        Ok(invited) => sent(&pages, &visitor, invited).await,
        Err(error) => refuse_invite(&pages, &visitor, &form, error).await,
    }
}

fn read(form: &Form) -> Result<Invite, Invalid> {
    let members = form.members(&[("email", As::Text), ("role", As::Text)]);
    Request::parse(&members).map(|Request { email, role }| Invite { email, role })
}

/// Says that the mail is on its way, or shows the link.
async fn sent(pages: &Pages, visitor: &Visitor, invited: Invited) -> Result<Response, Refusal> {
    let Invited { invitation, link } = invited;
    let email = invitation.email.as_str();
    match link {
        None => Ok(pages.done(PATH, Flash::good(format!("An invitation to {email} is on its way.")))),
        Some(url) => {
            let what =
                format!("The invitation for {email}. It works once and expires in {INVITATION_DAYS} days.");
            show_link(pages, visitor, what, url).await
        }
    }
}

async fn resend(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    match pages.submit(&visitor, &form, ResendInvitation(read_id(&id)?)).await {
        Ok(invited) => sent(&pages, &visitor, invited).await,
        Err(error) => refuse_act(&pages, &visitor, &form, error).await,
    }
}

async fn revoke(
    State(pages): State<Pages>,
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Refusal> {
    let id = read_id(&id)?;
    act(&pages, &visitor, &form, RevokeInvitation(id), |()| {
        Flash::good("Invitation revoked. Its link no longer works.")
    })
    .await
}

fn read_id(id: &str) -> Result<InvitationId, Refusal> {
    id.parse().map_err(|_| Refusal::not_found("invitation"))
}
