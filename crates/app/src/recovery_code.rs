//! Recovery codes: ten at a time, shown once, each usable once.

use rapport_domain::audit::Action;
use rapport_domain::id::PersonId;
use rapport_domain::recovery_code::{RECOVERY_CODES, make};
use rapport_domain::right::Right;
use rapport_store::{Tx, recovery_code, second_factor};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::notice::{self, Notice};
use crate::second_factor::caller;

/// Gives the caller new recovery codes. The old ones stop working.
pub struct MakeRecoveryCodes;

impl Command for MakeRecoveryCodes {
    type Reply = Vec<String>;
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Vec<String>, Error> {
        let person = caller(cx)?;
        if second_factor::count(tx, person)? == 0 {
            let detail = "recovery codes are for people with a second factor; set one up first";
            return Err(Error::conflict("no_second_factor", detail));
        }
        let codes = renew(tx, cx, person)?;
        audit::record(tx, cx, Action::RecoveryCodesCreated, Some(person.to_string()), &json!({}))?;
        notice::send(tx, cx, person, Notice::RecoveryCodesCreated)?;
        Ok(codes)
    }
}

/// Replaces a person's codes.
pub(crate) fn renew(tx: &mut Tx, cx: &Context, person: PersonId) -> Result<Vec<String>, Error> {
    recovery_code::delete_all(tx, person)?;
    let mut texts = Vec::with_capacity(RECOVERY_CODES);
    for _ in 0..RECOVERY_CODES {
        let code = make(cx.random());
        recovery_code::insert(tx, person, &code.hash, cx.now)?;
        texts.push(code.text);
    }
    Ok(texts)
}
