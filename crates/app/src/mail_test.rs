//! Sends a test mail to oneself: it takes the same path as every other mail, and its outcome is recorded.

use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
use rapport_domain::mail::Kind;
use rapport_domain::member::Email;
use rapport_domain::right::Right;
use rapport_store::{Tx, member};
use serde_json::json;

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::mail::{self, Recipient};
use crate::{audit, letter};

/// A test that took longer than this no longer means anything.
const WORTH_SENDING_SECONDS: i64 = 60 * 60;

/// Sends a test mail to the person who asks; returns the address.
pub struct SendTestMail;

impl Command for SendTestMail {
    type Reply = Email;
    const NEEDS: Needs = Needs::Right(Right::Settings);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Email, Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::NotFound("person")) };
        let member = member::get(tx, *id)?.ok_or(Error::NotFound("member"))?;
        let letter = letter::test(&cx.outside().base_url, &cx.company().name);
        let not_after = cx.now.plus_seconds(WORTH_SENDING_SECONDS);
        if !mail::write_asked(tx, cx, Kind::Test, letter, Recipient::from(&member), not_after)? {
            let detail = "mail isn't configured on this server, so a test can't be sent";
            return Err(Error::conflict("mail_not_configured", detail));
        }
        audit::record(tx, cx, Action::MailTested, None, &json!({ "recipient": member.email.as_str() }))?;
        Ok(member.email)
    }
}
