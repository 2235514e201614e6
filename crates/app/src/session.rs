//! Logging in and out, and switching companies. A session belongs to one person in one company; its
//! permissions are checked anew at each request.

use rapport_domain::audit::Action;
use rapport_domain::credential::{self, Kind, Presented, issue};
use rapport_domain::device;
use rapport_domain::history::Actor;
use rapport_domain::id::{CompanyId, PersonId, SessionId};
use rapport_domain::member::{Email, Member};
use rapport_domain::right::Right;
use rapport_domain::second_factor::Factor;
use rapport_domain::session::MAX_BROWSER_CHARS;
use rapport_domain::time::Time;
use rapport_store::session::{self, Begun, Candidate, Listed, Workplace};
use rapport_store::{Lane, Tx, member, sso};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::notice::{self, Notice};
use crate::sso::{admit_password, break_glass};
use crate::{App, password};

/// More logins with one address are not looked at. Each belongs to another company.
const MOST_LOGINS: i64 = 100;

/// A person who wants to log in.
///
/// An address may have several logins: that of its owner, and one for each company that handed over a link. Every
/// attempt checks two of them, whatever there is: the owner's, and that of one company. So the time it takes says
/// nothing about which exist.
pub struct LogIn {
    owner: Option<Account>,
    of_company: Option<Account>,
}

struct Account {
    person: PersonId,
    password_hash: String,
    workplaces: Vec<Workplace>,
}

impl LogIn {
    /// Looks up the logins of an address. `project` names the company whose login is meant; without it, that of the
    /// company that made one first.
    pub async fn look(app: &App, email: Email, project: Option<String>) -> Result<Self, Error> {
        app.read_across(move |across| {
            let mut logins = Self { owner: None, of_company: None };
            for Candidate { person, password_hash, is_proven } in
                session::logins(across, &email, MOST_LOGINS)?
            {
                // Single sign-on made it, and it must not stand in the way of a login that has a password.
                if password_hash == password::NOBODYS {
                    continue;
                }
                let workplaces = session::workplaces(across, person)?;
                let is_meant =
                    |place: &Workplace| project.as_ref().is_none_or(|project| *project == place.slug);
                let is_meant = workplaces.iter().any(is_meant);
                let account = Account { person, password_hash, workplaces };
                if is_proven {
                    logins.owner = Some(account);
                } else if is_meant && logins.of_company.is_none() {
                    logins.of_company = Some(account);
                }
            }
            Ok(logins)
        })
        .await
    }

    /// The person the password proves; `None` for a wrong one, an unknown address, or a person without a
    /// company. Slow on purpose, so call it neither on an engine thread nor in async code.
    pub fn check(self, password: &str) -> Option<Proven> {
        let [owner, of_company] = [self.owner, self.of_company].map(|account| {
            let hash = account.as_ref().map_or(password::NOBODYS, |account| &account.password_hash);
            let is_right = password::verify(password, hash);
            account.filter(|_| is_right)
        });
        let Account { person, workplaces, .. } = owner.or(of_company)?;
        Proven::of(person, workplaces)
    }
}

/// A person who proved their identity, and the company they will see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proven {
    pub person: PersonId,
    pub company: CompanyId,
}

impl Proven {
    /// In the company they used last, else the one they joined first; `None` if they have none.
    pub(crate) fn of(person: PersonId, mut workplaces: Vec<Workplace>) -> Option<Self> {
        // A company that requires single sign-on comes last: it refuses them, and says why.
        if workplaces.iter().any(|place| !place.needs_sso) {
            workplaces.retain(|place| !place.needs_sso);
        }
        let joined_first = workplaces.first()?.company;
        let last = workplaces.into_iter().filter(|place| place.last_seen_at.is_some());
        let last = last.max_by_key(|place| place.last_seen_at).map(|place| place.company);
        Some(Self { person, company: last.unwrap_or(joined_first) })
    }

    pub fn access(&self) -> Access {
        Access::System(self.company)
    }

