//! API tokens, ingest and inbound keys: looked up by the hash of their text and checked in the transaction
//! they authorise, so that a rotation takes effect immediately on every node.

use rapport_domain::company::Company;
use rapport_domain::credential::{Credential, Kind, SecretHash};
use rapport_domain::id::{CredentialId, PersonId};
use rapport_domain::member::Role;
use rapport_domain::time::Time;

use crate::company::company_columns;
use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Snapshot, Tx};
use crate::value::{Row, Value};
use crate::{company, values};

statements! {
    company CALLERS = concat!(
        "SELECT ", company_columns!(), ", k.hash, k.id, k.kind, k.name, k.role, k.shown, k.created_at, ",
        "k.last_used_at, k.person, k.expires_at, k.rate_limit, m.role ",
        "FROM company c LEFT JOIN credential k ON k.company = c.id AND k.hash = ANY($2) ",
        "LEFT JOIN member m ON m.company = k.company AND m.person = k.person AND m.deactivated_at IS NULL ",
        "WHERE c.id = $1"
    );
    company LIST = "SELECT id, kind, name, role, shown, created_at, last_used_at, person, expires_at, \
                    rate_limit FROM credential WHERE company = $1 AND kind = $2 ORDER BY id DESC";
    company TOKENS = "SELECT k.id, k.kind, k.name, k.role, k.shown, k.created_at, k.last_used_at, k.person, \
                      k.expires_at, k.rate_limit, p.name, m.role FROM credential k \
                      LEFT JOIN person p ON p.id = k.person \
                      LEFT JOIN member m ON m.company = k.company AND m.person = k.person \
                      AND m.deactivated_at IS NULL WHERE k.company = $1 AND k.kind = $2 ORDER BY k.id DESC";
    company INSERT = "INSERT INTO credential (company, hash, id, kind, name, role, shown, created_at, person, \
                      expires_at, rate_limit) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    company DELETE = "DELETE FROM credential WHERE company = $1 AND id = $2 AND kind = $3";
    company DELETE_KIND = "DELETE FROM credential WHERE company = $1 AND kind = $2";
    company TOUCH = "UPDATE credential SET last_used_at = $3 WHERE company = $1 AND id = $2 \
                     AND (last_used_at IS NULL OR last_used_at < $3)";
}

/// A company, and those of the presented credentials that it knows.
#[derive(Debug, Default)]
pub struct Callers {
    pub company: Option<Company>,
    pub known: Vec<KnownCredential>,
}

/// A credential that a company knows. It may have expired.
#[derive(Debug)]
pub struct KnownCredential {
    pub hash: SecretHash,
    pub credential: Credential,
    /// The current role of the person whose token it is, while they are an active member.
    pub holder: Option<Role>,
}

/// The first query of every transaction.
pub fn callers(snapshot: &mut Snapshot, hashes: &[SecretHash]) -> Result<Callers, Error> {
    if hashes.is_empty() {
        return Ok(Callers { company: company::get(snapshot)?, known: Vec::new() });
    }
    let keys: Vec<Value> = hashes.iter().map(Value::from).collect();
    let mut callers = Callers::default();
    for mut row in snapshot.query_keys(&CALLERS, &[], &keys)? {
        callers.company = Some(company::read_from(&mut row)?);
        if let Some(hash) = row.take()? {
            let credential = read_from(&mut row)?;
            callers.known.push(KnownCredential { hash, credential, holder: read_role(&mut row)? });
        }
    }
    Ok(callers)
}

pub fn list(snapshot: &mut Snapshot, kind: Kind) -> Result<Vec<Credential>, Error> {
    let rows = snapshot.query(&LIST, values![kind.as_str()])?;
    rows.into_iter().map(read).collect()
}

/// A token, and the person whose token it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub credential: Credential,
    pub holder: Option<Holder>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub person: PersonId,
    pub name: String,
    /// Their current role, while they are an active member.
    pub role: Option<Role>,
}

impl Token {
    /// The role that it takes to see or revoke it.
    pub fn rank(&self) -> Role {
        self.credential.rank(self.holder.as_ref().and_then(|holder| holder.role))
    }
}

/// The API tokens, newest first.
pub fn tokens(snapshot: &mut Snapshot) -> Result<Vec<Token>, Error> {
    let token = |mut row: Row| {
        let credential = read_from(&mut row)?;
        let (name, role) = (row.take::<Option<String>>()?, read_role(&mut row)?);
        let holder = credential.person.map(|person| Holder { person, name: name.unwrap_or_default(), role });
        Ok(Token { credential, holder })
    };
    snapshot.query(&TOKENS, values![Kind::ApiToken.as_str()])?.into_iter().map(token).collect()
}

pub fn insert(tx: &mut Tx, hash: &SecretHash, credential: &Credential) -> Result<(), Error> {
    let Credential { id, kind, name, role, shown, created_at, person, expires_at, rate_limit, .. } =
        credential;
    let (kind, role) = (kind.as_str(), role.as_str());
    tx.execute(
        &INSERT,
        values![hash, id, kind, name, role, shown, *created_at, person.as_ref(), *expires_at, *rate_limit],
    )?;
    Ok(())
}

pub fn delete(tx: &mut Tx, id: CredentialId, kind: Kind) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE, values![&id, kind.as_str()])? > 0)
}

/// Deletes every credential of a kind, so that a rotation leaves none behind.
pub fn delete_kind(tx: &mut Tx, kind: Kind) -> Result<(), Error> {
    tx.execute(&DELETE_KIND, values![kind.as_str()])?;
    Ok(())
}

pub fn touch(tx: &mut Tx, id: CredentialId, at: Time) -> Result<(), Error> {
    tx.execute(&TOUCH, values![&id, at])?;
    Ok(())
}

fn read_role(row: &mut Row) -> Result<Option<Role>, Error> {
    let role = row.take::<Option<String>>()?.map(|word| Role::parse(&word)).transpose();
    role.map_err(|_| Error::fault("a member's role is not valid"))
}

fn read(mut row: Row) -> Result<Credential, Error> {
    read_from(&mut row)
}

fn read_from(row: &mut Row) -> Result<Credential, Error> {
    let bad = |what: &str| Error::fault(format!("a credential's stored {what} is not valid"));
    Ok(Credential {
        id: row.take()?,
        kind: Kind::parse(&row.take::<String>()?).ok_or_else(|| bad("kind"))?,
        name: row.take()?,
        role: Role::parse(&row.take::<String>()?).map_err(|_| bad("role"))?,
        shown: row.take()?,
        created_at: row.take()?,
        last_used_at: row.take()?,
        person: row.take()?,
        expires_at: row.take()?,
        rate_limit: row.take()?,
    })
}
