//! Upsert: an account change keyed by the customer's own record id.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rapport_domain::account::{self, Account};
use rapport_domain::channel::{Attribution, PromoCode};
use rapport_domain::company::Settings;
use rapport_domain::pipeline::Source;
use rapport_domain::policy::Outcomes;
use rapport_domain::right::Right;
use rapport_domain::time::Time;
use rapport_store::account::Edit;
use rapport_store::{Tx, channel};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

pub struct Upsert(pub account::Upsert);

#[derive(Debug, Clone, PartialEq)]
pub struct Upserted {
    pub account: Account,
    pub created: bool,
    pub changed: Vec<&'static str>,
    pub ignored: Vec<&'static str>,
    pub promo_code_matched: bool,
    pub outcomes: Outcomes,
    pub settings: Settings,
    pub now: Time,
}

/// The refusal of a `project` other than the token's: the same whether it exists or not.
pub fn foreign_project() -> Error {
    Error::forbidden("foreign_project", "this token doesn't belong to this project")
}

impl Command for Upsert {
    type Reply = Upserted;
    const NEEDS: Needs = Needs::Right(Right::Work);
    const TOGETHER: usize = 64;
    const AT_ONCE: usize = 2;
    const WORTHWHILE: usize = 16;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Upserted, Error> {
        let mut answers = Self::run_many(&[(self, cx)], tx)?;
        answers.pop().unwrap_or(Err(Error::Internal("no answer".to_owned())))
    }

    fn run_many(
        batch: &[(&Self, &Context)],
        tx: &mut Tx,
    ) -> Result<Vec<Result<Upserted, Error>>, rapport_store::Error> {
        upsert_all(batch.iter().map(|(upsert, cx)| (&upsert.0, *cx)), tx)
    }
}

/// Applies upserts of one company in order, in few statements. A refused one leaves nothing behind.
pub(crate) fn upsert_all<'a>(
    requests: impl Iterator<Item = (&'a account::Upsert, &'a Context<'a>)> + Clone,
    tx: &mut Tx,
) -> Result<Vec<Result<Upserted, Error>>, rapport_store::Error> {
    let Some((_, first)) = requests.clone().next() else { return Ok(Vec::new()) };
    let mut imported_ids: Vec<&str> =
        requests.clone().map(|(request, _)| request.imported_id.as_str()).collect();
    imported_ids.sort_unstable();
    imported_ids.dedup();
    let mut folded: Vec<String> = requests
        .clone()
        .filter_map(|(request, _)| request.promo_code.as_ref().map(PromoCode::folded))
        .collect();
    folded.sort_unstable();
    folded.dedup();
    let codes: HashMap<String, Attribution> = channel::attributions(tx, &folded)?.into_iter().collect();
    let mut work = Work::default();
    for account in rapport_store::account::lock_by_imported_id(tx, &imported_ids)? {
        let key = account.imported_id.clone().unwrap_or_default();
        work.accounts.insert(key, Known { account, is_new: false, before: None });
    }
    let answers = requests.map(|(request, cx)| work.apply(request, &codes, cx)).collect();
    work.write(tx, first)?;
    Ok(answers)
}

struct Known {
    account: Account,
    is_new: bool,
    /// The account as it is stored, once a request has changed it.
    before: Option<Account>,
}

/// The accounts of a batch after the requests so far, and what remains to be written.
#[derive(Default)]
struct Work {
    accounts: HashMap<String, Known>,
    outbox: Outbox,
}

impl Work {
    fn apply(
        &mut self,
        request: &account::Upsert,
        codes: &HashMap<String, Attribution>,
        cx: &Context,
    ) -> Result<Upserted, Error> {
        if request.project != cx.company().slug.as_str() {
            return Err(foreign_project());
        }
        let (settings, now) = (cx.settings(), cx.now);
        let attribution = request.promo_code.as_ref().and_then(|code| codes.get(&code.folded()));
        let (account, change, created) = match self.accounts.entry(request.imported_id.clone()) {
            Entry::Vacant(place) => {
                let (account, change) = Account::from_upsert(cx.id(), request, attribution, settings, now)?;
                self.outbox.created(cx, &account, Source::Upsert);
                let known = place.insert(Known { account, is_new: true, before: None });
                (&known.account, change, true)
            }
            Entry::Occupied(place) => {
                let known = place.into_mut();
                let mut account = known.account.clone();
                let change = account.upsert(request, attribution, settings, now)?;
                if let Some(step) = change.moved {
                    self.outbox.moved(cx, &account, step, Source::Upsert, None);
                }
                self.outbox.updated(cx, &known.account, &account, Source::Upsert);
                let before = std::mem::replace(&mut known.account, account);
                if !known.is_new && known.before.is_none() && !change.changed.is_empty() {
                    known.before = Some(before);
                }
                (&known.account, change, false)
            }
        };
        let outcomes = Outcomes::of(request, created, &change);
        Ok(Upserted {
            account: account.clone(),
            created,
            outcomes,
            changed: change.changed,
            ignored: change.ignored,
            promo_code_matched: attribution.is_some(),
            settings: settings.clone(),
            now,
        })
    }

    fn write(&self, tx: &mut Tx, cx: &Context) -> Result<(), rapport_store::Error> {
        let (mut new, mut edits): (Vec<&Account>, Vec<Edit>) = (Vec::new(), Vec::new());
        for Known { account, is_new, before } in self.accounts.values() {
            if *is_new {
                new.push(account);
            } else if let Some(before) = before {
                edits.push(Edit { before, after: account });
            }
        }
        // Every transaction uses this order, so they can't deadlock.
        new.sort_unstable_by(|a, b| a.imported_id.cmp(&b.imported_id));
        edits.sort_unstable_by(|a, b| a.after.imported_id.cmp(&b.after.imported_id));
        if !rapport_store::account::write(tx, &new, &edits)? {
            // Another node created one of them between our check and our insert.
            return Err(rapport_store::Error::Again);
        }
        let renamed = edits.iter().filter(|edit| edit.before.name != edit.after.name);
        let renamed: Vec<&Account> = renamed.map(|edit| edit.after).collect();
        if !renamed.is_empty() {
            rapport_store::account::replace_words_of(tx, &renamed)?;
        }
        self.outbox.write(tx, cx)
    }
}
