//! Proving again who one is, in a session that goes on: with the password, or with a passkey. Commands that need a recent
//! proof say so with [`Command::needs_proof`].

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::invalid::Invalid;
use rapport_domain::second_factor::Factor;
use rapport_store::member::Login;
use rapport_store::{Tx, session};
use serde_json::json;

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::passkey::Used;
use crate::second_factor::adding;
use crate::{audit, password};

/// Notes in a session that its person has just proved again who they are.
pub struct ProveAgain {
    session: Presented,
    /// Instead of the password.
    passkey: Option<Used>,
}

impl ProveAgain {
    /// Checks the person's password. Slow on purpose, so call it neither on an engine thread nor in async code.
    pub fn check(login: &Login, typed: &str, session: Presented) -> Result<Self, Error> {
        if !password::verify(typed, &login.password_hash) {
            return Err(Invalid::one("/password", "wrong_password", "incorrect password").into());
        }
        Ok(Self { session, passkey: None })
    }

    /// With a passkey that was checked.
    pub fn with_passkey(used: Used, session: Presented) -> Self {
        Self { session, passkey: Some(used) }
    }
}

/// The passkey isn't the person's, or its answer was used before.
pub fn wrong_passkey() -> Error {
    Invalid::one("/passkey", "wrong_passkey", "wasn't accepted; try again, or type your password").into()
}

impl Command for ProveAgain {
    type Reply = ();
    /// Also for somebody whose company requires a second factor: they need a proof to set it up.
    const NEEDS: Needs = Needs::Login;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let person = adding(cx)?;
        let detail = match &self.passkey {
            Some(used) if used.person() != person || !used.accept(tx, cx.now)? => return Err(wrong_passkey()),
            Some(_) => json!({ "factor": Factor::Passkey.as_str() }),
            None => json!({}),
        };
        session::prove(tx, &self.session.hash, cx.now)?;
        audit::record(tx, cx, Action::SessionProved, Some(person.to_string()), &detail)?;
        Ok(())
    }
}
