//! Invitations: the only way to become a member. One per address, usable once, valid for a week.
//!
//! A link that came by mail proves that its holder owns the address. A link that the company handed over proves
//! nothing, so a login made with it works for this company only, whoever else has the address (`docs/identity.md`).

use rapport_domain::audit::Action;
use rapport_domain::credential::{self, Issued, Kind as CredentialKind, Presented, issue};
use rapport_domain::history::Actor;
use rapport_domain::id::{InvitationId, PersonId};
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::{Acceptance, INVITATION_DAYS, INVITATION_PATH, Invitation, Way, link};
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::password::Known;
use rapport_domain::right::Right;
use rapport_store::member::{Login, NewPerson};
use rapport_store::{
    Tx, address_change, departed, invitation, mail as mails, member, password_reset, session,
};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::context::Services;
use crate::error::Error;
use crate::mail::{self, Recipient};
use crate::{App, audit, letter, password, sso};

const NEEDS: Needs = Needs::Right(Right::Members);

/// An invitation just created or renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invited {
    pub invitation: Invitation,
    /// The link to pass on by hand; `None` if it was sent by mail.
    pub link: Option<String>,
}

pub struct Invite {
    pub email: Email,
    /// Proposed to the person, who decides.
    pub name: Option<String>,
    pub role: Role,
}

impl Command for Invite {
    type Reply = Invited;
    const NEEDS: Needs = NEEDS;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Invited, Error> {
        may_give(cx, self.role)?;
        if !member::by_email(tx, &[&self.email])?.is_empty() {
            return Err(already_a_member());
        }
        if let Some(old) = invitation::by_email(tx, &self.email)?.filter(|old| old.is_expired(cx.now)) {
            invitation::delete(tx, old.id)?;
        }
        make(tx, cx, self)
    }
}

/// Writes an invitation to the company of the transaction.
pub(crate) fn make(
    tx: &mut Tx,
    cx: &Context,
    Invite { email, name, role }: &Invite,
) -> Result<Invited, Error> {
    let made = Invitation {
        id: cx.id(),
        email: email.clone(),
        role: *role,
        invited_by: cx.actor().name().map(str::to_owned),
        created_at: cx.now,
        expires_at: cx.now.plus_days(INVITATION_DAYS),
        name: name.clone(),
        by_mail: cx.outside().mail_configured,
    };
    let issued = issue(CredentialKind::Invitation, cx.company().id, cx.random());
    if !invitation::insert(tx, &issued.hash, &made)? {
        let detail = "this address already has an open invitation; resend or revoke it";
        return Err(Error::conflict("already_invited", detail));
    }
    let detail = json!({ "email": email.as_str(), "role": role.as_str() });
    audit::record(tx, cx, Action::InvitationCreated, Some(made.id.to_string()), &detail)?;
    send(tx, cx, made, &issued)
}

/// Sends the invitation again with a new link: only the recipient has the old one.
pub struct ResendInvitation(pub InvitationId);

impl Command for ResendInvitation {
    type Reply = Invited;
    const NEEDS: Needs = NEEDS;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Invited, Error> {
        let found = invitation::lock(tx, self.0)?.ok_or(Error::NotFound("invitation"))?;
        may_give(cx, found.role)?;
        let issued = issue(CredentialKind::Invitation, cx.company().id, cx.random());
        let (until, by_mail) = (found.expires_at, cx.outside().mail_configured);
        let renewed = Invitation { expires_at: cx.now.plus_days(INVITATION_DAYS), by_mail, ..found };
        invitation::renew(tx, &renewed, &issued.hash)?;
        mails::withdraw(tx, Kind::Invitation, &renewed.email, "replaced", cx.now)?;
        let detail = json!({
            "email": renewed.email.as_str(),
            "expires_at": { "from": until.to_string(), "to": renewed.expires_at.to_string() },
        });
        audit::record(tx, cx, Action::InvitationResent, Some(renewed.id.to_string()), &detail)?;
        send(tx, cx, renewed, &issued)
    }
}

pub struct RevokeInvitation(pub InvitationId);

impl Command for RevokeInvitation {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

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
    let is_sent = mail::write_asked(tx, cx, Kind::Invitation, letter, recipient, made.expires_at)?;
    let link = (!is_sent).then(|| link(base_url, INVITATION_PATH, &issued.text));
    Ok(Invited { invitation: made, link })
}

fn may_give(cx: &Context, role: Role) -> Result<(), Error> {
    if !cx.caller.manages(role) {
        return Err(Error::forbidden("role_required", "only an owner can invite an owner"));
    }
    Ok(())
}

/// What a link offers its holder.
pub struct Offer {
    pub company: String,
    pub slug: String,
    pub email: Email,
    pub role: Role,
    /// The name that was proposed for them.
    pub name: Option<String>,
    /// Whether the link came by mail, so that its holder owns the address.
    pub by_mail: bool,
    /// Whether they can join only with single sign-on.
    pub needs_sso: bool,
    presented: Presented,
    /// The login of the address's owner.
    owner: Option<Login>,
}

