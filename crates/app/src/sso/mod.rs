//! Single sign-on: people log in to their company with its own identity provider (OpenID Connect).
//!
//! A company's provider may say who somebody is in that company, and nothing about any other. So a session that it began
//! works for that company only, a login that it made is confined to it, and it speaks only for addresses in domains that
//! the server's administrator confirmed (`docs/identity.md`).
//!
//! - [`settings`]: the provider, and who may use it. [`domain`]: confirmed domains.
//! - [`login`]: a login from the first click to the session. [`admission`]: who comes in, and as whom. `proof`: who is asked
//!   again.
//! - [`provider`]: what use cases ask of a provider. The requests are made elsewhere.

pub(crate) mod admission;
mod attempt;
pub(crate) mod break_glass;
pub mod domain;
pub mod login;
mod proof;
pub mod provider;
mod refusal;
pub mod settings;

use rapport_domain::email_domain::EmailDomain;
use rapport_domain::id::PersonId;
use rapport_domain::sso::{Mode, Settings};
use rapport_store::{Snapshot, Tx, claimed_domain, sso};

use crate::error::Error;

pub use attempt::MAX_NEXT_BYTES;
pub use rapport_store::claimed_domain::Claimed;
pub use rapport_store::sso::Sso;

/// The code of the refusal of a password where single sign-on is required.
pub const SSO_REQUIRED: &str = "sso_required";

/// Refuses a password of somebody who may enter the company only with single sign-on.
pub(crate) fn admit_password(settings: Option<&Settings>, person: PersonId) -> Result<(), Error> {
    if settings.is_none_or(|settings| settings.takes_password(person)) { Ok(()) } else { Err(required()) }
}

/// The same in a transaction, with the settings as they are now.
pub(crate) fn check_password(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    admit_password(sso::get(tx)?.map(|sso| sso.settings).as_ref(), person)
}

/// Whether nobody becomes a member with a password.
pub(crate) fn is_required(snapshot: &mut Snapshot) -> Result<bool, rapport_store::Error> {
    Ok(sso::get(snapshot)?.is_some_and(|sso| sso.settings.mode == Mode::Required))
}

pub(crate) fn required() -> Error {
    Error::forbidden(SSO_REQUIRED, "this company requires single sign-on")
}

/// The domains that the company's provider may speak for: those in its settings that are confirmed.
fn confirmed(snapshot: &mut Snapshot, settings: &Settings) -> Result<Vec<EmailDomain>, rapport_store::Error> {
    let claimed = claimed_domain::list(snapshot)?.into_iter().map(|claimed| claimed.domain);
    Ok(claimed.filter(|domain| settings.domains.contains(domain)).collect())
}
