//! Failed logins: each in the log, and some in the audit logs of the companies that the person works in.

use rapport_domain::audit::Action;
use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Member};
use rapport_domain::second_factor::Factor;
use rapport_store::password_reset::{self, Membership};
use rapport_store::{Tx, member};
use serde_json::json;

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::origin::Origin;
use crate::repeats::Repeated;
use crate::{App, audit, session};

/// Logs a failed login. Text that isn't an email address is left out: it may be a password typed into the wrong field.
pub fn log(typed: &str, origin: Origin) -> Option<Email> {
    let email = Email::parse(typed).ok();
    let client = origin.address.to_canonical();
    tracing::info!(%client, email = email.as_ref().map(Email::as_str), "login failed");
    email
}

/// Records a failed login in every company where the person is an active member, at most once a minute. An unknown
/// address is recorded nowhere.
///
/// Don't make the person who logs in wait for this: the time it takes would tell whether the address is known.
pub async fn record(app: &App, email: Email, origin: Origin) -> Result<(), Error> {
    // Every login with this address: nobody knows which of them was meant.
    let known = app.read_across(move |across| password_reset::memberships(across, &email)).await?;
    let mut people: Vec<PersonId> = known.iter().map(|membership| membership.person).collect();
    people.sort_unstable();
    people.dedup();
    people.retain(|person| app.services().repeats().is_first(Repeated::FailedLogin(*person), app.now()));
    for Membership { person, company, .. } in known {
        if people.contains(&person) {
            let command = RecordFailedLogin { person, factor: None };
            app.write_from(&Access::System(company), Some(origin), command).await?;
        }
    }
    Ok(())
}

/// Logs and records a login that failed because of a second factor, like [`record`]. The address alone doesn't say whose
/// login it was, but here it is known.
pub async fn record_factor(app: &App, person: PersonId, factor: Factor, origin: Origin) -> Result<(), Error> {
    let client = origin.address.to_canonical();
    tracing::info!(%client, %person, factor = factor.as_str(), "login failed");
    if !app.services().repeats().is_first(Repeated::FailedLogin(person), app.now()) {
        return Ok(());
    }
    for place in session::workplaces(app, person, None).await? {
        let command = RecordFailedLogin { person, factor: Some(factor) };
        app.write_from(&Access::System(place.company), Some(origin), command).await?;
    }
    Ok(())
}

struct RecordFailedLogin {
    person: PersonId,
    /// The second factor that was wrong, if the password wasn't.
    factor: Option<Factor>,
}

impl Command for RecordFailedLogin {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = member::get(tx, self.person)?.filter(Member::is_active);
        let Some(found) = found else { return Ok(()) };
        // Nobody proved to be this person, so they are the target and not the actor.
        let mut detail = json!({ "email": found.email.as_str() });
        if let Some(factor) = self.factor {
            detail["factor"] = json!(factor.as_str());
        }
        Ok(audit::record(tx, cx, Action::SessionFailed, Some(self.person.to_string()), &detail)?)
    }
}
