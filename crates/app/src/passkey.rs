//! Passkeys: challenges for a browser, the answers of its authenticator, and the passkeys of a person.
//!
//! `webauthn-rs` wants the state of a challenge to stay on the server, so that no answer counts twice. We hand it to the
//! browser as a signed ticket instead: any node can finish what another one began, and strangers store nothing. An answer
//! that counts stores that its challenge is spent, until the challenge has expired.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use rapport_domain::audit::Action;
use rapport_domain::credential::{Presented, SecretHash};
use rapport_domain::id::{PasskeyId, PersonId};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::{Email, Member};
use rapport_domain::relying_party::{NoPasskeys, relying_party};
use rapport_domain::right::Right;
use rapport_domain::second_factor::{CHALLENGE_SECONDS, Factor, MAX_PASSKEYS};
use rapport_domain::time::Time;
use rapport_store::passkey::{self, NewPasskey};
use rapport_store::{Tx, member};
use serde_json::{Value, json};
use webauthn_rs::prelude::{
    DiscoverableAuthentication, Passkey, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Url, Uuid, Webauthn, WebauthnBuilder,
};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::context::Services;
use crate::error::Error;
use crate::second_factor::{Added, added, adding, caller, may_remove_one, removed};
use crate::vault::Purpose;
use crate::{App, audit, ticket};

pub use rapport_store::passkey::Known;

/// How authenticators name the service.
const NAME: &str = "Rapport";

/// This service as passkeys know it.
pub struct RelyingParty(Webauthn);

impl RelyingParty {
    pub(crate) fn of(base_url: &str) -> Result<Self, NoPasskeys> {
        let id = relying_party(base_url)?;
        let origin = Url::parse(base_url).map_err(|_| NoPasskeys::NoHostName)?;
        let patience = Duration::from_secs(CHALLENGE_SECONDS.unsigned_abs());
        let builder = WebauthnBuilder::new(&id, &origin).map_err(|_| NoPasskeys::NoHostName)?;
        let built = builder.rp_name(NAME).timeout(patience).build();
        built.map(Self).map_err(|_| NoPasskeys::NoHostName)
    }
}

/// A challenge for a browser.
pub struct Challenge {
    /// What `navigator.credentials` is called with; bytes are in base64url.
    pub options: Value,
    /// Comes back with the answer.
    pub state: String,
}

fn available(services: &Services) -> Result<&Webauthn, Error> {
    // Pages that offer passkeys look first whether there are any, and say why not.
    services.passkeys().map(|party| &party.0).map_err(|_| Error::NotFound("page"))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("failed to make a passkey challenge: {error}"))
}

/// What the answer to a challenge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// To log in.
    Login,
    /// To prove again, in this session, who one is.
    Proof(Presented),
}

impl Aim {
    /// What its challenges are bound to: the answer to one doesn't count for anything else.
    fn bound_to(&self) -> &[u8] {
        match self {
            Self::Login => b"",
            Self::Proof(session) => session.hash.as_bytes(),
        }
    }
}

/// A challenge for any passkey of this service, or for those that authenticators call so.
pub fn challenge(services: &Services, aim: Aim, credentials: &[Vec<u8>]) -> Result<Challenge, Error> {
    let (mut asked, state) = available(services)?.start_discoverable_authentication().map_err(failed)?;
    // A person clicks; the browser doesn't offer passkeys while they type.
    asked.mediation = None;
    let mut options = serde_json::to_value(asked).map_err(failed)?;
    options["publicKey"]["allowCredentials"] = credentials.iter().map(|id| descriptor(id)).collect();
    let state = ticket::issue(services, Purpose::Passkey, aim.bound_to(), CHALLENGE_SECONDS, &state)?;
    Ok(Challenge { options, state })
}

fn descriptor(credential: &[u8]) -> Value {
    json!({ "type": "public-key", "id": BASE64URL_NOPAD.encode(credential) })
}

/// What an authenticator answered to a challenge: not checked yet.
pub struct Answer {
    credential: PublicKeyCredential,
    state: DiscoverableAuthentication,
    challenge: Spent,
}

