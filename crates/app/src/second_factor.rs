//! Second factors of a person: what adding and removing one has in common, and resetting all of them.
//!
//! A factor belongs to a login, so what is done here counts in every company of the person. The audit log of the company
//! that they are in records it, as it does for passwords.

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::member::Member;
use rapport_domain::right::Right;
use rapport_domain::second_factor::{Factor, Step};
use rapport_store::{Tx, member, passkey, recovery_code, second_factor, session, totp};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::member::works_only_here;
use crate::notice::{self, Notice};
use crate::{audit, recovery_code as codes};

/// The person who adds a factor or proves again who they are. Nobody who has one may do so before they have shown it: a
/// stolen password must not be enough.
pub(crate) fn adding(cx: &Context) -> Result<PersonId, Error> {
    if cx.caller.step == Step::Show {
        return Err(Error::lacks_factor());
    }
    caller(cx)
}

/// The person who is logged in. The people who run one company's provider must not change how they
/// get into other companies.
pub(crate) fn caller(cx: &Context) -> Result<PersonId, Error> {
    if cx.caller.by_sso {
        let detail = "you logged in with single sign-on; log in with your password to do this";
        return Err(Error::conflict("sso_session", detail));
    }
    match cx.actor() {
        Actor::Person { id, .. } => Ok(*id),
        _ => Err(Error::Unauthenticated),
    }
}

/// What adding a factor did besides.
pub struct Added {
    /// New recovery codes, if the person had none. This is the only time they are available.
    pub recovery_codes: Option<Vec<String>>,
}

/// Finishes adding a factor in a session: that one has shown it, and the others end.
pub(crate) fn added(
    tx: &mut Tx,
    cx: &Context,
    person: PersonId,
    session: Presented,
    factor: Factor,
    name: Option<&str>,
) -> Result<Added, Error> {
    session::note_factor(tx, &session.hash, cx.now)?;
    session::delete_others(tx, person, &session.hash)?;
    let lacks_codes = recovery_code::count(tx, person)? == 0;
    let recovery_codes = if lacks_codes { Some(codes::renew(tx, cx, person)?) } else { None };
    audit::record(tx, cx, Action::FactorAdded, Some(person.to_string()), &described(factor, name))?;
    notice::send(tx, cx, person, Notice::FactorAdded { factor, name })?;
    Ok(Added { recovery_codes })
}

/// Refuses to remove the last factor of a person who needs one.
pub(crate) fn may_remove_one(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    if second_factor::count(tx, person)? <= 1 && member::companies_requiring_factor(tx, person)? > 0 {
        let detail = "a company that you work in requires a second factor; add another one first";
        return Err(Error::conflict("second_factor_required", detail));
    }
    Ok(())
}

/// Finishes removing a factor: all other sessions end, and recovery codes go with the last one.
pub(crate) fn removed(
    tx: &mut Tx,
    cx: &Context,
    person: PersonId,
    kept: Presented,
    factor: Factor,
    name: Option<&str>,
) -> Result<(), Error> {
    if second_factor::count(tx, person)? == 0 {
        recovery_code::delete_all(tx, person)?;
    }
    session::delete_others(tx, person, &kept.hash)?;
    audit::record(tx, cx, Action::FactorRemoved, Some(person.to_string()), &described(factor, name))?;
    Ok(notice::send(tx, cx, person, Notice::FactorRemoved { factor, name })?)
}

fn described(factor: Factor, name: Option<&str>) -> Value {
    match name {
        Some(name) => json!({ "factor": factor.as_str(), "name": name }),
        None => json!({ "factor": factor.as_str() }),
    }
}

/// Removes every second factor of a person; returns whether there was one.
pub(crate) fn remove_all(tx: &mut Tx, person: PersonId) -> Result<bool, Error> {
    let had_passkeys = passkey::delete_all(tx, person)? > 0;
    let had_app = totp::delete(tx, person)?;
    recovery_code::delete_all(tx, person)?;
    Ok(had_passkeys || had_app)
}

/// Removes all second factors of a member who lost them, and ends their sessions. An owner can do this for a login that
/// works for their company alone; the server's administrator for every login.
pub struct ResetFactors(pub PersonId);

impl Command for ResetFactors {
    type Reply = Member;
    const NEEDS: Needs = Needs::Right(Right::Factors);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Member, Error> {
        let found = member::get(tx, self.0)?.ok_or(Error::NotFound("member"))?;
        if matches!(cx.actor(), Actor::Person { id, .. } if *id == self.0) {
            // There, the last one stays while a company requires it.
            let detail = "remove your own second factors on your profile page";
            return Err(Error::conflict("own_second_factor", detail));
        }
        let is_on_server = matches!(cx.actor(), Actor::CommandLine);
        if !is_on_server && !works_only_here(tx, self.0)? {
            // Says nothing about other companies: a proven address alone has the same answer.
            let detail = "this login isn't only for this company, so only its holder or the server's administrator \
                          can change its second factors";
            return Err(Error::conflict("login_not_confined", detail));
        }
        if !remove_all(tx, self.0)? {
            return Err(Error::conflict("no_second_factor", "this member has no second factor"));
        }
        session::delete_of_person(tx, self.0)?;
        let detail = json!({ "email": found.email.as_str() });
        audit::record(tx, cx, Action::FactorsReset, Some(self.0.to_string()), &detail)?;
        let by = Some(cx.company().name.as_str()).filter(|_| !is_on_server);
        notice::send(tx, cx, self.0, Notice::FactorsReset { by })?;
        Ok(found)
    }
}
