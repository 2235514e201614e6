//! API tokens, the ingest key and the inbound key: create, rotate, revoke.

use rapport_domain::audit::Action;
use rapport_domain::credential::{Credential, Issued, Kind, issue};
use rapport_domain::id::{CompanyId, CredentialId};
use rapport_domain::member::Role;
use rapport_domain::time::Time;
use rapport_store::{Lane, Tx, credential};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::error::Error;

/// A credential with its text, for the one time it is shown.
#[derive(Debug, Clone)]
pub struct NewCredential {
    pub credential: Credential,
    pub text: String,
}

pub struct CreateToken {
    pub name: String,
    pub role: Role,
}

impl Command for CreateToken {
    type Reply = NewCredential;
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewCredential, Error> {
        if self.role > cx.caller.role {
            return Err(Error::forbidden(
                "role_required",
                "a token can't have a higher role than its creator",
            ));
        }
        let made = make(tx, cx, cx.company().id, Kind::ApiToken, &self.name, self.role)?;
        let shown = &made.credential.shown;
        let detail = json!({ "name": self.name, "role": self.role.as_str(), "prefix": shown });
        audit::record(tx, cx, Action::TokenCreated, Some(made.credential.id.to_string()), &detail)?;
        Ok(made)
    }
}

pub struct RevokeToken(pub CredentialId);

impl Command for RevokeToken {
    type Reply = ();
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<(), Error> {
        let found = credential::list(tx, Kind::ApiToken)?.into_iter().find(|token| token.id == self.0);
        let found = found.ok_or(Error::NotFound("token"))?;
        if !credential::delete(tx, self.0, Kind::ApiToken)? {
            return Err(Error::NotFound("token"));
        }
        let detail = json!({ "name": found.name, "role": found.role.as_str(), "prefix": found.shown });
        audit::record(tx, cx, Action::TokenRevoked, Some(self.0.to_string()), &detail)?;
        Ok(())
    }
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
    const NEEDS: Needs = Needs::Role(Role::Admin);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<NewCredential, Error> {
        // Two concurrent rotations must leave one key, so both lock the company's row.
        rapport_store::company::lock(tx)?;
        let kind = self.0.kind();
        let old = credential::list(tx, kind)?.into_iter().next().map(|key| key.shown);
        credential::delete_kind(tx, kind)?;
        let made = make(tx, cx, cx.company().id, kind, kind.as_str(), Role::Member)?;
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
    name: &str,
    role: Role,
) -> Result<NewCredential, rapport_store::Error> {
    let Issued { text, hash, shown } = issue(kind, company, cx.random());
    let made = Credential {
        id: cx.id(),
        kind,
        name: name.to_owned(),
        role,
        shown,
        created_at: cx.now,
        last_used_at: None,
    };
    credential::insert(tx, &hash, &made)?;
    Ok(NewCredential { credential: made, text })
}
