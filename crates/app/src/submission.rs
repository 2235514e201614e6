//! Makes a command sent by a form count once, however often the form arrives.

use rapport_domain::id::FormId;
use rapport_store::{Lane, Tx, submission};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;

/// How long a form is remembered after it was shown.
pub(crate) const FORM_DAYS: i64 = 2;

/// The code of the conflict for a form that was already submitted.
pub const ALREADY_SENT: &str = "already_sent";

/// Runs its command, unless the same form already did.
#[derive(Clone)]
pub struct Once<C> {
    pub form: FormId,
    pub command: C,
}

impl<C: Command> Command for Once<C> {
    type Reply = C::Reply;
    const NEEDS: Needs = C::NEEDS;
    const LANE: Lane = C::LANE;
    const EXCLUSIVE: bool = C::EXCLUSIVE;

    fn weight(&self) -> usize {
        self.command.weight()
    }

    fn needs_proof(&self, cx: &Context) -> bool {
        self.command.needs_proof(cx)
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<C::Reply, Error> {
        if !submission::take(tx, self.form)? {
            return Err(Error::conflict(
                ALREADY_SENT,
                "this form was already submitted; nothing was done twice",
            ));
        }
        self.command.run(tx, cx)
    }
}
