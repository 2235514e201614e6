//! API tokens, the ingest key and the inbound key: create, rotate, revoke.

use rapport_domain::audit::Action;
use rapport_domain::credential::{Credential, Issued, Kind, TokenRequest, check_expiry, issue};
use rapport_domain::id::{CompanyId, CredentialId, PersonId};
use rapport_domain::invalid::{Fault, Invalid};
use rapport_domain::member::{Member, Role};
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use rapport_store::credential::Token;
use rapport_store::{Lane, Tx, credential, member};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::notice::{self, Notice};

/// A credential with its text, for the one time it is shown.
#[derive(Debug, Clone)]
pub struct NewCredential {
    pub credential: Credential,
    pub text: String,
}

pub struct CreateToken(pub TokenRequest);

impl Command for CreateToken {
    type Reply = NewCredential;
    const NEEDS: Needs = Needs::Right(Right::Keys);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewCredential, Error> {
        let TokenRequest { name, role, person, expires_at, .. } = &self.0;
        if !cx.caller.manages(*role) {
            return Err(Error::forbidden(
                "role_required",
                "a token can't have a higher role than its creator",
            ));
        }
        if let Some(at) = expires_at {
            let refused = |fault: Fault| Invalid::one("/expires_at", fault.code, fault.detail);
            check_expiry(*at, cx.now).map_err(refused)?;
        }
        let holder = person.map(|person| holder(tx, cx, person, *role)).transpose()?;
        let made = make(tx, cx, cx.company().id, Kind::ApiToken, &self.0)?;
        let detail = shown(&made.credential, holder.as_ref().map(|holder| holder.name.as_str()));
        audit::record(tx, cx, Action::TokenCreated, Some(made.credential.id.to_string()), &detail)?;
        if let Some(holder) = holder {
            let by = cx.actor().name();
            notice::send(tx, cx, holder.person, Notice::TokenCreated { name, role: *role, by })?;
        }
        Ok(made)
    }
}

/// The person whose token it is to be.
fn holder(tx: &mut Tx, cx: &Context, person: PersonId, role: Role) -> Result<Member, Error> {
    // If they are removed at the same time, no token must stay behind.
    rapport_store::company::lock(tx)?;
    let found = member::get(tx, person)?.filter(Member::is_active);
    let found = found.ok_or_else(|| Invalid::one("/owner", "unknown_person", "must be an active member"))?;
    if found.role > cx.caller.role {
        return Err(Error::forbidden("role_required", "only an owner can create a token for an owner"));
    }
    if role > found.role {
        let detail = "must not be above the role of the person whose token it is";
        return Err(Invalid::one("/role", "out_of_range", detail).into());
    }
    Ok(found)
}

/// A token as the audit log describes it.
fn shown(token: &Credential, holder: Option<&str>) -> Value {
    let mut detail = json!({ "name": token.name, "role": token.role.as_str(), "prefix": token.shown });
    if let Some(holder) = holder {
        detail["owner"] = json!(holder);
    }
    if let Some(at) = token.expires_at {
        detail["expires_at"] = json!(at.to_string());
    }
    if let Some(per_second) = token.rate_limit {
        detail["rate_limit"] = json!(per_second);
    }
    detail
}

pub struct RevokeToken(pub CredentialId);

impl Command for RevokeToken {
    type Reply = ();
    const NEEDS: Needs = Needs::Right(Right::Keys);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = credential::tokens(tx)?.into_iter().find(|token| token.credential.id == self.0);
        let found = found.ok_or(Error::NotFound("token"))?;
        if !cx.caller.manages(found.rank()) {
            return Err(Error::forbidden("role_required", "only an owner can revoke an owner's token"));
        }
        revoke(tx, cx, &found)
    }
}

fn revoke(tx: &mut Tx, cx: &Context, token: &Token) -> Result<(), Error> {
    let id = token.credential.id;
    if !credential::delete(tx, id, Kind::ApiToken)? {
        return Err(Error::NotFound("token"));
    }
    let detail = shown(&token.credential, token.holder.as_ref().map(|holder| holder.name.as_str()));
    audit::record(tx, cx, Action::TokenRevoked, Some(id.to_string()), &detail)?;
    Ok(())
}

/// Revokes the tokens of a person who is no longer there to answer for them.
pub(crate) fn revoke_of(tx: &mut Tx, cx: &Context, person: PersonId) -> Result<(), Error> {
    let tokens = credential::tokens(tx)?;
    tokens
        .iter()
        .filter(|token| token.credential.person == Some(person))
        .try_for_each(|token| revoke(tx, cx, token))
}

/// The keys of which a company has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Ingest,
    Inbound,
}

impl Key {
    const fn kind(self) -> Kind {
        match self {
            Self::Ingest => Kind::IngestKey,
            Self::Inbound => Kind::InboundKey,
        }
    }

    const fn rotated(self) -> Action {
        match self {
            Self::Ingest => Action::IngestKeyRotated,
            Self::Inbound => Action::InboundKeyRotated,
        }
    }
}

/// Creates a new ingest or inbound key; the old one stops working immediately.
pub struct RotateKey(pub Key);

impl Command for RotateKey {
    type Reply = NewCredential;
    const NEEDS: Needs = Needs::Right(Right::Keys);

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewCredential, Error> {
        // Two concurrent rotations must leave one key, so both lock the company's row.
        rapport_store::company::lock(tx)?;
        let kind = self.0.kind();
        let old = credential::list(tx, kind)?.into_iter().next().map(|key| key.shown);
        credential::delete_kind(tx, kind)?;
        let made =
            make(tx, cx, cx.company().id, kind, &TokenRequest::of_company(kind.as_str(), Role::Member))?;
        let detail = json!({ "prefix": { "from": old, "to": made.credential.shown } });
        audit::record(tx, cx, self.0.rotated(), Some(made.credential.id.to_string()), &detail)?;
        Ok(made)
    }
}

/// Stores when credentials were last used.
pub struct NoteUses(pub Vec<(CredentialId, Time)>);

impl Command for NoteUses {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        for (id, at) in &self.0 {
            credential::touch(tx, *id, *at)?;
        }
        Ok(())
    }
}

pub(crate) fn make(
    tx: &mut Tx,
    cx: &Context,
    company: CompanyId,
    kind: Kind,
    request: &TokenRequest,
) -> Result<NewCredential, rapport_store::Error> {
    let Issued { text, hash, shown } = issue(kind, company, cx.random());
    let TokenRequest { name, role, person, expires_at, rate_limit } = request.clone();
    let made = Credential {
        id: cx.id(),
        kind,
        name,
        role,
        shown,
        created_at: cx.now,
        last_used_at: None,
        person,
        expires_at,
        rate_limit,
    };
    credential::insert(tx, &hash, &made)?;
    Ok(NewCredential { credential: made, text })
}
