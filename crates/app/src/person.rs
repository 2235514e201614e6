//! Changes people make to themselves: their name and their password. Both apply in every company.

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::invalid::Invalid;
use rapport_domain::member::{Role, check_password};
use rapport_store::{Tx, member, password_reset, session};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::context::Services;
use crate::error::Error;
use crate::password;

const NEEDS: Needs = Needs::Role(Role::Member);

/// Changes the caller's name.
pub struct Rename(pub String);

impl Command for Rename {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, name } = cx.actor() else { return Err(Error::Unauthenticated) };
        if name != &self.0 {
            member::rename(tx, *id, &self.0)?;
            let detail = json!({ "name": { "from": name, "to": self.0 } });
            audit::record(tx, cx, Action::PersonRenamed, Some(id.to_string()), &detail)?;
        }
        Ok(())
    }
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
        current: &str,
        chosen: &str,
        kept: Presented,
    ) -> Result<Self, Error> {
        if !password::verify(current, &login.password_hash) {
            return Err(Invalid::one("/current", "wrong_password", "incorrect password").into());
        }
        check_password(chosen).map_err(|fault| Invalid::one("/password", fault.code, fault.detail))?;
        let password_hash = password::hash(services, chosen)?;
        Ok(Self { person: login.person, password_hash, kept })
    }
}

impl Command for ChangePassword {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        member::set_password(tx, self.person, &self.password_hash)?;
        password_reset::delete_all(tx, self.person)?;
        session::delete_others(tx, self.person, &self.kept.hash)?;
        let target = Some(self.person.to_string());
        audit::record(tx, cx, Action::PasswordChanged, target, &json!({ "by": "person" }))?;
        Ok(())
    }
}
