//! Changes people make to themselves: their name and their password. Both apply in every company.

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::invalid::Invalid;
use rapport_domain::password::Known;
use rapport_domain::right::Right;
use rapport_store::{Tx, address_change, member, password_reset, session};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::context::Services;
use crate::error::Error;
use crate::member::works_only_here;
use crate::notice::{self, Notice};
use crate::password;

const NEEDS: Needs = Needs::Right(Right::Own);

/// Changes the caller's name.
pub struct Rename(pub String);

impl Command for Rename {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, name } = cx.actor() else { return Err(Error::Unauthenticated) };
        // Says nothing about other companies: a proven address alone has the same answer.
        if cx.caller.by_sso && !works_only_here(tx, *id)? {
            let detail =
                "this login isn't only for this company; log in with your password to change your name";
            return Err(Error::conflict("sso_session", detail));
        }
        if name != &self.0 {
            member::rename(tx, *id, &self.0)?;
            let detail = json!({ "name": { "from": name, "to": self.0 } });
            audit::record(tx, cx, Action::PersonRenamed, Some(id.to_string()), &detail)?;
        }
        Ok(())
    }
}

/// Checks the password that a person typed into a field, as a proof that it is really them. Slow on purpose, so call it
/// neither on an engine thread nor in async code.
pub fn prove(login: &member::Login, typed: &str, field: &str) -> Result<(), Error> {
    if password::verify(typed, &login.password_hash) {
        return Ok(());
    }
    Err(Invalid::one(format!("/{field}"), "wrong_password", "incorrect password").into())
}

/// Changes the password of a caller who has proved they know the current one.
pub struct ChangePassword {
    person: PersonId,
    password_hash: String,
    /// The session that stays; all other sessions of the person end.
    kept: Presented,
}

impl ChangePassword {
    /// Checks both passwords. Slow on purpose, so call it neither on an engine thread nor in async code.
    pub fn check(
        services: &Services,
        login: &member::Login,
        known: &Known,
        (current, chosen): (&str, &str),
        kept: Presented,
    ) -> Result<Self, Error> {
        prove(login, current, "current")?;
        let password_hash = password::choose(services, chosen, known)?;
        Ok(Self { person: login.person, password_hash, kept })
    }
}

impl Command for ChangePassword {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        member::set_password(tx, self.person, &self.password_hash)?;
        password_reset::delete_all(tx, self.person)?;
        address_change::delete_all(tx, self.person)?;
        session::delete_others(tx, self.person, &self.kept.hash)?;
        let target = Some(self.person.to_string());
        audit::record(tx, cx, Action::PasswordChanged, target, &json!({ "by": "person" }))?;
        notice::send(tx, cx, self.person, Notice::PasswordChanged)?;
        Ok(())
    }
}
