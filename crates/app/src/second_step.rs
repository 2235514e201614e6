//! The second step of logging in. Somebody gave the right password, or has a session from before their second factor;
//! no company lets them in until they show that factor.
//!
//! Between the two steps the browser keeps a ticket for five minutes. It ends when the password changes.

use rapport_domain::credential::Presented;
use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::member::{Email, Member};
use rapport_domain::second_factor::{Code, FIRST_STEP_SECONDS, Factor, Step};
use rapport_store::{Snapshot, Tx, member, passkey, recovery_code, second_factor, session as sessions, totp};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::notice::{self, Notice};
use crate::passkey::Used;
use crate::session::{self, Proven, Start, shortened};
use crate::totp::{Tried, try_code};
use crate::vault::Purpose;
use crate::{App, ticket};

/// How much of a hash of the password's hash a ticket holds: enough to notice that the password changed.
const MARK_BYTES: usize = 8;

/// What the first step proved.
#[derive(Serialize, Deserialize)]
struct FirstStep {
    person: String,
    company: i64,
    /// Changes with the password.
    mark: Vec<u8>,
}

fn mark(password_hash: &str) -> Vec<u8> {
    digest(&SHA256, password_hash.as_bytes()).as_ref()[..MARK_BYTES].to_vec()
}

/// The ticket for a person who gave their password and has to show a second factor; `None` if they have none.
pub async fn begin(app: &App, proven: Proven) -> Result<Option<String>, Error> {
    let (person, access) = (proven.person, proven.access());
    let found = app.read(&access, Needs::Server, move |snapshot, _| {
        let count = second_factor::count(snapshot, person)?;
        Ok(member::login(snapshot, person)?.filter(|_| count > 0))
    });
    let Some(login) = found.await?.reply else { return Ok(None) };
    let first =
        FirstStep { person: person.to_string(), company: proven.company.0, mark: mark(&login.password_hash) };
    ticket::issue(app.services(), Purpose::FirstStep, b"", FIRST_STEP_SECONDS, &first).map(Some)
}

/// Somebody who has to show a second factor.
pub struct Asked {
    pub person: PersonId,
    pub company: CompanyId,
    pub email: Email,
    pub has_app: bool,
    /// What authenticators call their passkeys.
    pub credentials: Vec<Vec<u8>>,
    /// The session that lacks the second factor. A new one takes its place.
    replaces: Option<Presented>,
}

