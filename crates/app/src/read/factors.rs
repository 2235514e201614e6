//! The second factors of the person who is logged in.

use rapport_domain::id::{CompanyId, PersonId};
use rapport_domain::member::{Email, Member};
use rapport_domain::second_factor::Passkey;
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, member, passkey, recovery_code, sso, totp};

use crate::read::Viewer;

pub use rapport_domain::second_factor::Step;
pub use rapport_store::member::Login;
pub use rapport_store::totp::Totp;

/// The ways to log in that the profile page shows.
pub struct Factors {
    pub passkeys: Vec<Passkey>,
    pub app: Option<AppView>,
    /// How many recovery codes are left.
    pub recovery_codes: i64,
}

impl Factors {
    pub fn has_any(&self) -> bool {
        !self.passkeys.is_empty() || self.app.is_some()
    }
}

/// A confirmed authenticator app.
pub struct AppView {
    pub confirmed_at: Time,
    pub last_used_at: Option<Time>,
}

pub fn of(snapshot: &mut Snapshot, person: PersonId) -> Result<Factors, Error> {
    let app = totp::get(snapshot, person)?;
    let view = |app: Totp| {
        let last_used_at = app.last_used_at;
        app.confirmed_at.map(|confirmed_at| AppView { confirmed_at, last_used_at })
    };
    Ok(Factors {
        passkeys: passkey::list(snapshot, person)?,
        app: app.and_then(view),
        recovery_codes: recovery_code::count(snapshot, person)?,
    })
}

/// The person who adds a factor or proves again who they are, and what that takes.
pub struct Holder {
    pub person: PersonId,
    pub email: Email,
    pub name: String,
    pub login: Login,
    pub company: String,
    pub step: Step,
    /// What authenticators call the passkeys that they have.
    pub credentials: Vec<Vec<u8>>,
    pub app: Option<Totp>,
    /// The host of the company's identity provider, if they logged in with it.
    pub provider: Option<String>,
    /// The only company that they may learn about, if they logged in with its provider.
    pub confined: Option<CompanyId>,
}

pub fn holder(snapshot: &mut Snapshot, viewer: &Viewer) -> Result<Option<Holder>, Error> {
    let Some(person) = viewer.person() else { return Ok(None) };
    let (member, login) = (member::get(snapshot, person)?, member::login(snapshot, person)?);
    let (Some(Member { email, name, .. }), Some(login)) = (member, login) else { return Ok(None) };
    let sso = if viewer.caller.by_sso { sso::get(snapshot)? } else { None };
    Ok(Some(Holder {
        person,
        email,
        name,
        login,
        company: viewer.caller.company.name.clone(),
        step: viewer.caller.step,
        credentials: passkey::credentials(snapshot, person)?,
        app: totp::get(snapshot, person)?,
        provider: sso.map(|sso| sso.settings.issuer.host()),
        confined: viewer.caller.by_sso.then_some(viewer.caller.company.id),
    }))
}
