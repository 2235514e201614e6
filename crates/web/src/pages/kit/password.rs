//! The password of a person who is logged in, typed again: for changes that somebody at their unlocked computer, or with
//! a stolen session, must not make.

use rapport_app::read::profile::{self, Login};
use rapport_app::{Caller, Error, Services};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::{Email, Member};
use rapport_domain::password::Known;

use crate::pages::kit::visitor::Visitor;
use crate::pages::{LOGIN, Pages};

/// The person whose password is asked for.
pub struct Holder {
    pub login: Login,
    email: Email,
    company: String,
}

impl Holder {
    /// What others know about them, which their password must not consist of.
    pub fn known(&self) -> Known<'_> {
        Known { email: &self.email, name: &self.login.name, company: &self.company }
    }
}

impl Pages {
    /// Whether the visitor logged in with single sign-on. Then there is no password to ask for.
    pub async fn is_by_sso(&self, visitor: &Visitor) -> Result<bool, Error> {
        let found = self.app().read(&visitor.access(), LOGIN, |_, viewer| Ok(viewer.caller.by_sso)).await?;
        Ok(found.reply)
    }

    /// Checks what the person who is logged in typed into a field as their password, unless there were too many wrong
    /// ones. A wrong one is a failed login.
    pub async fn check_password<T: Send + 'static>(
        &self,
        visitor: &Visitor,
        (field, typed): (&str, &str),
        check: impl FnOnce(&Services, &Holder, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // Somebody whose company requires a second factor proves who they are before they set it up.
        let found = self.app().find(&visitor.access(), LOGIN, profile::login).await?;
        let (Member { email, .. }, login) = found.reply.ok_or(Error::Unauthenticated)?;
        let Caller { company, by_sso, .. } = found.viewer.caller;
        // The people who run the company's provider must not guess a password that opens other companies.
        if by_sso {
            let detail = "you logged in with single sign-on; log in with your password to do this";
            return Err(Error::conflict("sso_session", detail));
        }
        let attempt = visitor.attempt(self, &email);
        let Ok(guess) = self.0.limiter.guessing.admit(attempt, self.app().now()) else {
            let detail = "too many incorrect passwords; wait a minute";
            return Err(Invalid::one(format!("/{field}"), "too_many", detail).into());
        };
        let holder = Holder { login, email: email.clone(), company: company.name };
        let typed = typed.to_owned();
        let checked = self.slowly(move |services| check(services, &holder, &typed)).await;
        let was_wrong = checked.as_ref().is_err_and(Error::is_wrong_password);
        guess.settle(was_wrong);
        if was_wrong {
            self.note_failed_login(email.as_str(), visitor.origin);
        }
        checked
    }
}
