//! Forgotten passwords: a link sent to the person's address, usable once, valid for an hour. Using a link that came by
//! mail proves the address. A company may hand over a link only for a login that works for it alone.
//!
//! A request gets the same answer in the same time whether the person exists or not: it is only stored. A job
//! looks up the person afterwards.

use std::collections::HashSet;

use rapport_domain::audit::Action;
use rapport_domain::credential::{self, Issued, Kind as CredentialKind, Presented, issue};
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::invalid::Invalid;
use rapport_domain::invitation::link;
use rapport_domain::mail::Kind;
use rapport_domain::mail_limit::Target;
use rapport_domain::member::{Email, Member};
use rapport_domain::password::Known;
use rapport_domain::password_reset::{MAX_RESETS, RESET_PATH, RESET_SECONDS};
use rapport_domain::right::Right;
use rapport_store::password_reset::{self, Membership, Reset, Way};
use rapport_store::{Lane, Snapshot, Tx, address_change, mail as mails, member, second_factor, session};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::context::Services;
use crate::error::Error;
use crate::mail::{self, Recipient};
use crate::member::works_only_here;
use crate::notice::{self, Notice};
use crate::{App, audit, letter, mail_limit, password, second_factor as factors, sso};

/// Requests handled per round.
const AT_ONCE: i64 = 50;

/// Stores that someone forgot their password. Runs without a company.
pub struct RequestReset(pub Email);

impl Command for RequestReset {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let address = cx.address_text();
        password_reset::request(tx, &self.0, address.as_deref(), cx.now)?;
        let written = cx.mail_written();
        tx.after_commit(move || written.notify_one());
        Ok(())
    }
}

/// Answers the stored requests.
pub async fn answer_requests(app: &App) -> Result<(), Error> {
    for email in app.read_across(|across| password_reset::requests(across, AT_ONCE)).await? {
        let wanted = email.clone();
        let mut found = app.read_across(move |across| password_reset::memberships(across, &wanted)).await?;
        // One mail for each login, from the company that it joined first and that takes a password.
        let mut seen = HashSet::new();
        found.retain(|membership| !membership.needs_sso && seen.insert(membership.person));
        let Some(last) = found.last().map(|membership| membership.person) else {
            app.write(&Access::NO_COMPANY, DropRequest(email)).await?;
            continue;
        };
        for Membership { person, company, .. } in found {
            let answer = AnswerRequest { email: email.clone(), person, is_last: person == last };
            app.write(&Access::System(company), answer).await?;
        }
    }
    Ok(())
}

/// Drops a request: nobody has this address, or nobody who may log in.
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

/// Issues the reset a person asked for; a second node finds nothing left to do.
struct AnswerRequest {
    email: Email,
    person: PersonId,
    /// Whether no other login with this address is to be answered.
    is_last: bool,
}

impl Command for AnswerRequest {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let is_open = if self.is_last {
            password_reset::take_request(tx, &self.email)?.is_some()
        } else {
            password_reset::is_requested(tx, &self.email)?
        };
        if !is_open || !cx.outside().mail_configured {
            return Ok(());
        }
        password_reset::prune(tx, cx.now)?;
        let recently = cx.now.plus_seconds(-RESET_SECONDS);
        if password_reset::count(tx, self.person, recently)? >= MAX_RESETS {
            self.log_too_many();
            return Ok(());
        }
        let Some(found) = member::get(tx, self.person)?.filter(Member::is_active) else {
            return Ok(());
        };
        if sso::check_password(tx, self.person).is_err() {
            return Ok(());
        }
        match send(tx, cx, &found, Way::ByMail) {
            // The answer is the same for every address, so it says nothing about the person.
            Err(Error::TooMany { .. }) => {
                self.log_too_many();
                Ok(())
            }
            sent => sent,
        }
    }
}

impl AnswerRequest {
    fn log_too_many(&self) {
        tracing::info!(person = %self.person, "a password reset was not mailed; too many were");
    }
}

fn make(tx: &mut Tx, cx: &Context, person: PersonId, way: Way) -> Result<Issued, rapport_store::Error> {
    let issued = issue(CredentialKind::PasswordReset, cx.company().id, cx.random());
    password_reset::insert(tx, &issued.hash, person, cx.now, cx.now.plus_seconds(RESET_SECONDS), way)?;
    Ok(issued)
}

