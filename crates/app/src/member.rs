//! Members: people who log in, and their roles. A company always has at least one owner. People become members by
//! accepting an invitation.

use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Member, Role};
use rapport_domain::right::Right;
use rapport_store::{Tx, address_change, member, password_reset, session};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::sso::{admission, break_glass};
use crate::{audit, credential};

/// Changes a member's role, or deactivates or reactivates them.
pub struct ChangeMember {
    pub person: PersonId,
    pub role: Option<Role>,
    pub active: Option<bool>,
}

impl Command for ChangeMember {
    type Reply = Member;
    const NEEDS: Needs = Needs::Right(Right::Members);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Member, Error> {
        // Two owners who demote each other at once must not both succeed.
        rapport_store::company::lock(tx)?;
        let found = get(tx, self.person)?;
        may_give(cx, found.role.max(self.role.unwrap_or(found.role)))?;
        let role = self.role.unwrap_or(found.role);
        let deactivated_at = match self.active {
            Some(true) => None,
            Some(false) => found.deactivated_at.or(Some(cx.now)),
            None => found.deactivated_at,
        };
        if role != Role::Owner || deactivated_at.is_some() {
            keep_an_owner(tx, &found)?;
            break_glass::keep(tx, &found)?;
        }
        let changed = Member { role, deactivated_at, ..found.clone() };
        if changed != found {
            member::update(tx, self.person, role, deactivated_at)?;
            if deactivated_at.is_some() {
                lock_out(tx, cx, self.person)?;
            }
            let detail = audit::changes(&shown(&found), &shown(&changed));
            audit::record(tx, cx, Action::MemberChanged, Some(self.person.to_string()), &detail)?;
        }
        Ok(changed)
    }
}

pub struct RemoveMember(pub PersonId);

impl Command for RemoveMember {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Members);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        rapport_store::company::lock(tx)?;
        let found = get(tx, self.0)?;
        may_give(cx, found.role)?;
        keep_an_owner(tx, &found)?;
        break_glass::keep(tx, &found)?;
        member::delete(tx, self.0)?;
        lock_out(tx, cx, self.0)?;
        admission::keep_out(tx, cx, &found)?;
        let detail = json!({ "email": found.email.as_str(), "role": found.role.as_str() });
        audit::record(tx, cx, Action::MemberRemoved, Some(self.0.to_string()), &detail)?;
        Ok(())
    }
}

/// The caller leaves the company.
pub struct LeaveCompany;

impl Command for LeaveCompany {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        rapport_store::company::lock(tx)?;
        let found = get(tx, *id)?;
        if is_last_owner(tx, &found)? {
            let detail = "you are the last owner; make somebody else an owner first, or delete the company";
            return Err(Error::conflict("last_owner", detail));
        }
        break_glass::keep(tx, &found)?;
        member::delete(tx, *id)?;
        lock_out(tx, cx, *id)?;
        admission::keep_out(tx, cx, &found)?;
        let detail = json!({ "email": found.email.as_str(), "role": found.role.as_str() });
        audit::record(tx, cx, Action::MemberLeft, Some(id.to_string()), &detail)?;
        Ok(())
    }
}

/// Ends what let the person in, and their tokens. Both stay ended if they come back.
fn lock_out(tx: &mut Tx, cx: &Context, person: PersonId) -> Result<(), Error> {
    credential::revoke_of(tx, cx, person)?;
    session::delete_of_member(tx, person)?;
    password_reset::delete_all(tx, person)?;
    address_change::delete_all(tx, person)?;
    Ok(())
}

/// Whether the login can never let its holder into another company. With a link to it, an admin could take it over.
pub(crate) fn works_only_here(tx: &mut Tx, person: PersonId) -> Result<bool, Error> {
    let is_proven = member::login(tx, person)?.is_some_and(|login| login.proven_at.is_some());
    Ok(!is_proven && member::companies_of(tx, person)? <= 1)
}

fn shown(member: &Member) -> Value {
    json!({ "role": member.role.as_str(), "active": member.is_active() })
}

fn get(tx: &mut Tx, person: PersonId) -> Result<Member, Error> {
    member::get(tx, person)?.ok_or(Error::NotFound("member"))
}

fn may_give(cx: &Context, role: Role) -> Result<(), Error> {
    if !cx.caller.manages(role) {
        return Err(Error::forbidden("role_required", "only an owner can change or remove an owner"));
    }
    Ok(())
}

fn keep_an_owner(tx: &mut Tx, leaving: &Member) -> Result<(), Error> {
    if is_last_owner(tx, leaving)? {
        return Err(Error::conflict("last_owner", "a company needs at least one owner"));
    }
    Ok(())
}

fn is_last_owner(tx: &mut Tx, leaving: &Member) -> Result<bool, Error> {
    let is_active_owner = |member: &Member| member.role == Role::Owner && member.deactivated_at.is_none();
    let mut others = member::list(tx)?.into_iter().filter(|member| member.person != leaving.person);
    Ok(is_active_owner(leaving) && !others.any(|member| is_active_owner(&member)))
}
