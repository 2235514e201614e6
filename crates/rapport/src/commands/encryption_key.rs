//! `rapport key`, `rapport key re-encrypt` and `rapport key reset`: the key that encrypts secrets in the database.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use rapport_app::encryption_key::{
    self, ChangeKey, FinishChange, Fit, Noted, Reencrypt, Reencrypted, ResetKey,
};
use rapport_app::vault::{Key, Owner, fingerprint};
use rapport_app::{Access, App};
use rapport_domain::id::CompanyId;
use rapport_store::{Snapshot, member, webhook};

use super::{explained, open_beside, open_whatever_key, print, write};
use crate::cli::{ReEncrypt, ResetKey as Reset};
use crate::clock::OsRandom;
use crate::config::Config;
use crate::key_agreement::refusal;
use crate::key_check::{KeyCheck, Unchecked};
use crate::secret_key::{self, SecretKey};

/// Prints the fingerprints of the key file and the database. Changes nothing.
pub fn show(config: &Config) -> anyhow::Result<ExitCode> {
    let path = config.secret_key_file.value.display();
    let check = KeyCheck::make(config).map_err(|unchecked| match unchecked {
        Unchecked::KeyFile(error) => error,
        Unchecked::Database(error) => {
            anyhow!("the database {} cannot be read: {error}", config.database.value)
        }
    })?;
    let held = check.key.as_ref().map(SecretKey::fingerprints).unwrap_or_default();
    let listed = |fingerprints: &[String]| match fingerprints {
        [] => "none yet".to_owned(),
        some => some.join(", "),
    };
    let noted: Vec<String> = check.noted.iter().flat_map(Noted::all).map(str::to_owned).collect();
    print(&format!(
        "key file   {path}\nkey        {}\ndatabase   {}\n",
        if check.key.is_some() { listed(&held) } else { "the file does not exist".to_owned() },
        listed(&noted),
    ))?;
    match check.problem(config) {
        Some(problem) => bail!(problem),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Changes the key: in the file, in the database, and in every secret. Whatever an earlier run left unfinished is
/// finished first.
pub fn reencrypt(config: &Config, arguments: &ReEncrypt) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let path = &config.secret_key_file.value;
    let _lock = lock(path)?;
    let Fit::Known(noted) = encryption_key::examine(&app).map_err(explained)? else {
        bail!("the key was changed by another process just now; try again")
    };
    let plan = Plan::of(SecretKey::read(path)?.keys(), &noted)?;
    let (from, to) = match plan {
        Plan::Drop { old, current } => {
            print("Every secret is already encrypted under the new key.\n")?;
            return drop_old(path, old, current);
        }
        Plan::Continue { from, to } => (from, to),
        Plan::Start { from } => {
            let to = secret_key::new_key(&OsRandom::new());
            secret_key::replace(path, &[from, to]).with_context(|| unwritable(path))?;
            (from, to)
        }
    };
    let (old, new) = (fingerprint(&from), fingerprint(&to));
    if arguments.prepare {
        return print(&format!(
            "{} now has the current key {old} and the next key {new}. Copy the file to every node, then run \
             rapport key re-encrypt to change the key.\n",
            path.display()
        ));
    }
    print(&format!("Changing the key from {old} to {new}.\n"))?;
    write(&app, &Access::NO_COMPANY, || ChangeKey { from: old.clone(), to: new.clone() })?;
    let lost = reencrypt_all(&app, &new)?;
    write(&app, &Access::NO_COMPANY, || FinishChange(new.clone()))?;
    if !lost.is_empty() {
        print(&format!("These secrets cannot be decrypted with either key:\n{}", described(&app, &lost)?))?;
    }
    drop_old(path, from, to)
}

/// What is left to do, by the keys in the file and those that the database names.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// Make a new key.
    Start { from: Key },
    /// Both keys are in the file; a change may be under way.
    Continue { from: Key, to: Key },
    /// The change is done, and only the file still has the old key.
    Drop { old: Key, current: Key },
}

impl Plan {
    /// A key that the file lists after the database's is the next one; a key before it is an old one.
    fn of(keys: &[Key], noted: &Noted) -> anyhow::Result<Self> {
        let place = |wanted: &str| keys.iter().position(|key| fingerprint(key) == wanted);
        let Some(at) = place(&noted.fingerprint) else { bail!("the key file lacks the database's key") };
        if keys.len() > 2 {
            bail!(
                "the key file has {} keys; at most two are in use at a time: remove the others",
                keys.len()
            );
        }
        let current = keys[at];
        if let Some(previous) = &noted.previous {
            let Some(before) = place(previous) else { bail!("the key file lacks the key {previous}") };
            return Ok(Self::Continue { from: keys[before], to: current });
        }
        Ok(match (keys.get(at + 1), at.checked_sub(1)) {
            (Some(next), _) => Self::Continue { from: current, to: *next },
            (None, Some(before)) => Self::Drop { old: keys[before], current },
            (None, None) => Self::Start { from: current },
        })
    }
}

fn reencrypt_all(app: &App, to: &str) -> anyhow::Result<Vec<(CompanyId, Owner)>> {
    let (mut changed, mut lost) = (0, Vec::new());
    for (company, mut after) in encryption_key::columns(app).map_err(explained)? {
        loop {
            let step = || Reencrypt { after, to: to.to_owned() };
            let done: Reencrypted = write(app, &Access::CommandLine(company), step)?;
            changed += done.changed;
            lost.extend(done.unreadable.into_iter().map(|owner| (company, owner)));
            match done.next {
                Some(next) => after = next,
                None => break,
            }
        }
    }
    print(&format!("Secrets encrypted under the new key: {changed}\n"))?;
    Ok(lost)
}