/// Mails a person a link. Writes nothing if too many were mailed.
fn send(tx: &mut Tx, cx: &Context, found: &Member, way: Way) -> Result<(), Error> {
    mail_limit::admit(tx, cx, Kind::PasswordReset, Target::Address(&found.email))?;
    let issued = make(tx, cx, found.person, way)?;
    let letter =
        letter::password_reset(&cx.outside().base_url, &found.name, &cx.company().name, &issued.text);
    let not_after = cx.now.plus_seconds(RESET_SECONDS);
    mail::write(tx, cx, Kind::PasswordReset, letter, vec![Recipient::from(found)], not_after)?;
    Ok(())
}

/// Lets an admin make a member choose a new password: by mail, or with a returned link if mail isn't
/// configured.
pub struct SendReset(pub PersonId);

impl Command for SendReset {
    /// The link to pass on by hand; `None` if it was sent by mail.
    type Reply = Option<String>;
    const NEEDS: Needs = Needs::Right(Right::Members);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Option<String>, Error> {
        let found = member::get(tx, self.0)?.ok_or(Error::NotFound("member"))?;
        if !found.is_active() {
            return Err(Error::conflict("member_inactive", "this member is deactivated"));
        }
        if !cx.caller.manages(found.role) {
            let detail = "only an owner can reset the password of an owner";
            return Err(Error::forbidden("role_required", detail));
        }
        sso::check_password(tx, self.0)?;
        let by_hand = !cx.outside().mail_configured;
        if by_hand && !works_only_here(tx, self.0)? {
            // Says nothing about other companies: a proven address alone has the same answer.
            let detail = "this login isn't only for this company, so the link can only be sent by mail";
            return Err(Error::conflict("mail_not_configured", detail));
        }
        let detail = json!({ "email": found.email.as_str(), "by_hand": by_hand });
        audit::record(tx, cx, Action::PasswordResetSent, Some(self.0.to_string()), &detail)?;
        if !by_hand {
            return send(tx, cx, &found, Way::ByMail).map(|()| None);
        }
        let issued = make(tx, cx, self.0, Way::ByHand)?;
        Ok(Some(link(&cx.outside().base_url, RESET_PATH, &issued.text)))
    }
}

/// Mails the caller a link to choose a new password, which proves that the address is theirs.
pub struct ProveAddress;

impl Command for ProveAddress {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    /// The link removes second factors.
    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        if !cx.outside().mail_configured {
            return Err(Error::conflict("mail_not_configured", "this server doesn't send mail"));
        }
        sso::check_password(tx, *id)?;
        let recently = cx.now.plus_seconds(-RESET_SECONDS);
        if password_reset::count(tx, *id, recently)? >= MAX_RESETS {
            let seconds = u64::try_from(RESET_SECONDS).unwrap_or(0);
            return Err(Error::too_many(
                "too_many_mails",
                "you asked for this too often; wait an hour",
                seconds,
            ));
        }
        let found = member::get(tx, *id)?.ok_or(Error::Unauthenticated)?;
        send(tx, cx, &found, Way::ForProof)?;
        let detail = json!({ "email": found.email.as_str(), "by_hand": false });
        audit::record(tx, cx, Action::PasswordResetSent, Some(id.to_string()), &detail)?;
        Ok(())
    }
}

/// Lets the server's administrator give a person who can't log in a new password: returns the link.
pub struct MakeResetLink(pub PersonId);

impl Command for MakeResetLink {
    type Reply = String;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<String, Error> {
        let found = member::get(tx, self.0)?.filter(Member::is_active).ok_or(Error::NotFound("member"))?;
        sso::check_password(tx, self.0)?;
        password_reset::prune(tx, cx.now)?;
        let issued = make(tx, cx, self.0, Way::ByHand)?;
        let detail = json!({ "email": found.email.as_str(), "by_hand": true });
        audit::record(tx, cx, Action::PasswordResetSent, Some(self.0.to_string()), &detail)?;
        Ok(link(&cx.outside().base_url, RESET_PATH, &issued.text))
    }
}

