//! Invitations: a link that makes its holder a member. One per address, usable once, valid for a week.

use rapport_domain::audit::Action;
use rapport_domain::credential::{self, Issued, Kind as CredentialKind, Presented, issue};
use rapport_domain::history::Actor;
use rapport_domain::id::{InvitationId, PersonId};
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::{INVITATION_DAYS, INVITATION_PATH, Invitation, link};
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Member, Role, check_password};
use rapport_store::{Tx, invitation, mail as mails, member};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::context::Services;
use crate::error::Error;
use crate::mail::{self, Recipient};
use crate::{App, audit, letter, password};

const NEEDS: Needs = Needs::Role(Role::Admin);

/// An invitation just created or renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invited {
    pub invitation: Invitation,
    /// The link to pass on by hand; `None` if it was sent by mail.
    pub link: Option<String>,
}

pub struct Invite {
    pub email: Email,
    pub role: Role,
}

impl Command for Invite {
    type Reply = Invited;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Invited, Error> {
        may_give(cx, self.role)?;
        if !member::by_email(tx, &[&self.email])?.is_empty() {
            return Err(Error::conflict("already_a_member", "this person is already a member"));
        }
        if let Some(old) = invitation::by_email(tx, &self.email)?.filter(|old| old.is_expired(cx.now)) {
            invitation::delete(tx, old.id)?;
        }
        let made = Invitation {
            id: cx.id(),
            email: self.email.clone(),
            role: self.role,
            invited_by: cx.actor().name().map(str::to_owned),
            created_at: cx.now,
            expires_at: cx.now.plus_days(INVITATION_DAYS),
        };
        let issued = issue(CredentialKind::Invitation, cx.company().id, cx.random());
        if !invitation::insert(tx, &issued.hash, &made)? {
            let detail = "this address already has an open invitation; resend or revoke it";
            return Err(Error::conflict("already_invited", detail));
        }
        let detail = json!({ "email": self.email.as_str(), "role": self.role.as_str() });
        audit::record(tx, cx, Action::InvitationCreated, Some(made.id.to_string()), &detail)?;
        send(tx, cx, made, &issued)
    }
}

/// Sends the invitation again with a new link: only the recipient has the old one.
pub struct ResendInvitation(pub InvitationId);

impl Command for ResendInvitation {
    type Reply = Invited;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Invited, Error> {
        let found = invitation::lock(tx, self.0)?.ok_or(Error::NotFound("invitation"))?;
        may_give(cx, found.role)?;
        let issued = issue(CredentialKind::Invitation, cx.company().id, cx.random());
        let expires_at = cx.now.plus_days(INVITATION_DAYS);
        invitation::renew(tx, found.id, &issued.hash, expires_at)?;
        mails::withdraw(tx, Kind::Invitation, &found.email, "replaced", cx.now)?;
        let detail = json!({
            "email": found.email.as_str(),
            "expires_at": { "from": found.expires_at.to_string(), "to": expires_at.to_string() },
        });
        audit::record(tx, cx, Action::InvitationResent, Some(found.id.to_string()), &detail)?;
        send(tx, cx, Invitation { expires_at, ..found }, &issued)
    }
}

pub struct RevokeInvitation(pub InvitationId);

impl Command for RevokeInvitation {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = invitation::lock(tx, self.0)?.ok_or(Error::NotFound("invitation"))?;
        may_give(cx, found.role)?;
        invitation::delete(tx, found.id)?;
        mails::withdraw(tx, Kind::Invitation, &found.email, "revoked", cx.now)?;
        let detail = json!({ "email": found.email.as_str(), "role": found.role.as_str() });
        audit::record(tx, cx, Action::InvitationRevoked, Some(found.id.to_string()), &detail)?;
        Ok(())
    }
}

fn send(tx: &mut Tx, cx: &Context, made: Invitation, issued: &Issued) -> Result<Invited, Error> {
    let base_url = &cx.outside().base_url;
    let by = made.invited_by.as_deref().filter(|_| matches!(cx.actor(), Actor::Person { .. }));
    let letter = letter::invitation(base_url, &cx.company().name, by, made.role, &issued.text);
    let recipient = Recipient { email: made.email.clone(), member: None };
    let is_sent = mail::write(tx, cx, Kind::Invitation, letter, vec![recipient], made.expires_at)?;
    let link = (!is_sent).then(|| link(base_url, INVITATION_PATH, &issued.text));
    Ok(Invited { invitation: made, link })
}

