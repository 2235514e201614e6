//! The settings of single sign-on. For owners: who controls the provider can log in as any member.

use rapport_domain::audit::Action;
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::id::{PersonId, SsoId};
use rapport_domain::invalid::Invalid;
use rapport_domain::member::{Member, Role};
use rapport_domain::right::Right;
use rapport_domain::sso::{Change, Mode, Settings};
use rapport_store::sso::Sso;
use rapport_store::{Tx, company, member, session, sso};
use serde_json::{Value, json};

use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::sso::confirmed;
use crate::sso::provider::{Provider, ProviderError};
use crate::vault::Owner;
use crate::{App, audit, encryption_key, password};

const NEEDS: Needs = Needs::Right(Right::Sso);

/// Replaces the settings.
pub struct PutSso(pub Change);

impl Command for PutSso {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        company::lock(tx)?;
        let Change { settings, client_secret } = &self.0;
        let before = sso::get(tx)?;
        let id = before.as_ref().map_or_else(|| cx.id(), |before| before.id);
        let sealed = secret(tx, cx, id, before.as_ref(), &self.0)?;
        if settings.mode != Mode::Off && confirmed(tx, settings)?.is_empty() {
            return Err(not_confirmed(cx, settings));
        }
        if let Some(person) = settings.break_glass {
            check_break_glass(tx, person)?;
        }
        let after = Sso { id, settings: settings.clone(), updated_at: cx.now };
        sso::put(tx, &after, &sealed)?;
        end_sessions(tx, before.as_ref().map(|before| &before.settings), settings)?;
        let mut detail = audit::changes(&shown(before.as_ref()), &shown(Some(&after)));
        if client_secret.is_some() {
            detail["client_secret"] = json!(if before.is_some() { "replaced" } else { "set" });
        }
        if detail.as_object().is_some_and(|detail| !detail.is_empty()) {
            audit::record(tx, cx, Action::SsoChanged, None, &detail)?;
        }
        Ok(())
    }
}

/// The encrypted client secret: the new one, or else the current one. That goes to no other provider, or else somebody who
/// may only change the settings could have it sent to a server of their own.
fn secret(
    tx: &mut Tx,
    cx: &Context,
    id: SsoId,
    before: Option<&Sso>,
    change: &Change,
) -> Result<Vec<u8>, Error> {
    if let Some(text) = &change.client_secret {
        return Ok(encryption_key::seal(tx, cx, Owner::SsoClient(id), text)?);
    }
    let is_same = before.is_some_and(|before| before.settings.issuer == change.settings.issuer);
    let current = if is_same { sso::sealed_secret(tx)? } else { None };
    current.ok_or_else(|| {
        Invalid::one("/client_secret", "required", "is required for a new provider or another issuer").into()
    })
}

fn not_confirmed(cx: &Context, settings: &Settings) -> Error {
    let domain = settings.domains.first().map_or("", EmailDomain::as_str);
    let detail = format!(
        "none of these domains is confirmed yet; ask the server's administrator to run: rapport company claim-domain {} \
         {domain}",
        cx.company().slug.as_str()
    );
    Error::conflict("domain_not_confirmed", detail)
}

fn check_break_glass(tx: &mut Tx, person: PersonId) -> Result<(), Error> {
    let is_owner = |member: &Member| member.role == Role::Owner && member.is_active();
    let owner = member::get(tx, person)?.filter(is_owner);
    let login = member::login(tx, person)?.filter(|login| login.password_hash != password::NOBODYS);
    if owner.is_none() || login.is_none() {
        let detail = "must be an active owner who has a password";
        return Err(Invalid::one("/break_glass_owner", "not_an_owner", detail).into());
    }
    Ok(())
}

/// Ends the sessions that could not begin any more.
fn end_sessions(tx: &mut Tx, before: Option<&Settings>, after: &Settings) -> Result<(), Error> {
    if let (Mode::Required, Some(owner)) = (after.mode, after.break_glass) {
        session::end_by_password(tx, owner)?;
    }
    if after.mode == Mode::Off || before.is_some_and(|before| before.issuer != after.issuer) {
        session::end_by_sso(tx)?;
    }
    Ok(())
}

/// Removes the settings. Members keep their logins; those without a password can have a link for one mailed.
pub struct RemoveSso;

impl Command for RemoveSso {
    type Reply = ();
    const NEEDS: Needs = NEEDS;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        company::lock(tx)?;
        let before = sso::get(tx)?.ok_or(Error::NotFound("single sign-on settings"))?;
        sso::delete(tx)?;
        session::end_by_sso(tx)?;
        let detail = audit::changes(&shown(Some(&before)), &shown(None));
        audit::record(tx, cx, Action::SsoRemoved, None, &detail)?;
        Ok(())
    }
}

/// Tries whether the provider can be used as it is set up. The outer error is the caller's.
pub async fn test(app: &App, access: &Access) -> Result<Result<(), ProviderError>, Error> {
    let found = app.read(access, NEEDS, |snapshot, _| sso::get(snapshot)).await?;
    let Settings { issuer, client_id, .. } =
        found.reply.ok_or(Error::NotFound("single sign-on settings"))?.settings;
    let tested = app.services().providers().test(&Provider { issuer, client_id }, app.now()).await;
    if let Err(error) = &tested {
        tracing::info!(company = access.company().0, reason = error.for_log(), "provider failed the test");
    }
    Ok(tested)
}

/// The settings as the wire spells them.
fn shown(sso: Option<&Sso>) -> Value {
    let Some(Sso { settings, .. }) = sso else { return json!({}) };
    let domains: Vec<&str> = settings.domains.iter().map(EmailDomain::as_str).collect();
    json!({
        "mode": settings.mode.as_str(),
        "issuer": settings.issuer.as_str(),
        "client_id": settings.client_id,
        "domains": domains,
        "default_role": settings.role.as_str(),
        "break_glass_owner": settings.break_glass.map(|person| person.to_string()),
    })
}
