//! Who the caller is and what they may do. Credentials are checked in the transaction they serve.

use rapport_domain::company::Company;
use rapport_domain::credential::{Credential, Kind, Presented, SecretHash};
use rapport_domain::history::Actor;
use rapport_domain::id::CompanyId;
use rapport_domain::member::Role;
use rapport_domain::right::Right;
use rapport_domain::second_factor::Step;
use rapport_domain::session::is_recent_proof;
use rapport_domain::time::Time;
use rapport_store::credential::{self, Callers, KnownCredential};
use rapport_store::{Snapshot, session};

use crate::context::Services;
use crate::error::Error;

/// What a caller presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// A well-formed token or key, not yet known to be live.
    Credential(Presented),
    /// The server's administrator, on the command line.
    CommandLine(CompanyId),
    /// The service itself.
    System(CompanyId),
}

impl Access {
    /// The command line before the first company exists.
    pub const NO_COMPANY: Self = Self::CommandLine(CompanyId(0));

    pub fn company(&self) -> CompanyId {
        match self {
            Self::Credential(presented) => presented.company,
            Self::CommandLine(company) | Self::System(company) => *company,
        }
    }
}

/// What a use case requires of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// An API token or a session whose role has this right. A session must have shown a second factor if its person has
    /// one or its company requires one.
    Right(Right),
    /// A session, also one whose person still has to show or set up a second factor.
    Login,
    /// The company's ingest key.
    IngestKey,
    /// The company's inbound key.
    InboundKey,
    /// The server's administrator, or the service itself.
    Server,
}

/// A caller who passed the check.
#[derive(Debug, Clone)]
pub struct Caller {
    pub company: Company,
    pub actor: Actor,
    pub role: Role,
    /// The number of companies the person belongs to, as far as this session may know.
    pub companies: i64,
    /// When a person last proved in their session who they are. `None` for everyone without a session: a token is its
    /// own proof.
    pub proved_at: Option<Time>,
    /// What a person still has to do about their second factor.
    pub step: Step,
    /// Whether the company's identity provider says that it is this person. Then the caller is this person in this
    /// company only: what they do must not reach the person's other companies.
    pub by_sso: bool,
}

