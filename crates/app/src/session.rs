//! Logging in and out, and switching companies. A session belongs to one person in one company; its
//! permissions are checked anew at each request.

use rapport_domain::audit::Action;
use rapport_domain::credential::{self, Kind, Presented, issue};
use rapport_domain::history::Actor;
use rapport_domain::id::{CompanyId, PersonId, SessionId};
use rapport_domain::member::{Email, Member, Role};
use rapport_domain::session::MAX_BROWSER_CHARS;
use rapport_domain::time::Time;
use rapport_store::session::{self, Begun, Workplace};
use rapport_store::{Lane, Tx, member};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::{App, password};

/// Checked if there is no such person, so that the answer takes equally long. Nobody knows its password.
const NOBODYS_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5LWhhcy10aGlzIQ$\
                            8mAGZ0bQxGh3Eo0qfFhJ1tYyWmI0Qm3Hn1cV7hVZk5c";

/// A person who wants to log in.
pub struct LogIn {
    person: Option<(PersonId, String)>,
    workplaces: Vec<Workplace>,
}

impl LogIn {
    pub async fn look(app: &App, email: Email) -> Result<Self, Error> {
        app.read_across(move |across| {
            let person = session::login(across, &email)?;
            let workplaces = match &person {
                Some((person, _)) => session::workplaces(across, *person)?,
                None => Vec::new(),
            };
            Ok(Self { person, workplaces })
        })
        .await
    }

    /// The person the password proves; `None` for a wrong one, an unknown address, or a person without a
    /// company. Slow on purpose, so call it neither on an engine thread nor in async code.
    pub fn check(self, password: &str) -> Option<Proven> {
        let hash = self.person.as_ref().map_or(NOBODYS_HASH, |(_, hash)| hash);
        let is_right = password::verify(password, hash);
        let (person, _) = self.person.filter(|_| is_right)?;
        // The company they used last, else the one they joined first.
        let joined_first = self.workplaces.first()?.company;
        let last = self.workplaces.into_iter().filter(|place| place.last_seen_at.is_some());
        let last = last.max_by_key(|place| place.last_seen_at).map(|place| place.company);
        Some(Proven { person, company: last.unwrap_or(joined_first) })
    }
}

/// A person who proved their identity, and the company they will see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proven {
    pub person: PersonId,
    pub company: CompanyId,
}

impl Proven {
    pub fn access(&self) -> Access {
        Access::System(self.company)
    }

    pub fn begin(self, browser: Option<&str>) -> BeginSession {
        let browser = browser.map(|text| text.chars().take(MAX_BROWSER_CHARS).collect());
        BeginSession { person: self.person, browser, replaces: None }
    }
}

/// The companies in which a person may work.
pub async fn workplaces(app: &App, person: PersonId) -> Result<Vec<Workplace>, Error> {
    app.read_across(move |across| session::workplaces(across, person)).await
}

/// Starts a session of an active member; returns the text for the cookie.
pub struct BeginSession {
    person: PersonId,
    browser: Option<String>,
    /// The session used to get here.
    replaces: Option<Presented>,
}

impl BeginSession {
    /// Continues in another company, in the same browser; the old session ends.
    #[must_use]
    pub fn replacing(self, before: Presented) -> Self {
        Self { replaces: Some(before), ..self }
    }
}

impl Command for BeginSession {
    type Reply = String;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<String, Error> {
        let found = member::get(tx, self.person)?.filter(Member::is_active);
        let found = found.ok_or(Error::NotFound("member"))?;
        let issued = issue(Kind::Session, cx.company().id, cx.random());
        let address = cx.address_text();
        let begun = Begun {
            id: cx.id(),
            person: self.person,
            at: cx.now,
            address: address.as_deref(),
            browser: self.browser.as_deref(),
        };
        session::insert(tx, &issued.hash, &begun)?;
        if self.replaces.is_none() {
            let actor = Actor::Person { id: self.person, name: found.name };
            audit::record_by(tx, cx, actor, Action::SessionBegun, Some(self.person.to_string()), &json!({}))?;
        }
        Ok(issued.text)
    }
}

/// Logs out: the session ends immediately, on every node.
pub struct EndSession(pub Presented);

impl Command for EndSession {
    type Reply = ();
    const NEEDS: Needs = Needs::Role(Role::Member);

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(session::delete(tx, &self.0.hash)?)
    }
}

/// Ends every session of the caller except the current one, in all companies.
pub struct EndOtherSessions(pub Presented);

impl Command for EndOtherSessions {
    type Reply = ();
    const NEEDS: Needs = Needs::Role(Role::Member);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        session::delete_others(tx, *id, &self.0.hash)?;
        audit::record(tx, cx, Action::SessionsEnded, Some(id.to_string()), &json!({}))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_address_costs_a_hash_too() {
        let parsed = argon2::password_hash::phc::PasswordHash::new(NOBODYS_HASH).expect("a hash");
        assert!(parsed.hash.is_some() && parsed.salt.is_some());
    }
}