/// A challenge that counts once.
struct Spent {
    hash: SecretHash,
    expires_at: Time,
}

impl Answer {
    /// Reads what a browser sent: `None` if it isn't an answer to a challenge of ours that is still open.
    pub fn read(services: &Services, aim: Aim, state: &str, credential: &str) -> Option<Self> {
        let opened = ticket::open(services, Purpose::Passkey, aim.bound_to(), state)?;
        let credential = serde_json::from_str(credential).ok()?;
        let challenge = Spent { hash: opened.hash, expires_at: opened.expires_at };
        Some(Self { credential, state: opened.content, challenge })
    }

    /// The passkey that it claims to be from.
    pub async fn look(&self, app: &App) -> Result<Option<Known>, Error> {
        let credential = self.credential.get_credential_id().to_vec();
        app.read_across(move |across| passkey::by_credential(across, &credential)).await
    }

    /// Checks that the passkey signed it, after its authenticator verified the person. If it is known who has to be
    /// logged in, the passkey must be theirs; otherwise the answer must name its person. Slow, so call it neither on an
    /// engine thread nor in async code.
    pub fn check(self, services: &Services, known: Known, expected: Option<PersonId>) -> Option<Used> {
        let named = self.credential.get_user_unique_id();
        let is_theirs = |named: &[u8]| named == known.person.as_bytes().as_slice();
        let is_right_person = match expected {
            Some(expected) => known.person == expected && named.is_none_or(is_theirs),
            None => named.is_some_and(is_theirs),
        };
        let mut passkey: Passkey = serde_json::from_str(&known.public_key).ok()?;
        let party = services.passkeys().ok().filter(|_| is_right_person)?;
        let done =
            party.0.finish_discoverable_authentication_v2(&self.credential, self.state, &passkey).ok()?;
        passkey.update_credential(&done).filter(|_| done.user_verified())?;
        let public_key = serde_json::to_string(&passkey).ok()?;
        Some(Used { known, public_key, challenge: self.challenge })
    }
}

/// A passkey that was used, with its new counter: to be stored when the person is logged in.
pub struct Used {
    known: Known,
    public_key: String,
    challenge: Spent,
}

impl Used {
    pub fn person(&self) -> PersonId {
        self.known.person
    }

    /// Uses the challenge up; returns `false` if it was used before, or the passkey changed meanwhile.
    pub(crate) fn accept(&self, tx: &mut Tx, now: Time) -> Result<bool, rapport_store::Error> {
        Ok(self.challenge.spend(tx, now)? && passkey::note_use(tx, &self.known, &self.public_key, now)?)
    }
}

impl Spent {
    fn spend(&self, tx: &mut Tx, now: Time) -> Result<bool, rapport_store::Error> {
        passkey::spend(tx, &self.hash, self.expires_at, now)
    }
}

/// The person whom a new passkey is for.
pub struct Holder {
    person: PersonId,
    email: Email,
    name: String,
    /// What authenticators call the passkeys that they have.
    credentials: Vec<Vec<u8>>,
}

/// Begins to add a passkey for the caller, if they may: an authenticator shouldn't keep one that we don't take.
pub struct BeginPasskey;

impl Command for BeginPasskey {
    type Reply = Holder;
    const NEEDS: Needs = Needs::Login;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Holder, Error> {
        let person = adding(cx)?;
        let credentials = passkey::credentials(tx, person)?;
        has_room(credentials.len())?;
        let Member { email, name, .. } = member::get(tx, person)?.ok_or(Error::Unauthenticated)?;
        Ok(Holder { person, email, name, credentials })
    }
}

fn has_room(passkeys: usize) -> Result<(), Error> {
    if passkeys >= MAX_PASSKEYS {
        let detail = format!("you have {MAX_PASSKEYS} passkeys; remove one before you add another");
        return Err(Error::conflict("too_many_passkeys", detail));
    }
    Ok(())
}

