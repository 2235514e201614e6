//! A company's single sign-on, as its owners see it.

use rapport_domain::email_domain::EmailDomain;
use rapport_domain::member::{Member, Role};
use rapport_domain::time::Time;
use rapport_store::{Error, Snapshot, claimed_domain, member, sso};

use crate::password;

pub use rapport_store::sso::Sso;

/// A domain in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    pub domain: EmailDomain,
    /// When the server's administrator confirmed it.
    pub confirmed_at: Option<Time>,
}

/// The settings, with the domains that are confirmed.
pub struct Shown {
    pub sso: Sso,
    pub domains: Vec<Domain>,
}

pub fn settings(snapshot: &mut Snapshot) -> Result<Option<Shown>, Error> {
    let Some(sso) = sso::get(snapshot)? else { return Ok(None) };
    let claimed = claimed_domain::list(snapshot)?;
    let domains = sso.settings.domains.iter().map(|domain| {
        let found = claimed.iter().find(|claimed| claimed.domain == *domain);
        Domain { domain: domain.clone(), confirmed_at: found.map(|found| found.claimed_at) }
    });
    let domains = domains.collect();
    Ok(Some(Shown { sso, domains }))
}

/// Everything that the page shows.
pub struct Page {
    pub shown: Option<Shown>,
    /// Who can be the break-glass owner: the active owners who have a password.
    pub owners: Vec<Member>,
}

pub fn page(snapshot: &mut Snapshot) -> Result<Page, Error> {
    let mut owners = Vec::new();
    for owner in member::list(snapshot)? {
        let is_candidate = owner.role == Role::Owner && owner.is_active();
        let login = if is_candidate { member::login(snapshot, owner.person)? } else { None };
        if login.is_some_and(|login| login.password_hash != password::NOBODYS) {
            owners.push(owner);
        }
    }
    Ok(Page { shown: settings(snapshot)?, owners })
}
