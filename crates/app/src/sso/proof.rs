//! Somebody proves again who they are, in a session that began with single sign-on: with the provider, not with a password,
//! which they may not have.

use rapport_domain::audit::Action;
use rapport_domain::credential::Presented;
use rapport_domain::history::Actor;
use rapport_domain::right::Right;
use rapport_domain::sso::entry::{Claims, Reason};
use rapport_store::{Tx, session, sso, sso_identity};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::sso::confirmed;
use crate::sso::provider::Provider;

/// Notes in a session that its person has just logged in at the provider again; or returns why not.
pub struct ProveWithProvider {
    /// Who made the claims.
    pub provider: Provider,
    pub claims: Claims,
    pub session: Presented,
}

impl Command for ProveWithProvider {
    type Reply = Result<(), Reason>;
    const NEEDS: Needs = Needs::Right(Right::Own);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Result<(), Reason>, Error> {
        let Actor::Person { id, .. } = cx.actor() else { return Err(Error::Unauthenticated) };
        // A provider proves nothing for a session that reaches other companies.
        if !cx.caller.by_sso {
            return Ok(Err(Reason::Off));
        }
        let settings = sso::get(tx)?.map(|sso| sso.settings);
        let Some(settings) = settings.filter(|found| self.provider.is_of(found)) else {
            return Ok(Err(Reason::Off));
        };
        if let Err(reason) = self.claims.vouched(&confirmed(tx, &settings)?) {
            return Ok(Err(reason));
        }
        if sso_identity::find(tx, &settings.issuer, &self.claims.subject)? != Some(*id) {
            return Ok(Err(Reason::OtherPerson));
        }
        session::prove(tx, &self.session.hash, cx.now)?;
        let detail = json!({ "by": "single sign-on" });
        audit::record(tx, cx, Action::SessionProved, Some(id.to_string()), &detail)?;
        Ok(Ok(()))
    }
}
