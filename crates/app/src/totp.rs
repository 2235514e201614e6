//! Authenticator apps (TOTP): set up with a secret, confirmed by a code, and asked for codes afterwards. Each code works
//! once.

use rapport_domain::credential::Presented;
use rapport_domain::id::PersonId;
use rapport_domain::invalid::Invalid;
use rapport_domain::right::Right;
use rapport_domain::second_factor::{Code, Factor};
use rapport_domain::totp::{MAX_WRONG_CODES, TotpSecret};
use rapport_store::totp::Totp;
use rapport_store::{Tx, member, totp};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::context::Services;
use crate::encryption_key;
use crate::error::Error;
use crate::notice::{self, Notice};
use crate::second_factor::{Added, added, adding, caller, may_remove_one, removed};
use crate::vault::Owner;

/// What a person enters into their app: shown until the first code confirms it.
#[derive(Clone, PartialEq, Eq)]
pub struct NewApp {
    /// For apps that can't scan.
    pub secret: String,
    /// For the QR code.
    pub uri: String,
}

impl NewApp {
    fn new(secret: &TotpSecret, account: &str) -> Self {
        Self { secret: secret.to_text(), uri: secret.uri(account) }
    }

    /// The app of a person that waits for its first code.
    pub fn waiting(
        services: &Services,
        person: PersonId,
        account: &str,
        found: Option<Totp>,
    ) -> Option<Self> {
        let found = found.filter(|app| app.confirmed_at.is_none())?;
        let secret = services.vault().open(Owner::Totp(person), &found.secret).ok()?;
        Some(Self::new(&TotpSecret::parse(&secret)?, account))
    }
}

/// Makes a secret for the caller's authenticator app. It doesn't count before a code confirms it.
pub struct SetUpApp;

impl Command for SetUpApp {
    type Reply = NewApp;
    const NEEDS: Needs = Needs::Login;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewApp, Error> {
        let person = adding(cx)?;
        let email = member::email(tx, person)?.ok_or(Error::Unauthenticated)?;
        let secret = TotpSecret::new(cx.random());
        let sealed = encryption_key::seal(tx, cx, Owner::Totp(person), &secret.to_text())?;
        if !totp::put(tx, person, &sealed, cx.now)? {
            let detail = "you already have an authenticator app; remove it before you set up another one";
            return Err(Error::conflict("totp_known", detail));
        }
        Ok(NewApp::new(&secret, email.as_str()))
    }
}

/// Confirms the caller's authenticator app with its first code.
pub struct ConfirmApp {
    pub typed: String,
    /// The session in which it is confirmed, which stays.
    pub session: Presented,
}

impl Command for ConfirmApp {
    type Reply = Added;
    const NEEDS: Needs = Needs::Login;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Added, Error> {
        let person = adding(cx)?;
        let waiting = totp::lock(tx, person)?.filter(|app| app.confirmed_at.is_none());
        let waiting = waiting.ok_or(Error::NotFound("authenticator app"))?;
        let secret = open(cx, person, &waiting)
            .ok_or_else(|| Error::Internal("the secret of an authenticator app can't be read".to_owned()))?;
        let step = match Code::read(&self.typed) {
            Some(Code::Totp(code)) => secret.check(&code, cx.now),
            Some(Code::Recovery(_)) | None => None,
        };
        let Some(step) = step else {
            let detail = "isn't the current code; check the clock of your device";
            return Err(Invalid::one("/code", "wrong_code", detail).into());
        };
        totp::confirm(tx, person, step, cx.now)?;
        added(tx, cx, person, self.session, Factor::Totp, None)
    }
}

/// Removes the caller's authenticator app.
pub struct RemoveApp {
    /// The session that stays; all other sessions of the person end.
    pub kept: Presented,
}

impl Command for RemoveApp {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let person = caller(cx)?;
        totp::lock(tx, person)?
            .filter(|app| app.confirmed_at.is_some())
            .ok_or(Error::NotFound("authenticator app"))?;
        may_remove_one(tx, person)?;
        totp::delete(tx, person)?;
        removed(tx, cx, person, self.kept, Factor::Totp, None)
    }
}

/// What became of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    Right,
    Wrong,
    /// No code is accepted any more: there were too many wrong ones, or the secret can't be read.
    Refused,
}

/// Tries a code of a person's app, and uses it up if it is right.
pub(crate) fn try_code(tx: &mut Tx, cx: &Context, person: PersonId, code: &str) -> Result<Tried, Error> {
    let Some(app) = totp::lock(tx, person)?.filter(|app| app.confirmed_at.is_some()) else {
        return Ok(Tried::Wrong);
    };
    if app.wrong_codes >= MAX_WRONG_CODES {
        return Ok(Tried::Refused);
    }
    let Some(secret) = open(cx, person, &app) else {
        tracing::error!(%person, "the secret of an authenticator app can't be read");
        return Ok(Tried::Refused);
    };
    if let Some(step) = secret.check(code, cx.now).filter(|step| *step > app.last_step) {
        totp::note_use(tx, person, step, cx.now)?;
        return Ok(Tried::Right);
    }
    totp::count_wrong(tx, person)?;
    if app.wrong_codes + 1 == MAX_WRONG_CODES {
        notice::send(tx, cx, person, Notice::CodesRefused { wrong: MAX_WRONG_CODES })?;
    }
    Ok(Tried::Wrong)
}

fn open(cx: &Context, person: PersonId, app: &Totp) -> Option<TotpSecret> {
    let text = cx.vault().open(Owner::Totp(person), &app.secret).ok()?;
    TotpSecret::parse(&text)
}
