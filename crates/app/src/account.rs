//! Accounts as an operator works with them: create, edit, move, delete.

use rapport_domain::account::{self, Account, Change, Mover};
use rapport_domain::audit::{Action, REMOVED};
use rapport_domain::channel::{Attribution, PromoCode};
use rapport_domain::erasure::counts;
use rapport_domain::id::AccountId;
use rapport_domain::invalid::Invalid;
use rapport_domain::pipeline::{Move, Source, Status, Trigger};
use rapport_domain::right::Right;
use rapport_store::account::Edit;
use rapport_store::{Snapshot, Tx, channel, erasure, tombstone};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;
use crate::{Answer, audit};

const NEEDS: Needs = Needs::Right(Right::Work);

/// An account created by hand.
pub struct CreateAccount(pub account::Create);

impl Command for CreateAccount {
    type Reply = Answer<Account>;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Answer<Account>, Error> {
        let attribution = attribution(tx, self.0.promo_code.as_ref())?;
        let account = Account::from_create(cx.id(), &self.0, attribution.as_ref(), cx.settings(), cx.now)?;
        if !rapport_store::account::insert(tx, &[&account])? {
            return Err(imported_id_taken());
        }
        let mut outbox = Outbox::default();
        outbox.created(cx, &account, Source::Operator);
        outbox.write(tx, cx)?;
        record_created(tx, cx, &account)?;
        Ok(answer(cx, account))
    }
}

/// An edit.
pub struct PatchAccount {
    pub id: AccountId,
    pub patch: account::Patch,
    pub promo_code: Option<PromoCode>,
}

impl Command for PatchAccount {
    type Reply = Answer<Account>;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Answer<Account>, Error> {
        let before = lock(tx, self.id)?;
        let mut account = before.clone();
        let attribution = attribution(tx, self.promo_code.as_ref())?;
        if let Some(Some(imported_id)) = &self.patch.imported_id
            && rapport_store::account::imported_id_is_taken(tx, imported_id, self.id)?
        {
            return Err(imported_id_taken());
        }
        let Change { changed, moved, .. } =
            account.patch(&self.patch, attribution.as_ref(), cx.settings(), cx.now)?;
        if !changed.is_empty() {
            write_change(tx, cx, Edit { before: &before, after: &account }, moved, None)?;
        }
        if changed.iter().any(|member| matches!(*member, "name" | "imported_id")) {
            rapport_store::account::replace_words(tx, &account)?;
        }
        Ok(answer(cx, account))
    }
}

/// A status change made by an operator.
pub struct ChangeStatus {
    pub id: AccountId,
    pub change: account::StatusChange,
}

/// The account, whether it moved, and its previous status.
pub struct StatusChanged {
    pub account: Answer<Account>,
    pub moved: bool,
    pub from: Status,
}

impl Command for ChangeStatus {
    type Reply = StatusChanged;
    const NEEDS: Needs = NEEDS;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<StatusChanged, Error> {
        let before = lock(tx, self.id)?;
        let mut account = before.clone();
        let step = account.trigger(Trigger::Set(self.change.status), Mover::Operator, cx.settings(), cx.now);
        if step.is_some() {
            let edit = Edit { before: &before, after: &account };
            write_change(tx, cx, edit, step, self.change.note.as_deref())?;
        }
        Ok(StatusChanged { account: answer(cx, account), moved: step.is_some(), from: before.status })
    }
}

/// Deletes an account with its activity and history. Payloads already frozen for delivery are still sent.
pub struct DeleteAccount(pub AccountId);

