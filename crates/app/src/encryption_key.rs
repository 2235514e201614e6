//! The database's encryption key: which of the known keys it is, and changing it while the service runs.
//!
//! The database notes the fingerprint of its key, so no process encrypts under another one. A change takes three
//! steps, each of which can be repeated, so a process that dies leaves nothing broken:
//!
//! 1. [`ChangeKey`] notes the new key. It waits for open transactions that encrypt under the old one; from then on
//!    everything new is encrypted under the new key.
//! 2. [`Reencrypt`] goes through every encrypted column, company by company, and through those of people, in short
//!    transactions.
//! 3. [`FinishChange`] notes that nothing needs the old key any more.

use rapport_domain::id::CompanyId;
pub use rapport_store::encryption_key::Noted;
use rapport_store::sealed::{self, Owner, Sealed};
use rapport_store::{Lane, Snapshot, Tx, company, encryption_key};

use crate::App;
use crate::access::{Access, Needs};
use crate::command::{Command, Context};
use crate::error::Error;
use crate::vault::Vault;

/// How many secrets are looked at in one transaction.
pub const AT_ONCE: i64 = 100;

/// Seals a secret under the database's key, which can't change before this transaction ends.
pub(crate) fn seal(
    tx: &mut Tx,
    cx: &Context,
    owner: Owner,
    text: &str,
) -> Result<Vec<u8>, rapport_store::Error> {
    let vault = cx.vault();
    let noted = encryption_key::hold(tx)?.map(|noted| noted.fingerprint);
    let fingerprint = noted.or_else(|| vault.fingerprints().into_iter().next()).unwrap_or_default();
    let sealed = vault.seal(&fingerprint, owner, text, cx.random());
    sealed.map_err(|unknown| rapport_store::Error::Fault(unknown.to_string()))
}

/// How the keys that a process knows fit its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// They are the database's.
    Known(Noted),
    /// The database names no key yet, and this one will do: it opens what is there, or nothing is there.
    Unclaimed { fingerprint: Option<String>, unreadable: usize },
    /// The database's keys with these fingerprints are not known.
    Missing(Vec<String>),
    /// The database names no key, and no known key opens any of its secrets.
    Unreadable(usize),
}

impl Fit {
    /// Judges the keys by what the database notes, or else by its secrets.
    pub fn of(vault: &Vault, noted: Option<Noted>, secrets: &Opened) -> Self {
        if let Some(noted) = noted {
            let missing: Vec<String> =
                noted.all().filter(|fingerprint| !vault.knows(fingerprint)).map(str::to_owned).collect();
            return if missing.is_empty() { Self::Known(noted) } else { Self::Missing(missing) };
        }
        if secrets.by.is_none() && secrets.unreadable > 0 {
            return Self::Unreadable(secrets.unreadable);
        }
        let preferred = || vault.fingerprints().into_iter().next();
        Self::Unclaimed { fingerprint: secrets.by.clone().or_else(preferred), unreadable: secrets.unreadable }
    }
}

/// What became of opening the secrets of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// The fingerprint of a key that opened one of them.
    pub by: Option<String>,
    pub unreadable: usize,
}

impl Opened {
    pub fn add(&mut self, vault: &Vault, owner: Owner, secret: &[u8]) {
        match vault.opened(owner, secret) {
            Ok((_, fingerprint)) => self.by = self.by.take().or(Some(fingerprint)),
            Err(_) => self.unreadable += 1,
        }
    }
}

/// Looks how the known keys fit the database. If it names its key, no secret is read.
pub fn examine(app: &App) -> Result<Fit, Error> {
    let vault = app.services().vault();
    let noted = app.read_across_blocking(encryption_key::get)?;
    let mut secrets = Opened::default();
    if noted.is_none() {
        each_secret(app, |_, owner, secret| secrets.add(vault, owner, secret))?;
    }
    Ok(Fit::of(vault, noted, &secrets))
}

/// The secrets that no known key opens, with their companies.
pub fn unreadable(app: &App) -> Result<Vec<(CompanyId, Owner)>, Error> {
    let vault = app.services().vault();
    let mut found = Vec::new();
    each_secret(app, |company, owner, secret| {
        if vault.opened(owner, secret).is_err() {
            found.push((company, owner));
        }
    })?;
    Ok(found)
}

