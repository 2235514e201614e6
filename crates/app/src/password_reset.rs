//! Forgotten passwords: a link to the address of the person, used once, worth nothing after an hour.
//!
//! Asking answers alike and takes the same time whether there is such a person or not: the request is only noted.
//! Who it is about is looked up afterwards, by a job.

use rapport_domain::credential::{self, Issued, Kind as CredentialKind, Presented, issue};
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::{MAX_RESETS, RESET_PATH, RESET_SECONDS, link};
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Member, Role};
use rapport_store::password_reset::{self, Membership};
use rapport_store::{Lane, Tx, mail as mails, member, session};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::mail::{self, Recipient};
use crate::{App, audit, letter};

/// Requests that one look takes.
const AT_ONCE: i64 = 50;

/// Notes that somebody forgot their password. Runs without a company.
pub struct RequestReset(pub Email);

impl Command for RequestReset {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let address = cx.address.map(|address| address.to_canonical().to_string());
        password_reset::request(tx, &self.0, address.as_deref(), cx.now)?;
        let written = cx.mail_written();
        tx.after_commit(move || written.notify_one());
        Ok(())
    }
}

/// Answers the requests that were noted.
pub async fn answer_requests(app: &App) -> Result<(), Error> {
    for email in app.read_across(|across| password_reset::requests(across, AT_ONCE)).await? {
        let wanted = email.clone();
        match app.read_across(move |across| password_reset::membership(across, &wanted)).await? {
            Some(Membership { person, company, .. }) => {
                app.write(&Access::System(company), AnswerRequest { email, person }).await?;
            }
            None => app.write(&Access::NO_COMPANY, DropRequest(email)).await?,
        }
    }
    Ok(())
}

/// Nobody has this address, or nobody who may log in.
struct DropRequest(Email);

impl Command for DropRequest {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        password_reset::take_request(tx, &self.0)?;
        Ok(())
    }
}

/// Issues the reset that a person asked for; a node that comes second finds nothing to do.
struct AnswerRequest {
    email: Email,
    person: PersonId,
}

impl Command for AnswerRequest {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        if password_reset::take_request(tx, &self.email)?.is_none() || !cx.outside().mail_configured {
            return Ok(());
        }
        password_reset::prune(tx, cx.now)?;
        let recently = cx.now.plus_seconds(-RESET_SECONDS);
        if password_reset::count(tx, self.person, recently)? >= MAX_RESETS {
            return Ok(());
        }
        let Some(found) = member::get(tx, self.person)?.filter(Member::is_active) else {
            return Ok(());
        };
        let issued = make(tx, cx, self.person)?;
        let letter = letter::password_reset(&cx.outside().base_url, &found.name, &issued.text);
        let recipients = vec![Recipient::from(&found)];
        mail::write(tx, cx, Kind::PasswordReset, letter, recipients, cx.now.plus_seconds(RESET_SECONDS))?;
        Ok(())
    }
}

fn make(tx: &mut Tx, cx: &Context, person: PersonId) -> Result<Issued, rapport_store::Error> {
    let issued = issue(CredentialKind::PasswordReset, cx.company().id, cx.random());
    password_reset::insert(tx, &issued.hash, person, cx.now, cx.now.plus_seconds(RESET_SECONDS))?;
    Ok(issued)
}

/// An admin has a member choose a new password: sent to them, or answered to be handed over where there is no mail.
pub struct SendReset(pub PersonId);

impl Command for SendReset {
    /// The link to hand over by hand; `None` where it went by mail.
    type Reply = Option<String>;
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Option<String>, Error> {
        let found = member::get(tx, self.0)?.ok_or(Error::NotFound("member"))?;
        if !found.is_active() {
            return Err(Error::conflict("member_inactive", "this member is deactivated"));
        }
        if found.role > cx.caller.role {
            let detail = "only an owner can have an owner choose a new password";
            return Err(Error::forbidden("role_required", detail));
        }
        // With the link in hand an admin could take the log-in, and with it the person's other companies.
        let by_hand = !cx.outside().mail_configured;
        if by_hand && member::companies_of(tx, self.0)? > 1 {
            let detail = "this person belongs to other companies too: only mail can prove that it is them";
            return Err(Error::conflict("mail_not_configured", detail));
        }
        let issued = make(tx, cx, self.0)?;
        let base_url = &cx.outside().base_url;
        let letter = letter::password_reset(base_url, &found.name, &issued.text);
        let not_after = cx.now.plus_seconds(RESET_SECONDS);
        mail::write(tx, cx, Kind::PasswordReset, letter, vec![Recipient::from(&found)], not_after)?;
        let detail = json!({ "email": found.email.as_str(), "by_hand": by_hand });
        audit::record(tx, cx, "password_reset.sent", Some(self.0.to_string()), &detail)?;
        Ok(by_hand.then(|| link(base_url, RESET_PATH, &issued.text)))
    }
}

/// A reset that can be used: found before a password is hashed for it.
pub struct OpenReset {
    pub email: Email,
    presented: Presented,
}

impl OpenReset {
    pub async fn look(app: &App, token: &str) -> Result<Self, Error> {
        let presented =
            credential::read(CredentialKind::PasswordReset, token).map_err(|_| invalid_token())?;
        let access = Access::System(presented.company);
        let found =
            app.read(&access, Needs::Server, move |snapshot| password_reset::find(snapshot, &presented.hash));
        let found = found.await.map_err(of_no_company)?;
        let open = found.reply.filter(|reset| found.now < reset.expires_at).ok_or_else(invalid_token)?;
        Ok(Self { email: open.email, presented })
    }

    /// The company whose mail led here.
    pub fn access(&self) -> Access {
        Access::System(self.presented.company)
    }

    pub fn confirm(self, password_hash: String) -> ConfirmReset {
        ConfirmReset { presented: self.presented, password_hash }
    }
}

/// Gives a person the password they chose; every other link of theirs is worth nothing afterwards.
pub struct ConfirmReset {
    presented: Presented,
    password_hash: String,
}

impl Command for ConfirmReset {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = password_reset::find(tx, &self.presented.hash)?;
        let found = found.filter(|reset| cx.now < reset.expires_at).ok_or_else(invalid_token)?;
        // Of two who use it at once, one removes it.
        if !password_reset::consume(tx, &self.presented.hash)? {
            return Err(invalid_token());
        }
        password_reset::delete_all(tx, found.person)?;
        member::set_password(tx, found.person, &self.password_hash)?;
        session::delete_of_person(tx, found.person)?;
        mails::withdraw(tx, Kind::PasswordReset, &found.email, "used", cx.now)?;
        let actor = Actor::Person { id: found.person, name: found.name };
        let target = Some(found.person.to_string());
        audit::record_by(tx, cx, actor, "password.changed", target, &json!({ "by": "reset" }))?;
        Ok(())
    }
}

fn invalid_token() -> Error {
    let detail = "is no open password reset: it may be used, replaced or expired";
    Invalid::one("/token", "invalid_token", detail).into()
}

fn of_no_company(error: Error) -> Error {
    if matches!(error, Error::Unauthenticated) { invalid_token() } else { error }
}