impl Caller {
    /// Asks a person who they are again if they proved it too long ago.
    pub(crate) fn prove(&self, now: Time) -> Result<(), Error> {
        match self.proved_at {
            Some(at) if !is_recent_proof(at, now) => {
                let detail = "confirm that it's you first: your last login was a while ago";
                Err(Error::forbidden("proof_required", detail))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub fn may(&self, right: Right) -> bool {
        right.is_held_by(self.role, self.company.settings.grants)
    }

    /// For what a command needs only in some cases.
    pub fn require(&self, right: Right) -> Result<(), Error> {
        if self.may(right) {
            return Ok(());
        }
        Err(Error::forbidden("role_required", right.needed(self.company.settings.grants)))
    }

    /// Whether the caller may give this role, and change or take it from those who have it: nobody gives more than they
    /// have.
    pub fn manages(&self, role: Role) -> bool {
        if role == Role::Owner { self.may(Right::Owners) } else { role <= self.role }
    }
}

/// Checks one caller. The outer error comes from storage; the inner one is the refusal.
pub(crate) fn check_one(
    snapshot: &mut Snapshot,
    services: &Services,
    access: &Access,
    needs: Needs,
    now: Time,
) -> Result<Result<Caller, Error>, rapport_store::Error> {
    let mut checked = check(snapshot, services, &[access], needs, now)?;
    Ok(checked.pop().unwrap_or(Err(Error::Unauthenticated)))
}

/// Checks callers of one company with a single lookup.
pub(crate) fn check(
    snapshot: &mut Snapshot,
    services: &Services,
    callers: &[&Access],
    needs: Needs,
    now: Time,
) -> Result<Vec<Result<Caller, Error>>, rapport_store::Error> {
    let mut hashes: Vec<SecretHash> = callers.iter().filter_map(|access| hash_of(access)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    let Callers { company, known } = credential::callers(snapshot, &hashes)?;
    let limits = company.as_ref().map(|company| company.settings.sessions).unwrap_or_default();
    let mut sessions = Vec::new();
    for presented in callers.iter().filter_map(|access| session_of(access)) {
        let found = session::find(snapshot, &presented.hash)?.filter(|session| !session.is_over(limits, now));
        sessions.extend(found.map(|session| (presented.hash, session)));
    }
    let one = |access: &&Access| {
        let company = company.clone().ok_or(Error::Unauthenticated)?;
        let (mut companies, mut proved_at, mut by_sso, mut step) = (1, None, false, Step::Nothing);
        let (actor, role) = match access {
            Access::CommandLine(_) => (Actor::CommandLine, Role::Owner),
            Access::System(_) => (Actor::System, Role::Owner),
            Access::Credential(presented) if presented.kind == Kind::Session => {
                let known = sessions.iter().find(|(hash, _)| hash.matches(&presented.hash));
                let (_, session) = known.ok_or(Error::Unauthenticated)?;
                services.note_session(company.id, limits, session, now);
                (proved_at, by_sso) = (Some(session.proved_at), session.by_sso);
                // The company's provider asks its people for a second factor, or doesn't: that is up to the company.
                if !by_sso {
                    companies = session.companies;
                    step = session.next_step(company.settings.second_factor_required);
                }
                (Actor::Person { id: session.person, name: session.name.clone() }, session.role)
            }
            Access::Credential(presented) => {
                let known = known.iter().find(|known| known.hash.matches(&presented.hash));
                let KnownCredential { credential, holder, .. } = known.ok_or(Error::Unauthenticated)?;
                if credential.kind != presented.kind {
                    return Err(Error::Unauthenticated);
                }
                let role = credential.role_now(*holder, now).ok_or(Error::Unauthenticated)?;
                services.note_use(company.id, credential.id, now);
                if let Some(per_second) = credential.rate_limit {
                    services.own_limits().note(presented.hash, per_second);
                }
                (actor_of(credential), role)
            }
        };
        let caller = Caller { company, actor, role, companies, proved_at, step, by_sso };
        permit(access, needs, &caller)?;
        Ok(caller)
    };
    Ok(callers.iter().map(one).collect())
}

fn permit(access: &Access, needs: Needs, caller: &Caller) -> Result<(), Error> {
    let kind = match access {
        Access::Credential(presented) => Some(presented.kind),
        Access::CommandLine(_) | Access::System(_) => None,
    };
    match (needs, kind) {
        (_, None)
        | (Needs::IngestKey, Some(Kind::IngestKey))
        | (Needs::InboundKey, Some(Kind::InboundKey))
        | (Needs::Login, Some(Kind::Session)) => Ok(()),
        (Needs::Right(_), Some(Kind::Session)) if caller.step != Step::Nothing => Err(Error::lacks_factor()),
        (Needs::Right(right), Some(Kind::ApiToken | Kind::Session)) => caller.require(right),
        (Needs::Right(_) | Needs::Login | Needs::IngestKey | Needs::InboundKey | Needs::Server, Some(_)) => {
            Err(Error::Unauthenticated)
        }
    }
}

fn session_of(access: &Access) -> Option<Presented> {
    match access {
        Access::Credential(presented) if presented.kind == Kind::Session => Some(*presented),
        Access::Credential(_) | Access::CommandLine(_) | Access::System(_) => None,
    }
}

/// Sessions are stored separately from tokens and keys.
fn hash_of(access: &Access) -> Option<SecretHash> {
    match access {
        Access::Credential(presented) if presented.kind != Kind::Session => Some(presented.hash),
        Access::Credential(_) | Access::CommandLine(_) | Access::System(_) => None,
    }
}

fn actor_of(credential: &Credential) -> Actor {
    let id = credential.id;
    match credential.kind {
        Kind::IngestKey => Actor::IngestKey { id },
        Kind::InboundKey => Actor::InboundKey { id },
        Kind::ApiToken
        | Kind::WebhookSecret
        | Kind::Invitation
        | Kind::PasswordReset
        | Kind::Session
        | Kind::AddressChange => Actor::Token { id, name: credential.name.clone() },
    }
}
