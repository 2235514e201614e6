//! Members: people who log in, and their roles. A company always has at least one owner. People become members by
//! accepting an invitation.

use rapport_domain::audit::Action;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Member, Role};
use rapport_store::{Tx, member, password_reset, session};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// Changes a member's role, or deactivates or reactivates them.
pub struct ChangeMember {
    pub person: PersonId,
    pub role: Option<Role>,
    pub active: Option<bool>,
}

impl Command for ChangeMember {
    type Reply = Member;
    const NEEDS: Needs = Needs::Role(Role::Admin);

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
        }
        let changed = Member { role, deactivated_at, ..found.clone() };
        if changed != found {
            member::update(tx, self.person, role, deactivated_at)?;
            if deactivated_at.is_some() {
                lock_out(tx, self.person)?;
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
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        rapport_store::company::lock(tx)?;
        let found = get(tx, self.0)?;
        may_give(cx, found.role)?;
        keep_an_owner(tx, &found)?;
        member::delete(tx, self.0)?;
        lock_out(tx, self.0)?;
        let detail = json!({ "email": found.email.as_str(), "role": found.role.as_str() });
        audit::record(tx, cx, Action::MemberRemoved, Some(self.0.to_string()), &detail)?;
        Ok(())
    }
}

/// Ends what let the person in. It stays ended if they come back.
fn lock_out(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    session::delete_of_member(tx, person)?;
    password_reset::delete_all(tx, person)?;
    Ok(())
}

fn shown(member: &Member) -> Value {
    json!({ "role": member.role.as_str(), "active": member.is_active() })
}

fn get(tx: &mut Tx, person: PersonId) -> Result<Member, Error> {
    member::get(tx, person)?.ok_or(Error::NotFound("member"))
}

fn may_give(cx: &Context, role: Role) -> Result<(), Error> {
    if role > cx.caller.role {
        return Err(Error::forbidden("role_required", "only an owner can change or remove an owner"));
    }
    Ok(())
}

fn keep_an_owner(tx: &mut Tx, leaving: &Member) -> Result<(), Error> {
    let is_active_owner = |member: &Member| member.role == Role::Owner && member.deactivated_at.is_none();
    let others = member::list(tx)?.into_iter().filter(|member| member.person != leaving.person);
    if is_active_owner(leaving) && !others.into_iter().any(|member| is_active_owner(&member)) {
        return Err(Error::conflict("last_owner", "a company needs at least one owner"));
    }
    Ok(())
}