fn may_give(cx: &Context, role: Role) -> Result<(), Error> {
    if role > cx.caller.role {
        return Err(Error::forbidden("role_required", "only an owner can invite an owner"));
    }
    Ok(())
}

/// What a link offers its holder.
pub struct Offer {
    pub company: String,
    pub email: Email,
    pub role: Role,
    presented: Presented,
    login: Option<member::Login>,
}

impl Offer {
    /// Looks up an invitation by the secret in its link.
    pub async fn look(app: &App, token: &str) -> Result<Self, Error> {
        let presented = credential::read(CredentialKind::Invitation, token).map_err(|_| invalid_token())?;
        let access = Access::System(presented.company);
        let found = app.read(&access, Needs::Server, move |snapshot, _| {
            let Some(found) = invitation::by_hash(snapshot, &presented.hash)? else { return Ok(None) };
            let login = member::login(snapshot, &found.email)?;
            Ok(Some((found, login)))
        });
        let found = found.await.map_err(of_no_company)?;
        let open = found.reply.filter(|(invitation, _)| !invitation.is_expired(found.now));
        let (Invitation { email, role, .. }, login) = open.ok_or_else(invalid_token)?;
        Ok(Self { company: found.company.name, email, role, presented, login })
    }

    /// Whether the person already has a login, and joins with it.
    pub fn is_known(&self) -> bool {
        self.login.is_some()
    }

    /// The company to accept it in.
    pub fn access(&self) -> Access {
        Access::System(self.presented.company)
    }

    /// Checks the password of a known person, or hashes that of a new one. Slow on purpose, so call it
    /// neither on an engine thread nor in async code.
    pub fn answer(
        self,
        services: &Services,
        name: Option<String>,
        password: &str,
    ) -> Result<AcceptInvitation, Error> {
        let joining = match self.login {
            Some(login) if password::verify(password, &login.password_hash) => Joining::Known(login.person),
            Some(_) => {
                let detail = "incorrect password for this email address";
                return Err(Invalid::one("/password", "wrong_password", detail).into());
            }
            None => {
                check_password(password)
                    .map_err(|fault| Invalid::one("/password", fault.code, fault.detail))?;
                let name = name.unwrap_or_else(|| self.email.as_str().to_owned());
                Joining::New { name, password_hash: password::hash(services, password)? }
            }
        };
        Ok(AcceptInvitation { presented: self.presented, joining })
    }
}

enum Joining {
    /// A person who proved their identity.
    Known(PersonId),
    New {
        name: String,
        password_hash: String,
    },
}

/// Makes the holder of a link a member. The invitation is used up.
pub struct AcceptInvitation {
    presented: Presented,
    joining: Joining,
}

impl Command for AcceptInvitation {
    type Reply = Member;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Member, Error> {
        let found = invitation::by_hash(tx, &self.presented.hash)?;
        let found = found.filter(|found| !found.is_expired(cx.now)).ok_or_else(invalid_token)?;
        // If two accept it at once, only one of them deletes it.
        if !invitation::delete(tx, found.id)? {
            return Err(invalid_token());
        }
        let person = match &self.joining {
            Joining::Known(person) => *person,
            Joining::New { name, password_hash } => {
                let (person, is_new) =
                    member::person(tx, cx.id(), &found.email, name, password_hash, cx.now)?;
                if !is_new {
                    let detail = "this address already has an account; accept with its password";
                    return Err(Error::conflict("person_known", detail));
                }
                person
            }
        };
        if !member::insert(tx, person, found.role, cx.now)? {
            return Err(Error::conflict("already_a_member", "this person is already a member"));
        }
        let joined = member::get(tx, person)?.ok_or(Error::NotFound("member"))?;
        mails::withdraw(tx, Kind::Invitation, &found.email, "accepted", cx.now)?;
        let actor = Actor::Person { id: person, name: joined.name.clone() };
        let detail = json!({
            "member": person.to_string(), "email": found.email.as_str(), "role": found.role.as_str(),
        });
        audit::record_by(tx, cx, actor, Action::InvitationAccepted, Some(found.id.to_string()), &detail)?;
        Ok(joined)
    }
}

/// One answer for a link that is mistyped, unknown, used, revoked or expired.
fn invalid_token() -> Error {
    let detail = "this link is invalid, expired, revoked or already used";
    Invalid::one("/token", "invalid_token", detail).into()
}

/// A secret names its company; one with an unknown company isn't ours.
fn of_no_company(error: Error) -> Error {
    if matches!(error, Error::Unauthenticated) { invalid_token() } else { error }
}