    /// A session without a second factor. See [`crate::second_step`] for people who have one.
    pub fn begin(self, browser: Option<&str>) -> BeginSession {
        let browser = shortened(browser);
        BeginSession { person: self.person, browser, replaces: None, is_new_browser: false }
    }
}

/// As much of a browser's name as is stored.
pub(crate) fn shortened(browser: Option<&str>) -> Option<String> {
    browser.map(|text| text.chars().take(MAX_BROWSER_CHARS).collect())
}

/// The companies in which a person may work. A session that began with single sign-on is `confined` to its company, and
/// learns about no other.
pub async fn workplaces(
    app: &App,
    person: PersonId,
    confined: Option<CompanyId>,
) -> Result<Vec<Workplace>, Error> {
    let mut workplaces = app.read_across(move |across| session::workplaces(across, person)).await?;
    workplaces.retain(|place| confined.is_none_or(|only| place.company == only));
    Ok(workplaces)
}

/// Starts a session of an active member who proved their identity with a password; returns the text for the cookie.
pub struct BeginSession {
    person: PersonId,
    browser: Option<String>,
    /// The session used to get here.
    replaces: Option<Presented>,
    /// Whether to tell the person that somebody logged in with a browser that never did before.
    is_new_browser: bool,
}

impl BeginSession {
    /// Continues in another company, in the same browser; the old session ends. That is no login: the new session is as
    /// old as the one before, and so are its proof of who the person is and its second factor.
    #[must_use]
    pub fn replacing(self, before: Presented) -> Self {
        Self { replaces: Some(before), ..self }
    }

    /// Mails the person about the login, if it is the first one with this browser.
    #[must_use]
    pub fn announced(self, is_new_browser: bool) -> Self {
        Self { is_new_browser, ..self }
    }

    fn start(&self, tx: &mut Tx, cx: &Context) -> Result<Start, Error> {
        self.replaces.map_or_else(|| Ok(Start::now(cx)), |before| Start::of(tx, self.person, before))
    }
}

/// How a session begins.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub created_at: Time,
    /// When the person last proved who they are.
    pub proved_at: Time,
    /// When they showed a second factor.
    pub second_factor_at: Option<Time>,
    /// Whether the company's identity provider says who it is.
    pub by_sso: bool,
}

impl Start {
    /// With a login, which is a proof.
    pub fn now(cx: &Context) -> Self {
        Self { created_at: cx.now, proved_at: cx.now, second_factor_at: None, by_sso: false }
    }

    /// Like a session that another one takes the place of.
    pub fn of(tx: &mut Tx, person: PersonId, before: Presented) -> Result<Self, Error> {
        let listed = session::of_person(tx, person)?;
        let found = listed.into_iter().find(|listed| listed.hash.matches(&before.hash));
        let Listed { created_at, proved_at, second_factor_at, by_sso, .. } =
            found.ok_or(Error::Unauthenticated)?;
        // A company's provider says who somebody is in that company only.
        if by_sso {
            let detail =
                "you logged in with single sign-on, which is for one company; log in with your password";
            return Err(Error::conflict("sso_session", detail));
        }
        Ok(Self { created_at, proved_at, second_factor_at, by_sso })
    }
}

impl Command for BeginSession {
    type Reply = String;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<String, Error> {
        let start = self.start(tx, cx)?;
        let (text, member) = write(tx, cx, self.person, self.browser.as_deref(), start)?;
        if self.replaces.is_none() {
            record(tx, cx, member, None)?;
        }
        if self.is_new_browser {
            notice::send(tx, cx, self.person, Notice::NewBrowser)?;
        }
        Ok(text)
    }
}