/// Where secrets are: for each company its own columns, and once those of people, which belong to no company. Each with
/// an owner before all others.
pub fn columns(app: &App) -> Result<Vec<(CompanyId, Owner)>, Error> {
    let (of_company, others): (Vec<Owner>, Vec<Owner>) =
        Owner::BEFORE_ALL.into_iter().partition(|owner| owner.is_of_company());
    let mut columns = Vec::new();
    for company in app.read_across_blocking(company::list)? {
        columns.extend(of_company.iter().map(|owner| (company.id, *owner)));
    }
    columns.extend(others.into_iter().map(|owner| (Access::NO_COMPANY.company(), owner)));
    Ok(columns)
}

fn each_secret(app: &App, mut see: impl FnMut(CompanyId, Owner, &[u8])) -> Result<(), Error> {
    for (company, mut owner) in columns(app)? {
        loop {
            let page = move |snapshot: &mut Snapshot| sealed::after(snapshot, owner, AT_ONCE);
            let read = app.store().read(company, page).blocking_recv();
            let page = read.unwrap_or(Err(rapport_store::Error::Closed))?;
            for Sealed { owner, secret } in &page {
                if let Some(secret) = secret {
                    see(company, *owner, secret);
                }
            }
            match next_after(&page) {
                Some(last) => owner = last,
                None => break,
            }
        }
    }
    Ok(())
}

/// Where to go on, if there may be more.
fn next_after(page: &[Sealed]) -> Option<Owner> {
    let is_full = i64::try_from(page.len()).is_ok_and(|length| length >= AT_ONCE);
    page.last().filter(|_| is_full).map(|last| last.owner)
}

/// Notes the database's first key, unless another process was faster.
pub fn adopt(app: &App, fingerprint: String) -> Result<(), Error> {
    app.write_blocking(&Access::NO_COMPANY, AdoptKey(fingerprint))
}

struct AdoptKey(String);

impl Command for AdoptKey {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(encryption_key::adopt(tx, &self.0)?)
    }
}

/// Encrypts everything new under another key.
pub struct ChangeKey {
    pub from: String,
    pub to: String,
}

impl Command for ChangeKey {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        if encryption_key::change(tx, &self.from, &self.to)? {
            return Ok(());
        }
        // An earlier try may have been stored although its answer was lost.
        match encryption_key::hold(tx)? {
            Some(noted) if noted.fingerprint == self.to => Ok(()),
            _ => Err(Error::Internal("another process has changed the encryption key".to_owned())),
        }
    }
}

/// Encrypts the next secrets of a column under the key with this fingerprint.
pub struct Reencrypt {
    pub after: Owner,
    pub to: String,
}

/// What one step did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reencrypted {
    pub changed: usize,
    /// Secrets that no known key opens. They stay as they are.
    pub unreadable: Vec<Owner>,
    /// Where the next step goes on, if there is more.
    pub next: Option<Owner>,
}

impl Command for Reencrypt {
    type Reply = Reencrypted;
    const NEEDS: Needs = Needs::Server;
    const LANE: Lane = Lane::Background;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Reencrypted, Error> {
        let page = sealed::after(tx, self.after, AT_ONCE)?;
        let mut done = Reencrypted { next: next_after(&page), ..Reencrypted::default() };
        for Sealed { owner, secret } in page {
            let Some(secret) = secret else { continue };
            match cx.vault().opened(owner, &secret) {
                Ok((_, by)) if by == self.to => {}
                Ok((text, _)) => {
                    let sealed = cx.vault().seal(&self.to, owner, &text, cx.random());
                    let sealed = sealed.map_err(|unknown| Error::Internal(unknown.to_string()))?;
                    sealed::replace(tx, owner, &secret, &sealed)?;
                    done.changed += 1;
                }
                Err(_) => done.unreadable.push(owner),
            }
        }
        Ok(done)
    }
}

/// Notes that every secret is encrypted under the key with this fingerprint.
pub struct FinishChange(pub String);

impl Command for FinishChange {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(encryption_key::finish(tx, &self.0)?)
    }
}

/// Gives the database another key because its own is lost, and with it the secrets.
pub struct ResetKey(pub String);

impl Command for ResetKey {
    type Reply = ();
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, _: &Context) -> Result<(), Error> {
        Ok(encryption_key::reset(tx, &self.0)?)
    }
}
