//! A person's new email address: asked for with their password, and confirmed with a link that goes to the new address.
//!
//! The answer is the same whether or not that address has a login already. Only the mail to the address says so.

use rapport_domain::address_change::{CHANGE_SECONDS, MAX_CHANGES};
use rapport_domain::audit::Action;
use rapport_domain::credential::{self, Kind as CredentialKind, Presented, issue};
use rapport_domain::history::Actor;
use rapport_domain::invalid::Invalid;
use rapport_domain::mail::Kind;
use rapport_domain::member::Email;
use rapport_domain::right::Right;
use rapport_store::address_change::{self, NewChange};
use rapport_store::{Tx, mail as mails, member, password_reset, session};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::letter::{Letter, address as letters};
use crate::mail::{self, Recipient};

const NEEDS: Needs = Needs::Right(Right::Own);
/// A notice that couldn't be sent for this long is outdated.
const NOTICE_DAYS: i64 = 2;

/// Mails a link to the address that the caller wants, and a notice to the one they have. The caller has proved that they
/// know their password.
pub struct RequestAddressChange(pub Email);

impl Command for RequestAddressChange {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        refuse_sso(cx)?;
        if !cx.outside().mail_configured {
            return Err(Error::conflict("mail_not_configured", "this server doesn't send mail"));
        }
        let found = member::get(tx, *id)?.ok_or(Error::Unauthenticated)?;
        if found.email == self.0 {
            return Err(Invalid::one("/email", "unchanged", "is already your address").into());
        }
        address_change::prune(tx, cx.now)?;
        if address_change::count(tx, *id, cx.now.plus_seconds(-CHANGE_SECONDS))? >= MAX_CHANGES {
            let seconds = u64::try_from(CHANGE_SECONDS).unwrap_or(0);
            return Err(Error::too_many(
                "too_many_mails",
                "you asked for this too often; wait an hour",
                seconds,
            ));
        }
        let issued = issue(CredentialKind::AddressChange, cx.company().id, cx.random());
        let expires_at = cx.now.plus_seconds(CHANGE_SECONDS);
        // Also if the address has a login, so that nothing but the mail tells. Nobody gets that link.
        let change = NewChange { person: *id, email: &self.0, created_at: cx.now, expires_at };
        address_change::insert(tx, &issued.hash, &change)?;
        let base_url = &cx.outside().base_url;
        let letter = if member::proven_login(tx, &self.0)?.is_some() {
            letters::known(base_url, &self.0)
        } else {
            letters::link(base_url, &self.0, &issued.text)
        };
        let recipient = Recipient { email: self.0.clone(), member: None };
        mail::write_asked(tx, cx, Kind::AddressChange, letter, recipient, expires_at)?;
        notify(tx, cx, &found.email, letters::requested(base_url, &found.name, &self.0))?;
        audit::record(tx, cx, Action::PersonEmailRequested, Some(id.to_string()), &json!({}))?;
        Ok(())
    }
}

/// The secret of a link, if it is well-formed.
pub fn read_link(text: &str) -> Option<Presented> {
    credential::read(CredentialKind::AddressChange, text).ok()
}

/// Gives the caller the address that a link was mailed to, which proves that it is theirs. Returns the address.
pub struct ConfirmAddressChange {
    pub link: Presented,
    /// The session that stays; all other sessions of the person end.
    pub kept: Presented,
}

impl Command for ConfirmAddressChange {
    type Reply = Email;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Email, Error> {
        let Actor::Person { id, name } = cx.actor() else { return Err(Error::Unauthenticated) };
        refuse_sso(cx)?;
        let found = address_change::find(tx, &self.link.hash)?;
        let found = found.filter(|change| change.person == *id && cx.now < change.expires_at);
        let found = found.ok_or_else(invalid_token)?;
        // If two use it at once, only one of them removes it.
        if !address_change::consume(tx, &self.link.hash)? {
            return Err(invalid_token());
        }
        if !member::set_email(tx, *id, &found.to, cx.now)? {
            let detail = "this address already has a login, so nothing was changed";
            return Err(Error::conflict("person_known", detail));
        }
        address_change::delete_all(tx, *id)?;
        password_reset::delete_all(tx, *id)?;
        session::delete_others(tx, *id, &self.kept.hash)?;
        mails::withdraw(tx, Kind::PasswordReset, &found.from, "replaced", cx.now)?;
        mails::withdraw(tx, Kind::AddressChange, &found.to, "used", cx.now)?;
        notify(tx, cx, &found.from, letters::changed(&cx.outside().base_url, name, &found.from, &found.to))?;
        let detail = json!({ "email": { "from": found.from.as_str(), "to": found.to.as_str() } });
        audit::record(tx, cx, Action::PersonEmailChanged, Some(id.to_string()), &detail)?;
        Ok(found.to)
    }
}

/// Refuses a session that began with single sign-on. The login may open other companies, and the people who run the
/// provider must not get into those by changing its address.
fn refuse_sso(cx: &Context) -> Result<(), Error> {
    if cx.caller.by_sso {
        let detail = "you logged in with single sign-on; log in with your password to change your address";
        return Err(Error::conflict("sso_session", detail));
    }
    Ok(())
}

/// Tells the old address.
fn notify(tx: &mut Tx, cx: &Context, address: &Email, letter: Letter) -> Result<(), Error> {
    let recipient = Recipient { email: address.clone(), member: None };
    mail::write(tx, cx, Kind::AddressNotice, letter, vec![recipient], cx.now.plus_days(NOTICE_DAYS))?;
    Ok(())
}

fn invalid_token() -> Error {
    let detail = "this link is invalid, expired, replaced or already used";
    Invalid::one("/token", "invalid_token", detail).into()
}