/// Writes a session of an active member, unless they must use single sign-on; returns the text for the cookie, and the
/// member.
pub(crate) fn write(
    tx: &mut Tx,
    cx: &Context,
    person: PersonId,
    browser: Option<&str>,
    start: Start,
) -> Result<(String, Member), Error> {
    let found = member::get(tx, person)?.filter(Member::is_active);
    let found = found.ok_or(Error::NotFound("member"))?;
    if !start.by_sso
        && let Some(sso) = sso::get(tx)?.map(|sso| sso.settings)
    {
        admit_password(Some(&sso), person)?;
        if sso.is_break_glass(person) {
            break_glass::announce(tx, cx, &found)?;
        }
    }
    let issued = issue(Kind::Session, cx.company().id, cx.random());
    let (id, address) = (cx.id(), cx.address_text());
    let Start { created_at, proved_at, second_factor_at, by_sso } = start;
    let begun = Begun {
        id,
        person,
        at: cx.now,
        created_at,
        proved_at,
        address: address.as_deref(),
        browser,
        second_factor_at,
        by_sso,
    };
    session::insert(tx, &issued.hash, &begun)?;
    Ok((issued.text, found))
}

/// Records a login, and the second factor that was shown.
pub(crate) fn record(tx: &mut Tx, cx: &Context, member: Member, factor: Option<Factor>) -> Result<(), Error> {
    let target = Some(member.person.to_string());
    let actor = Actor::Person { id: member.person, name: member.name };
    let detail = factor.map_or(json!({}), |factor| json!({ "factor": factor.as_str() }));
    Ok(audit::record_by(tx, cx, actor, Action::SessionBegun, target, &detail)?)
}

/// Logs out: the session ends immediately, on every node.
pub struct EndSession(pub Presented);

impl Command for EndSession {
    type Reply = ();
    const NEEDS: Needs = Needs::Login;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        session::delete(tx, &self.0.hash)?;
        let target = cx.actor().id_text();
        Ok(audit::record(tx, cx, Action::SessionLoggedOut, target, &json!({}))?)
    }
}

/// Ends a session that another one takes the place of. That is no logout.
pub struct EndReplaced(pub Presented);

impl Command for EndReplaced {
    type Reply = ();
    const NEEDS: Needs = Needs::Login;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(session::delete(tx, &self.0.hash)?)
    }
}

/// Ends one session of the caller, in any company that this session may reach.
pub struct EndOneSession(pub SessionId);

impl Command for EndOneSession {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        let ended = if cx.caller.by_sso {
            session::delete_one_here(tx, *id, self.0)?
        } else {
            session::delete_one(tx, *id, self.0)?
        };
        let ended = ended.ok_or(Error::NotFound("session"))?;
        // Where they log in to another company is not for this one to know.
        let detail = if ended.company == cx.company().id {
            let browser = ended.browser.as_deref().map(device::named);
            json!({ "session": self.0.to_string(), "browser": browser, "address": ended.address })
        } else {
            json!({})
        };
        audit::record(tx, cx, Action::SessionEnded, Some(id.to_string()), &detail)?;
        notice::send(tx, cx, *id, Notice::SessionsEnded { all: false })?;
        Ok(())
    }
}

/// Ends every session of the caller except the current one, in all companies that this session may reach.
pub struct EndOtherSessions(pub Presented);

impl Command for EndOtherSessions {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        if cx.caller.by_sso {
            session::delete_others_here(tx, *id, &self.0.hash)?;
        } else {
            session::delete_others(tx, *id, &self.0.hash)?;
        }
        audit::record(tx, cx, Action::SessionsEnded, Some(id.to_string()), &json!({}))?;
        notice::send(tx, cx, *id, Notice::SessionsEnded { all: true })?;
        Ok(())
    }
}

/// Stores when sessions were last used.
pub struct NoteSessions(pub Vec<(SessionId, Time)>);

impl Command for NoteSessions {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        for (id, at) in &self.0 {
            session::touch(tx, *id, *at)?;
        }
        Ok(())
    }
}

/// The session in a cookie's text, if well-formed.
pub fn read_cookie(text: &str) -> Option<Presented> {
    credential::read(Kind::Session, text).ok()
}