/// A usable reset, looked up before a password is hashed for it.
pub struct OpenReset {
    pub email: Email,
    name: String,
    company: String,
    presented: Presented,
}

impl OpenReset {
    pub async fn look(app: &App, token: &str) -> Result<Self, Error> {
        let presented =
            credential::read(CredentialKind::PasswordReset, token).map_err(|_| invalid_token())?;
        let access = Access::System(presented.company);
        let found = app.read(&access, Needs::Server, move |snapshot, _| usable(snapshot, &presented));
        let found = found.await.map_err(of_no_company)?;
        let open = found.reply.filter(|reset| found.now < reset.expires_at).ok_or_else(invalid_token)?;
        Ok(Self { email: open.email, name: open.name, company: found.company.name, presented })
    }

    /// The company that sent the mail.
    pub fn access(&self) -> Access {
        Access::System(self.presented.company)
    }

    /// Checks and hashes the password that its holder chose. Slow on purpose, so call it neither on an engine thread nor
    /// in async code.
    pub fn choose(self, services: &Services, password: &str) -> Result<ConfirmReset, Error> {
        let known = Known { email: &self.email, name: &self.name, company: &self.company };
        let password_hash = password::choose(services, password, &known)?;
        Ok(self.confirm(password_hash))
    }

    /// With a password that was checked and hashed already.
    pub fn confirm(self, password_hash: String) -> ConfirmReset {
        ConfirmReset { presented: self.presented, password_hash }
    }
}

/// Sets the password a person chose, and invalidates all their other links.
pub struct ConfirmReset {
    presented: Presented,
    password_hash: String,
}

impl Command for ConfirmReset {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = usable(tx, &self.presented)?;
        let found = found.filter(|reset| cx.now < reset.expires_at).ok_or_else(invalid_token)?;
        // If two use it at once, only one of them removes it.
        if !password_reset::consume(tx, &self.presented.hash)? {
            return Err(invalid_token());
        }
        password_reset::delete_all(tx, found.person)?;
        address_change::delete_all(tx, found.person)?;
        member::set_password(tx, found.person, &self.password_hash)?;
        session::delete_of_person(tx, found.person)?;
        let proved = prove(tx, cx, &found)?;
        mails::withdraw(tx, Kind::PasswordReset, &found.email, "used", cx.now)?;
        let actor = Actor::Person { id: found.person, name: found.name };
        let target = Some(found.person.to_string());
        audit::record_by(tx, cx, actor, Action::PasswordChanged, target, &json!({ "by": "reset" }))?;
        notice::send(tx, cx, found.person, Notice::PasswordReset { proved })?;
        Ok(())
    }
}

/// Notes that the address is the person's, if the link shows it; returns whether that is new.
///
/// A second factor may belong to somebody else: the person who got a handed-over link set up that login. So an
/// ordinary link proves nothing about a login that has one. A link that was asked for in a session in order to prove the
/// address does, and removes the second factors: the person who reads the mail sets up their own.
fn prove(tx: &mut Tx, cx: &Context, reset: &Reset) -> Result<bool, Error> {
    let is_proven = member::login(tx, reset.person)?.is_some_and(|login| login.proven_at.is_some());
    if is_proven || reset.way == Way::ByHand {
        return Ok(false);
    }
    if second_factor::count(tx, reset.person)? > 0 {
        if reset.way == Way::ByMail {
            return Ok(false);
        }
        factors::remove_all(tx, reset.person)?;
    }
    Ok(member::prove(tx, reset.person, cx.now)?)
}

/// The reset with this secret, unless its company requires single sign-on now.
fn usable(snapshot: &mut Snapshot, presented: &Presented) -> Result<Option<Reset>, rapport_store::Error> {
    let Some(found) = password_reset::find(snapshot, &presented.hash)? else { return Ok(None) };
    let settings = rapport_store::sso::get(snapshot)?.map(|sso| sso.settings);
    Ok(Some(found).filter(|found| settings.is_none_or(|settings| settings.takes_password(found.person))))
}

fn invalid_token() -> Error {
    let detail = "this link is invalid, expired, replaced or already used";
    Invalid::one("/token", "invalid_token", detail).into()
}

fn of_no_company(error: Error) -> Error {
    if matches!(error, Error::Unauthenticated) { invalid_token() } else { error }
}