/// A challenge to make a new passkey, in this session.
pub fn new_challenge(services: &Services, session: Presented, holder: Holder) -> Result<Challenge, Error> {
    let Holder { person, email, name, credentials } = holder;
    let id = Uuid::from_bytes(*person.as_bytes());
    let asked = available(services)?.start_passkey_registration(id, email.as_str(), &name, Some(credentials));
    let (asked, state) = asked.map_err(failed)?;
    let mut options = serde_json::to_value(asked).map_err(failed)?;
    // The library lets authenticators choose. We want every passkey to be found without an address.
    let selection = &mut options["publicKey"]["authenticatorSelection"];
    selection["residentKey"] = json!("required");
    selection["requireResidentKey"] = json!(true);
    let bound_to = session.hash.as_bytes();
    let state = ticket::issue(services, Purpose::NewPasskey, bound_to, CHALLENGE_SECONDS, &state)?;
    Ok(Challenge { options, state })
}

/// Adds a passkey that an authenticator has made for the caller.
pub struct AddPasskey {
    session: Presented,
    name: String,
    credential: Vec<u8>,
    public_key: String,
    challenge: Spent,
}

impl AddPasskey {
    /// Checks what a browser sent. Slow, so call it neither on an engine thread nor in async code.
    pub fn check(
        services: &Services,
        session: Presented,
        name: String,
        state: &str,
        credential: &str,
    ) -> Result<Self, Error> {
        let refused = || {
            let detail = "wasn't accepted; try again";
            Error::from(Invalid::one("/passkey", "malformed", detail))
        };
        let bound_to = session.hash.as_bytes();
        let opened = ticket::open::<PasskeyRegistration>(services, Purpose::NewPasskey, bound_to, state);
        let opened = opened.ok_or_else(refused)?;
        let made: RegisterPublicKeyCredential = serde_json::from_str(credential).map_err(|_| refused())?;
        let done = available(services)?.finish_passkey_registration(&made, &opened.content);
        let passkey = done.map_err(|_| refused())?;
        Ok(Self {
            session,
            name,
            credential: passkey.cred_id().clone(),
            public_key: serde_json::to_string(&passkey).map_err(failed)?,
            challenge: Spent { hash: opened.hash, expires_at: opened.expires_at },
        })
    }
}

impl Command for AddPasskey {
    type Reply = Added;
    const NEEDS: Needs = Needs::Login;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Added, Error> {
        let person = adding(cx)?;
        let known = || Error::conflict("passkey_known", "this passkey is already in use");
        has_room(passkey::credentials(tx, person)?.len())?;
        let (id, credential, public_key) = (cx.id(), &self.credential[..], &self.public_key[..]);
        let new = NewPasskey { person, id, credential, public_key, name: &self.name };
        if !self.challenge.spend(tx, cx.now)? || !passkey::insert(tx, &new, cx.now)? {
            return Err(known());
        }
        added(tx, cx, person, self.session, Factor::Passkey, Some(&self.name))
    }
}

/// Renames a passkey of the caller.
pub struct RenamePasskey {
    pub id: PasskeyId,
    pub name: String,
}

impl Command for RenamePasskey {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let person = caller(cx)?;
        let found = passkey::list(tx, person)?.into_iter().find(|passkey| passkey.id == self.id);
        let before = found.ok_or(Error::NotFound("passkey"))?.name;
        if before != self.name {
            passkey::rename(tx, person, self.id, &self.name)?;
            let detail = json!({ "name": { "from": before, "to": self.name } });
            audit::record(tx, cx, Action::FactorChanged, Some(person.to_string()), &detail)?;
        }
        Ok(())
    }
}

/// Removes a passkey of the caller.
pub struct RemovePasskey {
    pub id: PasskeyId,
    /// The session that stays; all other sessions of the person end.
    pub kept: Presented,
}

impl Command for RemovePasskey {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let person = caller(cx)?;
        if passkey::list(tx, person)?.iter().all(|passkey| passkey.id != self.id) {
            return Err(Error::NotFound("passkey"));
        }
        may_remove_one(tx, person)?;
        let name = passkey::delete(tx, person, self.id)?.ok_or(Error::NotFound("passkey"))?;
        removed(tx, cx, person, self.kept, Factor::Passkey, Some(&name))
    }
}
