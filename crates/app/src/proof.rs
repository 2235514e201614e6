//! Proving again who one is, in a session that goes on. Commands that need a recent proof say so with
//! [`Command::needs_proof`].

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::history::Actor;
use rapport_domain::invalid::Invalid;
use rapport_domain::right::Right;
use rapport_store::member::Login;
use rapport_store::{Tx, session};
use serde_json::json;

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::{audit, password};

/// Notes in a session that its person has just proved again who they are.
pub struct ProveAgain(Presented);

impl ProveAgain {
    /// Checks the person's password. Slow on purpose, so call it neither on an engine thread nor in async code.
    pub fn check(login: &Login, typed: &str, session: Presented) -> Result<Self, Error> {
        if !password::verify(typed, &login.password_hash) {
            return Err(Invalid::one("/password", "wrong_password", "incorrect password").into());
        }
        Ok(Self(session))
    }
}

impl Command for ProveAgain {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        session::prove(tx, &self.0.hash, cx.now)?;
        audit::record(tx, cx, Action::SessionProved, Some(id.to_string()), &json!({}))?;
        Ok(())
    }
}
