//! Makes a command count once, however often its request arrives: a form by its id, a request of the API by its key.
//!
//! Both are recorded in the transaction of the command itself, so neither a crash nor a lost answer to a commit can make
//! it run twice, on any node. A form that arrives again is refused. A request of the API gets the response of the first
//! one, which is therefore rendered and kept in the same transaction.

use std::sync::Arc;

use rapport_domain::id::{FormId, ResponseId};
use rapport_domain::repeat::{MAX_KEPT_BYTES, MAX_KEYS_OF_SHARE, RequestHash, forgotten_at};
use rapport_domain::time::Time;
use rapport_store::sealed::Owner;
use rapport_store::submission::KeptResponse;
use rapport_store::{Lane, Snapshot, Tx, submission};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::encryption_key;
use crate::error::Error;
use crate::read::Viewer;
use crate::vault::Vault;

/// How long a form is remembered after it was shown.
pub(crate) const FORM_DAYS: i64 = 2;

/// The code of the conflict for a form that was already submitted.
pub const ALREADY_SENT: &str = "already_sent";
/// When to try again if a company has too many keys.
const TOO_MANY_SECONDS: u64 = 3_600;

/// The status of a response from which on it is an error.
const FIRST_ERROR: u16 = 400;

/// Runs its command, unless the same form already did.
#[derive(Clone)]
pub struct Once<C> {
    pub form: FormId,
    pub command: C,
}

impl<C: Command> Command for Once<C> {
    type Reply = C::Reply;
    const NEEDS: Needs = C::NEEDS;
    const LANE: Lane = C::LANE;
    const EXCLUSIVE: bool = C::EXCLUSIVE;

    fn weight(&self) -> usize {
        self.command.weight()
    }

    fn needs_proof(&self, cx: &Context) -> bool {
        self.command.needs_proof(cx)
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<C::Reply, Error> {
        if !submission::take(tx, self.form)? {
            return Err(Error::conflict(
                ALREADY_SENT,
                "this form was already submitted; nothing was done twice",
            ));
        }
        self.command.run(tx, cx)
    }
}

/// A request that may be repeated: where its response is kept, and what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub id: ResponseId,
    pub request: RequestHash,
}

/// A response to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: String,
    /// Whether it contains a secret, so that it is kept encrypted.
    pub is_secret: bool,
}

/// What became of a request that may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<N> {
    /// It was done now.
    Done { response: Response, note: N },
    /// It was done before. `body` is `None` if the response was too large to keep, or can no longer be decrypted.
    Repeated { status: u16, body: Option<String> },
    /// The key was used for another request.
    Reused,
}

/// Makes the response from the reply of a command, and what else the caller wants to know about it.
pub type Render<T, N> =
    Arc<dyn Fn(&mut Snapshot, &Viewer, T) -> Result<(Response, N), rapport_store::Error> + Send + Sync>;

/// Runs its command, unless a request with the same key already did. The response is rendered in the same transaction.
/// Like the command, `render` may run more than once.
pub struct Repeatable<C: Command, N> {
    pub claim: Claim,
    pub command: C,
    pub render: Render<C::Reply, N>,
}

impl<C: Command + Clone, N> Clone for Repeatable<C, N> {
    fn clone(&self) -> Self {
        Self { claim: self.claim, command: self.command.clone(), render: Arc::clone(&self.render) }
    }
}

impl<C: Command, N: Send + 'static> Command for Repeatable<C, N> {
    type Reply = Outcome<N>;
    const NEEDS: Needs = C::NEEDS;
    const LANE: Lane = C::LANE;
    const EXCLUSIVE: bool = C::EXCLUSIVE;

    fn weight(&self) -> usize {
        self.command.weight()
    }

    fn needs_proof(&self, cx: &Context) -> bool {
        self.command.needs_proof(cx)
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Outcome<N>, Error> {
        let Claim { id, .. } = self.claim;
        if let Some(known) = recall(tx, cx.vault(), &self.claim, cx.now)? {
            return Ok(known);
        }
        if submission::count_share(tx, id, MAX_KEYS_OF_SHARE)? >= MAX_KEYS_OF_SHARE {
            let detail = "the company has used too many idempotency keys within a day; nothing was done";
            return Err(Error::too_many("too_many_idempotency_keys", detail, TOO_MANY_SECONDS));
        }
        let reply = self.command.run(tx, cx)?;
        let viewer = Viewer { caller: cx.caller.clone(), now: cx.now };
        let (response, note) = (self.render)(tx, &viewer, reply)?;
        // What was refused changed nothing, so it can be tried again with the same key.
        if response.status < FIRST_ERROR {
            keep(tx, cx, &self.claim, &response)?;
        }
        Ok(Outcome::Done { response, note })
    }
}

/// Whether a response is kept.
pub fn is_kept(snapshot: &mut Snapshot, id: ResponseId, now: Time) -> Result<bool, rapport_store::Error> {
    Ok(submission::kept(snapshot, id, forgotten_at(now))?.is_some())
}

/// What is known of a request from before.
pub fn recall<N>(
    snapshot: &mut Snapshot,
    vault: &Vault,
    claim: &Claim,
    now: Time,
) -> Result<Option<Outcome<N>>, rapport_store::Error> {
    let Some(found) = submission::kept(snapshot, claim.id, forgotten_at(now))? else { return Ok(None) };
    let KeptResponse { request, status, body, secret } = found;
    if request != claim.request.as_bytes() {
        return Ok(Some(Outcome::Reused));
    }
    let open = |sealed: Vec<u8>| vault.open(Owner::Response(claim.id), &sealed).ok();
    let body = body.or_else(|| secret.and_then(open));
    let status = u16::try_from(status).unwrap_or_default();
    Ok(Some(Outcome::Repeated { status, body }))
}

fn keep(tx: &mut Tx, cx: &Context, claim: &Claim, response: &Response) -> Result<(), Error> {
    let body = Some(&response.body).filter(|body| body.len() <= MAX_KEPT_BYTES);
    let sealed = match body.filter(|_| response.is_secret) {
        Some(body) => Some(encryption_key::seal(tx, cx, Owner::Response(claim.id), body)?),
        None => None,
    };
    let body = body.filter(|_| !response.is_secret).map(String::as_str);
    let kept = (i64::from(response.status), body, sealed.as_deref());
    if submission::keep(tx, claim.id, &claim.request, kept, (cx.now, forgotten_at(cx.now)))? {
        return Ok(());
    }
    // Another node was faster. Everything is undone, and the next run finds its response.
    Err(Error::Store(rapport_store::Error::Again))
}