/// Keeps the old key next to the file, for older backups, and removes it from the file.
fn drop_old(path: &Path, old: Key, current: Key) -> anyhow::Result<ExitCode> {
    let real = std::fs::canonicalize(path).with_context(|| unwritable(path))?;
    let kept = beside(&real, &fingerprint(&old));
    secret_key::create(&kept, &[old]).and_then(|()| secret_key::replace(&real, &[current])).with_context(
        || format!("{}; remove the key {} from it yourself", unwritable(path), fingerprint(&old)),
    )?;
    print(&format!(
        "Done. Backups made before need the old key. It is now in {}; delete that file when no such backup is left.\n",
        kept.display()
    ))
}

/// Gives the database the key in the file, because its own is lost.
pub fn reset(config: &Config, arguments: &Reset) -> anyhow::Result<ExitCode> {
    let (app, key) = open_whatever_key(config)?;
    let fit = encryption_key::examine(&app).map_err(explained)?;
    if let Fit::Known(_) | Fit::Unclaimed { .. } = fit {
        bail!("the key file fits the database, so there is nothing to reset");
    }
    let lost = encryption_key::unreadable(&app).map_err(explained)?;
    let listed = described(&app, &lost)?;
    if !arguments.yes {
        let known = Some(&key).filter(|key| key.is_saved());
        let problem = refusal(config, known, &fit);
        bail!(
            "{problem} --yes, which gives up these secrets for good:\n{listed}Then rotate the secrets of these \
             webhooks and give the new ones to their receivers, and enter the client secrets of single sign-on again"
        );
    }
    let saved = key.save()?;
    app.services().vault().refresh();
    let first = saved.fingerprints().into_iter().next().context("the key file is empty")?;
    write(&app, &Access::NO_COMPANY, || ResetKey(first.clone()))?;
    print(&format!(
        "The database now uses the key {first}. These secrets are lost:\n{listed}\
         Rotate the secrets of these webhooks and give the new ones to their receivers. Deliveries wait until then. \
         Enter the client secrets of single sign-on again.\n"
    ))
}

fn described(app: &App, lost: &[(CompanyId, Owner)]) -> anyhow::Result<String> {
    let companies = app.read_across_blocking(rapport_store::company::list).map_err(explained)?;
    let mut text = String::new();
    for (company, owner) in lost {
        let found = companies.iter().find(|known| known.id == *company);
        let project = found.map_or("", |company| company.slug.as_str());
        match *owner {
            Owner::MailLink(_) => {
                let _ = writeln!(text, "  {project}: the link in an unsent mail");
            }
            Owner::SsoClient(_) => {
                let _ = writeln!(text, "  {project}: the client secret of single sign-on");
            }
            Owner::Response(_) => {
                let _ = writeln!(text, "  {project}: a response that was kept for its repeats");
            }
            Owner::Webhook(id) => {
                let read =
                    app.store().read(*company, move |snapshot: &mut Snapshot| webhook::get(snapshot, id));
                // A deleted webhook needs no secret.
                if let Ok(Ok(Some(webhook))) = read.blocking_recv() {
                    let _ = writeln!(text, "  {project}: webhook {id} to {}", webhook.url);
                }
            }
            Owner::WebhookHeaders(id) => {
                let _ = writeln!(text, "  {project}: the secret headers of webhook {id}");
            }
            Owner::Totp(person) => {
                let read = app
                    .store()
                    .read(*company, move |snapshot: &mut Snapshot| member::email(snapshot, person));
                if let Ok(Ok(Some(email))) = read.blocking_recv() {
                    let email = email.as_str();
                    let _ =
                        writeln!(text, "  the authenticator app of {email} (rapport person reset-factors)");
                }
            }
        }
    }
    if text.is_empty() {
        text.push_str("  none that is still in use\n");
    }
    Ok(text)
}

/// Two changes at once would each make a key of their own.
fn lock(path: &Path) -> anyhow::Result<File> {
    let lock = beside(path, "lock");
    let cannot = || format!("the lock file {} cannot be used (--secret-key-file)", lock.display());
    let mut options = OpenOptions::new();
    let file =
        options.write(true).create(true).truncate(false).mode(0o600).open(&lock).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another rapport key re-encrypt is running"),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    PathBuf::from(name)
}

fn unwritable(path: &Path) -> String {
    format!("the key file {} cannot be written (--secret-key-file)", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_change_goes_on_where_it_stopped() {
        let (one, two) = ([1; 32], [2; 32]);
        let noted = |fingerprint_of: &Key, previous: Option<&Key>| Noted {
            fingerprint: fingerprint(fingerprint_of),
            previous: previous.map(fingerprint),
        };
        let table = [
            (vec![one], noted(&one, None), Plan::Start { from: one }),
            (vec![one, two], noted(&one, None), Plan::Continue { from: one, to: two }),
            (vec![one, two], noted(&two, Some(&one)), Plan::Continue { from: one, to: two }),
            (vec![two, one], noted(&two, Some(&one)), Plan::Continue { from: one, to: two }),
            (vec![one, two], noted(&two, None), Plan::Drop { old: one, current: two }),
            (vec![two], noted(&two, None), Plan::Start { from: two }),
        ];
        for (keys, noted, plan) in table {
            assert_eq!(Plan::of(&keys, &noted).unwrap(), plan, "{noted:?}");
        }
        assert!(Plan::of(&[two], &noted(&two, Some(&one))).is_err(), "the old key is still needed");
        assert!(Plan::of(&[one, two, [3; 32]], &noted(&one, None)).is_err());
    }
}
