//! The one owner who can log in with a password where single sign-on is required, in case the provider fails. It's for
//! emergencies, so every owner is told.

use rapport_domain::audit::Action;
use rapport_domain::history::Actor;
use rapport_domain::mail::Kind;
use rapport_domain::member::{Member, Role};
use rapport_store::{Tx, member, sso};
use serde_json::json;

use crate::command::Context;
use crate::error::Error;
use crate::mail::{self, Recipient};
use crate::{audit, letter};

/// A notice that arrives later than this is no news.
const NOTICE_DAYS: i64 = 7;

/// Records that the owner used it, and tells all owners.
pub fn announce(tx: &mut Tx, cx: &Context, owner: &Member) -> Result<(), Error> {
    let actor = Actor::Person { id: owner.person, name: owner.name.clone() };
    audit::record_by(tx, cx, actor, Action::SsoBreakGlassUsed, Some(owner.person.to_string()), &json!({}))?;
    let owners = member::list(tx)?;
    let owners = owners.iter().filter(|member| member.role == Role::Owner && member.is_active());
    let recipients = owners.map(Recipient::from).collect();
    let address = cx.address_text();
    let base_url = &cx.outside().base_url;
    let letter = letter::break_glass_used(base_url, &cx.company().name, &owner.name, address.as_deref());
    mail::write(tx, cx, Kind::BreakGlassUsed, letter, recipients, cx.now.plus_days(NOTICE_DAYS))?;
    Ok(())
}

/// Refuses to demote, deactivate or remove this owner: nobody could get in without the provider.
pub fn keep(tx: &mut Tx, leaving: &Member) -> Result<(), Error> {
    if sso::get(tx)?.is_some_and(|sso| sso.settings.is_break_glass(leaving.person)) {
        let detail = "this is the break-glass owner of single sign-on; choose another one first";
        return Err(Error::conflict("break_glass_owner", detail));
    }
    Ok(())
}