impl Offer {
    /// Looks up an invitation by the secret in its link.
    pub async fn look(app: &App, token: &str) -> Result<Self, Error> {
        let presented = credential::read(CredentialKind::Invitation, token).map_err(|_| invalid_token())?;
        let access = Access::System(presented.company);
        let found = app.read(&access, Needs::Server, move |snapshot, _| {
            let Some(found) = invitation::by_hash(snapshot, &presented.hash)? else { return Ok(None) };
            let owner = member::proven_login(snapshot, &found.email)?;
            Ok(Some((found, owner, sso::is_required(snapshot)?)))
        });
        let found = found.await.map_err(of_no_company)?;
        let open = found.reply.filter(|(invitation, ..)| !invitation.is_expired(found.now));
        let (Invitation { email, role, name, by_mail, .. }, owner, needs_sso) =
            open.ok_or_else(invalid_token)?;
        let slug = found.company.slug.as_str().to_owned();
        Ok(Self {
            company: found.company.name,
            slug,
            email,
            role,
            name,
            by_mail,
            needs_sso,
            presented,
            owner,
        })
    }

    /// How the holder joins, or `None` if they choose: whether the address has a login elsewhere is nobody's business
    /// but its owner's.
    pub fn way(&self) -> Option<Way> {
        let way = if self.owner.is_some() { Way::Existing } else { Way::New };
        self.by_mail.then_some(way)
    }

    /// The address whose password is guessed if the answer is wrong.
    pub fn guesses(&self, chosen: Option<Way>) -> bool {
        self.way().or(chosen) == Some(Way::Existing)
    }

    /// The company to accept it in.
    pub fn access(&self) -> Access {
        Access::System(self.presented.company)
    }

    /// Checks the password of the address's owner, or hashes that of a new login. Slow on purpose, so call it
    /// neither on an engine thread nor in async code.
    pub fn answer(self, services: &Services, acceptance: Acceptance) -> Result<AcceptInvitation, Error> {
        if self.needs_sso {
            return Err(sso::required());
        }
        let Acceptance { name, password, login, .. } = acceptance;
        match self.way().or(login).unwrap_or(Way::New) {
            Way::Existing => {
                let hash = self.owner.as_ref().map_or(password::NOBODYS, |owner| &owner.password_hash);
                let is_right = password::verify(&password, hash);
                let Some(owner) = self.owner.filter(|_| is_right) else {
                    let detail = "incorrect password for this email address";
                    return Err(Invalid::one("/password", "wrong_password", detail).into());
                };
                Ok(AcceptInvitation { presented: self.presented, joining: Joining::Owner(owner.person) })
            }
            Way::New => {
                let called = name.as_ref().or(self.name.as_ref()).map_or("", String::as_str);
                let known = Known { email: &self.email, name: called, company: &self.company };
                let password_hash = password::choose(services, &password, &known)?;
                Ok(self.join_with(name, password_hash))
            }
        }
    }

    /// Joins with a new login whose password was checked and hashed already.
    pub fn join_with(self, name: Option<String>, password_hash: String) -> AcceptInvitation {
        let name = name.or(self.name).unwrap_or_else(|| self.email.as_str().to_owned());
        AcceptInvitation { presented: self.presented, joining: Joining::New { name, password_hash } }
    }
}

enum Joining {
    /// The owner of the address, who proved to be them.
    Owner(PersonId),
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
        if sso::is_required(tx)? {
            return Err(sso::required());
        }
        // If two accept it at once, only one of them deletes it.
        if !invitation::delete(tx, found.id)? {
            return Err(invalid_token());
        }
        if !member::by_email(tx, &[&found.email])?.is_empty() {
            return Err(already_a_member());
        }
        let person = match &self.joining {
            Joining::Owner(person) => {
                if !departed::come_back(tx, *person)? {
                    return Err(invalid_token());
                }
                // What lets somebody into their other companies must not let them in here.
                session::delete_of_person(tx, *person)?;
                password_reset::delete_all(tx, *person)?;
                address_change::delete_all(tx, *person)?;
                *person
            }
            Joining::New { name, password_hash } => {
                let id = cx.id();
                let (email, is_proven) = (&found.email, found.by_mail);
                if !member::insert_person(
                    tx,
                    &NewPerson { id, email, name, password_hash, is_proven },
                    cx.now,
                )? {
                    let detail = "this address already has a login; accept with its password";
                    return Err(Error::conflict("person_known", detail));
                }
                id
            }
        };
        if !member::insert(tx, person, found.role, cx.now)? {
            return Err(already_a_member());
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

fn already_a_member() -> Error {
    Error::conflict("already_a_member", "this person is already a member")
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
