//! Confirming email domains. Only the server's administrator can: a company that could claim any domain could speak for
//! the people of another.

use rapport_domain::audit::Action;
use rapport_domain::email_domain::EmailDomain;
use rapport_store::{Tx, claimed_domain};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// Confirms that a domain is the company's. Nothing happens if it was confirmed before.
pub struct ClaimDomain(pub EmailDomain);

impl Command for ClaimDomain {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let domain = self.0.as_str();
        if claimed_domain::claim(tx, &self.0, cx.now)? {
            let detail = json!({ "domain": domain });
            audit::record(tx, cx, Action::DomainClaimed, None, &detail)?;
            return Ok(());
        }
        match claimed_domain::owner_now(tx, &self.0)? {
            Some(owner) if owner != cx.company().slug.as_str() => {
                let detail = format!("{domain} is a domain of the company {owner}; release it there first");
                Err(Error::conflict("domain_claimed", detail))
            }
            _ => Ok(()),
        }
    }
}

/// Takes a confirmed domain away. The company's provider no longer speaks for its people.
pub struct ReleaseDomain(pub EmailDomain);

impl Command for ReleaseDomain {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        if !claimed_domain::release(tx, &self.0)? {
            return Err(Error::NotFound("confirmed domain of this company"));
        }
        let detail = json!({ "domain": self.0.as_str() });
        audit::record(tx, cx, Action::DomainReleased, None, &detail)?;
        Ok(())
    }
}
