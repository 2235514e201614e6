//! Lets somebody in whom the company's provider vouches for: with the login that they are linked to, with the login of a
//! member who has the same address, or as a new member.

use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::invitation::Invitation;
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Member};
use rapport_domain::sso::Settings;
use rapport_domain::sso::entry::{Claims, Entry, Holder, Known, Reason, Standing, entry};
use rapport_domain::sso::removed::Mark;
use rapport_store::member::NewPerson;
use rapport_store::{Tx, company, invitation, mail as mails, member, removed_member, sso, sso_identity};
use serde_json::json;

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::session::Start;
use crate::sso::confirmed;
use crate::sso::provider::Provider;
use crate::{audit, password, session};

/// Begins the session of somebody whose claims were checked; returns the text for the cookie, or why not.
pub struct Admit {
    /// Who made the claims.
    pub provider: Provider,
    pub claims: Claims,
    pub browser: Option<String>,
}

impl Command for Admit {
    type Reply = Result<String, Reason>;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Result<String, Reason>, Error> {
        // Somebody's first two logins at once make one member, and a removal comes before or after this.
        company::lock(tx)?;
        // The settings may have changed while they were at the provider.
        let Some(settings) = sso::get(tx)?.map(|sso| sso.settings).filter(|found| self.provider.is_of(found))
        else {
            return Ok(Err(Reason::Off));
        };
        let email = match self.claims.vouched(&confirmed(tx, &settings)?) {
            Ok(email) => email,
            Err(reason) => return Ok(Err(reason)),
        };
        let invited = invitation::by_email(tx, &email)?.filter(|found| !found.is_expired(cx.now));
        let person = match self.look(tx, &settings, &email, invited.is_some())? {
            Err(reason) => return Ok(Err(reason)),
            Ok(Entry::Linked(person)) => person,
            Ok(Entry::Link(person)) => link(tx, cx, person, &email)?,
            Ok(Entry::Join) => self.join(tx, cx, &settings, &email, invited)?,
        };
        sso_identity::put(tx, &settings.issuer, &self.claims.subject, person, &email, cx.now)?;
        let start = Start { by_sso: true, ..Start::now(cx) };
        let (text, found) = session::write(tx, cx, person, self.browser.as_deref(), start)?;
        let detail = json!({ "by": "single sign-on" });
        audit::record_by(tx, cx, actor(&found), Action::SessionBegun, Some(person.to_string()), &detail)?;
        Ok(Ok(text))
    }
}

impl Admit {
    /// Asks the rule how they come in.
    fn look(
        &self,
        tx: &mut Tx,
        settings: &Settings,
        email: &Email,
        is_invited: bool,
    ) -> Result<Result<Entry, Reason>, Error> {
        let linked = match sso_identity::find(tx, &settings.issuer, &self.claims.subject)? {
            Some(person) => Some((person, standing(tx, person)?)),
            None => None,
        };
        let mut holders = Vec::new();
        for found in member::by_email(tx, &[email])? {
            let login = member::login(tx, found.person)?;
            holders.push(Holder {
                person: found.person,
                is_active: found.is_active(),
                is_proven: login.is_some_and(|login| login.proven_at.is_some()),
            });
        }
        let marks = [Mark::of_email(email), Mark::of_subject(&settings.issuer, &self.claims.subject)];
        let mut was_removed = false;
        for mark in marks {
            was_removed |= removed_member::is_marked(tx, mark)?;
        }
        Ok(entry(&Known { linked, holders: &holders, is_invited, was_removed }))
    }

    /// Makes a member with a login for this company. It opens nothing else, even if another login has the same address, and
    /// it has no password. If they were invited, they get the role that they were invited to.
    fn join(
        &self,
        tx: &mut Tx,
        cx: &Context,
        settings: &Settings,
        email: &Email,
        invited: Option<Invitation>,
    ) -> Result<PersonId, Error> {
        let role = invited.as_ref().map_or(settings.role, |invited| invited.role);
        if let Some(invited) = &invited {
            invitation::delete(tx, invited.id)?;
            mails::withdraw(tx, Kind::Invitation, email, "accepted", cx.now)?;
        }
        let (id, name, password_hash) = (cx.id(), self.claims.display_name(email), password::NOBODYS);
        let new = NewPerson { id, email, name: &name, password_hash, is_proven: false };
        member::insert_person(tx, &new, cx.now)?;
        member::insert(tx, id, role, cx.now)?;
        let detail = json!({ "email": email.as_str(), "role": role.as_str(), "invited": invited.is_some() });
        let actor = Actor::Person { id, name };
        audit::record_by(tx, cx, actor, Action::MemberJoined, Some(id.to_string()), &detail)?;
        Ok(id)
    }
}

fn link(tx: &mut Tx, cx: &Context, person: PersonId, email: &Email) -> Result<PersonId, Error> {
    let found = member::get(tx, person)?.ok_or(Error::NotFound("member"))?;
    let detail = json!({ "email": email.as_str() });
    audit::record_by(tx, cx, actor(&found), Action::SsoLinked, Some(person.to_string()), &detail)?;
    Ok(person)
}

fn actor(member: &Member) -> Actor {
    Actor::Person { id: member.person, name: member.name.clone() }
}

fn standing(tx: &mut Tx, person: PersonId) -> Result<Standing, Error> {
    Ok(match member::get(tx, person)? {
        Some(found) if found.is_active() => Standing::Active,
        Some(_) => Standing::Deactivated,
        None => Standing::Gone,
    })
}

/// Notes that a member was removed or left, so that they don't come back just by logging in.
pub(crate) fn keep_out(tx: &mut Tx, cx: &Context, gone: &Member) -> Result<(), Error> {
    let mut marks = vec![Mark::of_email(&gone.email)];
    for identity in sso_identity::of_member(tx, gone.person)? {
        marks.push(Mark::of_email(&identity.email));
        marks.push(Mark::of_subject(&identity.issuer, &identity.subject));
    }
    for mark in marks {
        removed_member::mark(tx, mark, cx.now)?;
    }
    Ok(())
}