impl Command for DeleteAccount {
    /// How many rows of each table were deleted.
    type Reply = Vec<(&'static str, u64)>;
    const NEEDS: Needs = Needs::Right(Right::Delete);
    /// No ingest may count for an account that is being deleted.
    const EXCLUSIVE: bool = true;

    fn needs_proof(&self, _: &Context) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Self::Reply, Error> {
        let found = lock(tx, self.0)?;
        let deleted = rapport_store::account::delete(tx, self.0, cx.now)?;
        let mut outbox = Outbox::default();
        outbox.deleted(cx, &found, Source::Operator);
        outbox.write(tx, cx)?;
        let detail = json!({
            "name": found.name, "imported_id": found.imported_id, "status": found.status.as_str(),
            REMOVED: counts(deleted.iter().copied()),
        });
        audit::record(tx, cx, Action::AccountDeleted, Some(self.0.to_string()), &detail)?;
        Ok(deleted)
    }
}

/// Whether anything is stored about an account, which may be deleted.
pub(crate) fn is_known(snapshot: &mut Snapshot, id: AccountId) -> Result<bool, rapport_store::Error> {
    Ok(!rapport_store::account::existing(snapshot, &[id])?.is_empty()
        || erasure::knows(snapshot, id)?
        || tombstone::exists(snapshot, id)?
        || !rapport_store::audit::about(snapshot, &id.to_string(), None, 1)?.is_empty())
}

/// Records a new account, if a person created it.
pub(crate) fn record_created(tx: &mut Tx, cx: &Context, account: &Account) -> Result<(), Error> {
    if audit::is_by_hand(cx) {
        let detail = json!({ "name": account.name, "status": account.status.as_str() });
        audit::record(tx, cx, Action::AccountCreated, Some(account.id.to_string()), &detail)?;
    }
    Ok(())
}

/// The members of an account that a person can edit, as the wire names them, with each custom field on its own.
fn shown(account: &Account) -> Value {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
    put("name", account.name.clone().into());
    put("imported_id", account.imported_id.clone().into());
    put("status", account.status.as_str().into());
    put("captured_value", account.value.map(|money| money.amount_text()).into());
    put("captured_value_currency", account.value.map(|money| money.currency.code()).into());
    put("channel", account.channel.as_ref().map(|channel| channel.name.clone()).into());
    put("promo_code", account.promo_code.as_ref().map(PromoCode::as_str).into());
    put("cadence_days", account.cadence_override.into());
    put("snoozed_until", account.snoozed_until.map(|date| date.to_string()).into());
    for (key, value) in account.custom_fields.to_map() {
        put(&format!("custom_fields.{key}"), value);
    }
    Value::Object(members)
}

pub(crate) fn lock(tx: &mut Tx, id: AccountId) -> Result<Account, Error> {
    rapport_store::account::lock(tx, &[id])?.pop().ok_or(Error::NotFound("account"))
}

fn write_change(
    tx: &mut Tx,
    cx: &Context,
    edit: Edit,
    step: Option<Move>,
    note: Option<&str>,
) -> Result<(), Error> {
    rapport_store::account::update(tx, &[edit])?;
    cx.wake_cadence(tx);
    record_change(tx, cx, edit)?;
    let mut outbox = Outbox::default();
    if let Some(step) = step {
        outbox.moved(cx, edit.after, step, Source::Operator, note);
    }
    outbox.updated(cx, edit.before, edit.after, Source::Operator);
    Ok(outbox.write(tx, cx)?)
}

/// Records what a person changed in an account.
pub(crate) fn record_change(tx: &mut Tx, cx: &Context, edit: Edit) -> Result<(), Error> {
    if audit::is_by_hand(cx) {
        let detail = audit::changes(&shown(edit.before), &shown(edit.after));
        audit::record(tx, cx, Action::AccountChanged, Some(edit.after.id.to_string()), &detail)?;
    }
    Ok(())
}

/// Resolves a promo code given by an operator. Unlike in an upsert, it must be active.
pub(crate) fn attribution(tx: &mut Tx, code: Option<&PromoCode>) -> Result<Option<Attribution>, Error> {
    let Some(code) = code else { return Ok(None) };
    match channel::attributions(tx, &[code.folded()])?.pop() {
        Some((_, attribution)) => Ok(Some(attribution)),
        None => Err(Invalid::one("/promo_code", "unknown_promo_code", "no active promo code matches").into()),
    }
}

fn imported_id_taken() -> Error {
    Error::conflict("imported_id_taken", "another account has this imported_id")
}

fn answer(cx: &Context, account: Account) -> Answer<Account> {
    Answer { reply: account, company: cx.company().clone(), now: cx.now }
}