impl Asked {
    /// The person whom a ticket names, if it is still good.
    pub async fn by_ticket(app: &App, text: &str) -> Result<Option<Self>, Error> {
        let Some(opened) = ticket::open::<FirstStep>(app.services(), Purpose::FirstStep, b"", text) else {
            return Ok(None);
        };
        let FirstStep { person, company, mark: known } = opened.content;
        let (Ok(person), company) = (person.parse::<PersonId>(), CompanyId(company)) else { return Ok(None) };
        let access = Access::System(company);
        let found = app.read(&access, Needs::Server, move |snapshot, _| {
            let login = member::login(snapshot, person)?;
            if login.is_none_or(|login| mark(&login.password_hash) != known) {
                return Ok(None);
            }
            Self::read(snapshot, person, None)
        });
        match found.await {
            Ok(found) => Ok(found.reply),
            // The company is gone.
            Err(Error::Unauthenticated) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The person of a session, and what they have to do.
    pub async fn by_session(app: &App, presented: Presented) -> Result<Standing, Error> {
        let access = Access::Credential(presented);
        let found = app.read(&access, Needs::Login, move |snapshot, viewer| {
            let (Step::Show, Some(person)) = (viewer.caller.step, viewer.person()) else {
                return Ok((viewer.caller.step, None));
            };
            Ok((Step::Show, Self::read(snapshot, person, Some(presented))?))
        });
        let (step, asked) = found.await?.reply;
        Ok(match (step, asked) {
            (Step::Show, Some(asked)) => Standing::Show(asked),
            (Step::Show | Step::SetUp, _) => Standing::SetUp,
            (Step::Nothing, _) => Standing::Nothing,
        })
    }

    fn read(
        snapshot: &mut Snapshot,
        person: PersonId,
        replaces: Option<Presented>,
    ) -> Result<Option<Self>, rapport_store::Error> {
        let Some(found) = member::get(snapshot, person)?.filter(Member::is_active) else { return Ok(None) };
        let has_app = totp::get(snapshot, person)?.is_some_and(|app| app.confirmed_at.is_some());
        let credentials = passkey::credentials(snapshot, person)?;
        // Somebody may have reset their factors meanwhile: then they start over.
        let has_any = has_app || !credentials.is_empty();
        let (company, email) = (snapshot.company(), found.email);
        Ok(has_any.then_some(Self { person, company, email, has_app, credentials, replaces }))
    }

    /// The company to complete the login in.
    pub fn access(&self) -> Access {
        Access::System(self.company)
    }

    pub fn complete(&self, shown: Shown, browser: Option<&str>) -> CompleteLogin {
        let Self { person, replaces, .. } = *self;
        CompleteLogin { person, shown, browser: shortened(browser), replaces, is_new_browser: false }
    }
}

/// What the person of a session has to do about their second factor.
pub enum Standing {
    Nothing,
    Show(Asked),
    SetUp,
}

/// Where a person goes who logs in with a passkey alone, and their address; `None` if they have no company.
pub async fn with_passkey(app: &App, person: PersonId) -> Result<Option<(Proven, Email)>, Error> {
    let workplaces = session::workplaces(app, person, None).await?;
    let Some(proven) = Proven::of(person, workplaces) else { return Ok(None) };
    let access = proven.access();
    let found = app.read(&access, Needs::Server, move |snapshot, _| member::email(snapshot, person));
    Ok(found.await?.reply.map(|email| (proven, email)))
}

impl Proven {
    /// Completes a login with a passkey, which counts as two factors.
    pub fn complete(self, used: Used, browser: Option<&str>) -> CompleteLogin {
        let (shown, browser) = (Shown::Passkey(used), shortened(browser));
        CompleteLogin { person: self.person, shown, browser, replaces: None, is_new_browser: false }
    }
}

/// The second factor that a person shows.
pub enum Shown {
    Code(Code),
    Passkey(Used),
}

impl Shown {
    pub fn factor(&self) -> Factor {
        match self {
            Self::Passkey(_) => Factor::Passkey,
            Self::Code(Code::Totp(_)) => Factor::Totp,
            Self::Code(Code::Recovery(_)) => Factor::RecoveryCode,
        }
    }
}

/// Checks a second factor and starts a session.
pub struct CompleteLogin {
    person: PersonId,
    shown: Shown,
    browser: Option<String>,
    replaces: Option<Presented>,
    /// Whether to tell the person that somebody logged in with a browser that never did before.
    is_new_browser: bool,
}

impl CompleteLogin {
    /// Mails the person about the login, if it is the first one with this browser.
    #[must_use]
    pub fn announced(self, is_new_browser: bool) -> Self {
        Self { is_new_browser, ..self }
    }

    /// A second factor proves who the person is. A session that lacked it becomes no younger.
    fn start(&self, tx: &mut Tx, cx: &Context) -> Result<Start, Error> {
        let created_at = match self.replaces {
            Some(before) => Start::of(tx, self.person, before)?.created_at,
            None => cx.now,
        };
        Ok(Start { created_at, second_factor_at: Some(cx.now), ..Start::now(cx) })
    }
}

/// What became of a second factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completed {
    /// The text for the session's cookie.
    Begun(String),
    Wrong,
    /// Codes from the app are not accepted any more, only a passkey or a recovery code.
    Refused,
}

impl Command for CompleteLogin {
    type Reply = Completed;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Completed, Error> {
        let person = self.person;
        let tried: Tried = match &self.shown {
            Shown::Passkey(used) if used.person() == person => used.accept(tx, cx.now)?.into(),
            Shown::Passkey(_) => Tried::Wrong,
            Shown::Code(Code::Totp(code)) => try_code(tx, cx, person, code)?,
            Shown::Code(Code::Recovery(code)) => recovery_code::take(tx, person, code)?.into(),
        };
        match tried {
            // Stored as well: a wrong code counts.
            Tried::Wrong => return Ok(Completed::Wrong),
            Tried::Refused => return Ok(Completed::Refused),
            Tried::Right => {}
        }
        totp::forget_wrong(tx, person)?;
        if self.shown.factor() == Factor::RecoveryCode {
            let left = recovery_code::count(tx, person)?;
            notice::send(tx, cx, person, Notice::RecoveryCodeUsed { left })?;
        }
        let start = self.start(tx, cx)?;
        if let Some(before) = self.replaces {
            sessions::delete(tx, &before.hash)?;
        }
        let (text, found) = session::write(tx, cx, person, self.browser.as_deref(), start)?;
        session::record(tx, cx, found, Some(self.shown.factor()))?;
        if self.is_new_browser {
            notice::send(tx, cx, person, Notice::NewBrowser)?;
        }
        Ok(Completed::Begun(text))
    }
}

impl From<bool> for Tried {
    fn from(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}
