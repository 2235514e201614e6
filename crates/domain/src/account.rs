//! An account: a lead or customer of a company, the requests about it, and the changes they make.
//!
//! Requests are parsed into `Upsert`, `Create` or `Patch`; the `Account` methods decide what each one
//! changes. Nothing here writes or sends anything: the caller does that with the result.

use jiff::civil::Date;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::cadence::{self, Due, Facts};
use crate::channel::{Attribution, ChannelRef, PromoCode};
use crate::company::{CADENCE_DAYS, Settings, TrackedStages};
use crate::custom_fields::{CustomFields, FieldChange};
use crate::id::AccountId;
use crate::invalid::{Fault, Invalid, Members, as_date, as_integer, as_object, as_str, as_text};
use crate::money::{Amount, Capture, Currency, Money};
use crate::pipeline::{self, Move, Status, Trigger};
use crate::policy::{NamePolicy, StatusPolicy};
use crate::text::{Length, is_visible, refuse_invisible};
use crate::time::Time;

pub const MAX_IMPORTED_ID: Length = Length::up_to(255);
pub const MAX_NAME: Length = Length::up_to(255);
pub const MAX_NOTE: Length = Length::up_to(4000);

/// Checks the name of an account. Every route that gives an account a name asks this.
pub fn check_name(name: &str) -> Result<(), Fault> {
    MAX_NAME.check(name)?;
    refuse_invisible(name)
}

pub(crate) fn as_name(value: &Value) -> Result<String, Fault> {
    let name = as_str(value)?;
    check_name(name)?;
    Ok(name.to_owned())
}

/// The name of a new account that was sent without one: its imported_id, or its own id if nobody can see that.
pub(crate) fn default_name(imported_id: &str, id: AccountId) -> String {
    if is_visible(imported_id) { imported_id.to_owned() } else { id.to_string() }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    pub imported_id: Option<String>,
    pub name: String,
    pub status: Status,
    pub custom_fields: CustomFields,
    pub value: Option<Money>,
    pub promo_code: Option<PromoCode>,
    pub channel: Option<ChannelRef>,
    pub acquired_at: Option<Time>,
    pub last_contact_at: Option<Time>,
    /// The last contact that an import named. It has no entry of its own that could be corrected.
    pub imported_contact_at: Option<Time>,
    pub first_seen_at: Option<Time>,
    pub last_seen_at: Option<Time>,
    pub cadence_override: Option<i64>,
    pub snoozed_until: Option<Date>,
    /// The start of the clock if nobody has ever made contact; `None` while the account is in a stage that
    /// can't be tracked.
    pub tracked_since: Option<Time>,
    /// Reactivated from Do not contact by activity: excluded from every campaign until an operator moves it.
    pub campaign_hold: bool,
    /// Part of the sample data: removed with it, and not told to other systems.
    pub sample: bool,
    pub created_at: Time,
    pub updated_at: Time,
}

/// The effect of a request on an account, in the account's member names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    pub changed: Vec<&'static str>,
    pub ignored: Vec<&'static str>,
    pub moved: Option<Move>,
}

/// Who or what asks for a move, as far as the rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mover {
    /// A person's own change, through the pages or the management API.
    Operator,
    /// The customer's own system: upsert, import.
    Record,
    /// Client activity.
    Activity,
}

impl Account {
    /// A new account in its first stage, created at `now`.
    pub fn new(id: AccountId, name: String, status: Status, now: Time) -> Self {
        Self {
            id,
            imported_id: None,
            name,
            status,
            custom_fields: CustomFields::default(),
            value: None,
            promo_code: None,
            channel: None,
            acquired_at: None,
            last_contact_at: None,
            imported_contact_at: None,
            first_seen_at: None,
            last_seen_at: None,
            cadence_override: None,
            snoozed_until: None,
            tracked_since: TrackedStages::may_contain(status).then_some(now),
            campaign_hold: false,
            sample: false,
            created_at: now,
            updated_at: now,
        }
    }

    /// The facts that decide when contact is due.
    pub fn clock(&self) -> Facts {
        Facts {
            status: self.status,
            last_contact_at: self.last_contact_at,
            tracked_since: self.tracked_since,
            cadence_override: self.cadence_override,
            snoozed_until: self.snoozed_until,
        }
    }

    pub fn due(&self, settings: &Settings, now: Time) -> Due {
        cadence::due(&self.clock(), settings, now)
    }

    /// Moves the account where the trigger takes it. Returns the move, if there was one.
    pub fn trigger(
        &mut self,
        trigger: Trigger,
        mover: Mover,
        settings: &Settings,
        now: Time,
    ) -> Option<Move> {
        let step = pipeline::apply(self.status, trigger)?;
        self.status = step.to;
        self.tracked_since = tracked_since(self.tracked_since, step, settings.tracked_stages, now);
        match mover {
            Mover::Operator => self.campaign_hold = false,
            Mover::Activity if step.from == Status::DoNotContact => self.campaign_hold = true,
            Mover::Activity | Mover::Record => {}
        }
        self.updated_at = now;
        Some(step)
    }

    /// Extends first and last seen to include an activity at `at`.
    pub fn see(&mut self, at: Time) {
        self.first_seen_at = Some(self.first_seen_at.map_or(at, |seen| seen.min(at)));
        self.last_seen_at = Some(self.last_seen_at.map_or(at, |seen| seen.max(at)));
    }

    /// Records contact made at `at` and returns whether it moved the clock: any contact ends "never"; after
    /// that, only a later one does.
    pub fn contact(&mut self, at: Time, now: Time) -> bool {
        let moves = self.last_contact_at.is_none_or(|last| at > last);
        if moves {
            self.last_contact_at = Some(at);
            self.updated_at = now;
        }
        moves
    }

    /// Takes the last contact from an import, and returns whether it moved the clock. An earlier one than what is known
    /// here changes nothing.
    pub fn import_contact(&mut self, at: Time, now: Time) -> bool {
        let moves = self.contact(at, now);
        if moves {
            self.imported_contact_at = Some(at);
        }
        moves
    }

    /// Sets the last contact after a correction.
    pub fn correct_contact(&mut self, last: Option<Time>, now: Time) {
        self.last_contact_at = last;
        self.updated_at = now;
    }

    /// Puts the account on the code's channel, unless it is already there.
    pub fn attribute(&mut self, attribution: &Attribution, now: Time, change: &mut Change) {
        if self.channel.as_ref().is_some_and(|channel| channel.id == attribution.channel.id) {
            return;
        }
        self.channel = Some(attribution.channel.clone());
        self.promo_code = Some(attribution.code.clone());
        self.acquired_at = Some(now);
        change.changed.extend(["promo_code", "channel", "acquired_at"]);
    }

    /// Applies a captured value, and notes in `change` what changed and what was ignored.
    pub fn capture(&mut self, capture: Capture, default: Currency, change: &mut Change) {
        if matches!(capture, Capture::Denominate(_)) && self.value.is_none() {
            change.ignored.push("captured_value_currency");
        }
        let value = capture.apply(self.value, default);
        if value.map(|money| money.amount) != self.value.map(|money| money.amount) {
            change.changed.push("captured_value");
        }
        if value.map(|money| money.currency) != self.value.map(|money| money.currency) {
            change.changed.push("captured_value_currency");
        }
        self.value = value;
    }

    fn merge_fields(&mut self, fields: &FieldChange, change: &mut Change) -> Result<(), Invalid> {
        if fields.is_empty() {
            return Ok(());
        }
        let merged = self.custom_fields.merged(fields)?;
        if merged != self.custom_fields {
            self.custom_fields = merged;
            change.changed.push("custom_fields");
        }
        Ok(())
    }

    /// Applies an upsert to an existing account. On an error the account is left half-changed: the caller
    /// discards it.
    pub fn upsert(
        &mut self,
        request: &Upsert,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Result<Change, Invalid> {
        let mut change = Change::default();
        match (&request.name, request.name_policy.unwrap_or_default()) {
            (None, _) => {}
            (Some(_), NamePolicy::Create) => change.ignored.push("name"),
            (Some(name), NamePolicy::Update) => {
                let name = name.as_ref().map_err(Upsert::bad_name)?;
                set(&mut self.name, Some(name), "name", &mut change);
            }
        }
        if let Some(status) = request.status {
            let trigger = request.status_policy.unwrap_or_default().trigger(status);
            change.moved = self.trigger(trigger, Mover::Record, settings, now);
            change.changed.extend(change.moved.map(|_| "status"));
            if self.status != status {
                change.ignored.push("status");
            }
        }
        self.take_common(&request.common, attribution, settings, now, &mut change)?;
        Ok(change)
    }

    /// The account that an upsert creates.
    pub fn from_upsert(
        id: AccountId,
        request: &Upsert,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Result<(Self, Change), Invalid> {
        let (name, refused) = match &request.name {
            None => (default_name(&request.imported_id, id), None),
            Some(Ok(name)) => (name.clone(), None),
            Some(Err(fault)) => (String::new(), Some(Upsert::bad_name(fault))),
        };
        let status = request.status.unwrap_or(Status::Prospect);
        let mut account = Self::new(id, name, status, now);
        account.imported_id = Some(request.imported_id.clone());
        let mut change = Change { changed: vec!["imported_id", "name", "status"], ..Change::default() };
        let taken = account.take_common(&request.common, attribution, settings, now, &mut change);
        match (refused, taken) {
            (None, Ok(())) => Ok((account, change)),
            (None, Err(invalid)) | (Some(invalid), Ok(())) => Err(invalid),
            (Some(name), Err(rest)) => Err(Invalid([name.0, rest.0].concat())),
        }
    }

    /// The account that a person creates.
    pub fn from_create(
        id: AccountId,
        request: &Create,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Result<Self, Invalid> {
        let mut account = Self::new(id, request.name.clone(), request.status, now);
        account.imported_id.clone_from(&request.imported_id);
        account.cadence_override = request.cadence_days;
        account.snoozed_until = request.snoozed_until;
        account.take_common(&request.common, attribution, settings, now, &mut Change::default())?;
        Ok(account)
    }

    /// Applies a person's edit.
    pub fn patch(
        &mut self,
        request: &Patch,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
    ) -> Result<Change, Invalid> {
        let mut change = Change::default();
        let Patch { name, imported_id, status, cadence_days, snoozed_until, clear_channel, common } = request;
        if self.sample && matches!(imported_id, Some(Some(_))) {
            // The customer's own system would then write to an account that is removed with the sample data.
            let detail = "is not for sample accounts, which are removed with the sample data";
            return Err(Invalid::one("/imported_id", "sample_account", detail));
        }
        set(&mut self.name, name.as_ref(), "name", &mut change);
        set(&mut self.imported_id, imported_id.as_ref(), "imported_id", &mut change);
        set(&mut self.cadence_override, cadence_days.as_ref(), "cadence_days", &mut change);
        set(&mut self.snoozed_until, snoozed_until.as_ref(), "snoozed_until", &mut change);
        if let Some(status) = *status {
            change.moved = self.trigger(Trigger::Set(status), Mover::Operator, settings, now);
            change.changed.extend(change.moved.map(|_| "status"));
        }
        if *clear_channel && self.channel.is_some() {
            self.channel = None;
            self.promo_code = None;
            self.acquired_at = None;
            change.changed.extend(["promo_code", "channel", "acquired_at"]);
        }
        self.take_common(common, attribution, settings, now, &mut change)?;
        Ok(change)
    }

    fn take_common(
        &mut self,
        common: &Common,
        attribution: Option<&Attribution>,
        settings: &Settings,
        now: Time,
        change: &mut Change,
    ) -> Result<(), Invalid> {
        self.merge_fields(&common.custom_fields, change)?;
        self.capture(common.capture, settings.default_currency, change);
        if let Some(attribution) = attribution {
            self.attribute(attribution, now, change);
        }
        if !change.changed.is_empty() {
            self.updated_at = now;
        }
        Ok(())
    }
}

/// The clock keeps running from one tracked stage to the next; any other move into a trackable stage starts
/// it. It also runs in trackable stages that aren't tracked now, so tracking them later only needs the
/// setting.
fn tracked_since(since: Option<Time>, step: Move, tracked: TrackedStages, now: Time) -> Option<Time> {
    if !TrackedStages::may_contain(step.to) {
        return None;
    }
    let goes_on = tracked.contains(step.from) && tracked.contains(step.to);
    since.filter(|_| goes_on).or(Some(now))
}

fn set<T: Clone + PartialEq>(place: &mut T, value: Option<&T>, member: &'static str, change: &mut Change) {
    if let Some(value) = value
        && value != place
    {
        place.clone_from(value);
        change.changed.push(member);
    }
}

/// The members that every request about an account can have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Common {
    pub custom_fields: FieldChange,
    pub capture: Capture,
}

/// What null means in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    /// The member counts as not sent. Only `captured_value` is cleared.
    Absent,
    /// The member is cleared, or refused if it always has a value.
    Clears,
}

impl Common {
    fn read(members: &mut Members, null: Null) -> Self {
        let fields = members.raw("custom_fields");
        let fields = if null == Null::Clears && fields.is_some_and(Value::is_null) {
            members.fault("custom_fields", Fault::not_clearable("to delete a field, send null for its key"));
            None
        } else {
            members.optional("custom_fields", as_object).map(FieldChange::parse)
        };
        let custom_fields = match fields {
            Some(Ok(fields)) => fields,
            Some(Err(invalid)) => {
                members.absorb(invalid);
                FieldChange::default()
            }
            None => FieldChange::default(),
        };
        let amount = members.clearable("captured_value", Amount::from_json);
        // A value that is cleared takes its currency along.
        let currency = if null == Null::Clears && amount != Some(None) {
            members.replaceable("captured_value_currency", Currency::from_json)
        } else {
            members.optional("captured_value_currency", Currency::from_json)
        };
        let capture = match amount {
            Some(None) => Capture::Clear,
            Some(Some(amount)) => Capture::from_parts(Some(amount), currency),
            None => Capture::from_parts(None, currency),
        };
        Self { custom_fields, capture }
    }
}

/// An upsert: the documented request, keyed by the customer's own record id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upsert {
    pub project: String,
    pub imported_id: String,
    pub status: Option<Status>,
    /// What is wrong with a name matters only if the name is used: on an existing account it usually isn't.
    pub name: Option<Result<String, Fault>>,
    pub name_policy: Option<NamePolicy>,
    pub status_policy: Option<StatusPolicy>,
    /// Set only for a well-formed code: nothing else can match.
    pub promo_code: Option<PromoCode>,
    pub common: Common,
}

/// What a batch of upserts says about all of its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    pub project: String,
    pub name_policy: Option<NamePolicy>,
    pub status_policy: Option<StatusPolicy>,
}

impl Upsert {
    /// Unknown members are ignored; `promo_code` never fails the request.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        // A request that fails anyway names everything that may be wrong with it.
        Self::read(body, None, false).or_else(|_| Self::read(body, None, true))
    }

    /// Parses an account of a batch, which may say something else than the batch says about all of them.
    pub fn parse_in_batch(body: &Map<String, Value>, defaults: &Defaults) -> Result<Self, Invalid> {
        Self::read(body, Some(defaults), false).or_else(|_| Self::read(body, Some(defaults), true))
    }

    fn read(
        body: &Map<String, Value>,
        defaults: Option<&Defaults>,
        judge_name: bool,
    ) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let project = |value: &Value| as_text(value, MAX_NAME);
        let project = match defaults {
            None => members.required("project", project),
            Some(defaults) => {
                Some(members.optional("project", project).unwrap_or_else(|| defaults.project.clone()))
            }
        };
        let imported_id = members.required("imported_id", |value| as_text(value, MAX_IMPORTED_ID));
        let status = members.optional("status", Status::from_json);
        let name_policy = members.optional("name_policy", NamePolicy::from_json);
        let name_policy = name_policy.or(defaults.and_then(|defaults| defaults.name_policy));
        let status_policy = members.optional("status_policy", StatusPolicy::from_json);
        let status_policy = status_policy.or(defaults.and_then(|defaults| defaults.status_policy));
        let name = members.given("name").map(as_name);
        if let Some(Err(fault)) = &name
            && (judge_name || name_policy == Some(NamePolicy::Update))
        {
            members.fault("name", fault.clone());
        }
        let promo_code = members.raw("promo_code").and_then(|value| PromoCode::from_json(value).ok());
        let common = Common::read(&mut members, Null::Absent);
        members.build(|| {
            let (project, imported_id) = (project?, imported_id?);
            Some(Self { project, imported_id, status, name, name_policy, status_policy, promo_code, common })
        })
    }

    fn bad_name(fault: &Fault) -> Invalid {
        Invalid::one("/name", fault.code, fault.detail.clone())
    }
}

/// An account created by a person or through the management API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    pub name: String,
    pub status: Status,
    pub imported_id: Option<String>,
    pub promo_code: Option<PromoCode>,
    pub cadence_days: Option<i64>,
    pub snoozed_until: Option<Date>,
    pub common: Common,
}

impl Create {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.required("name", as_name);
        let status = members.optional("status", Status::from_json).unwrap_or(Status::Prospect);
        let imported_id = members.optional("imported_id", |value| as_text(value, MAX_IMPORTED_ID));
        let promo_code = members.optional("promo_code", PromoCode::from_json);
        let cadence_days = members.optional("cadence_days", |value| as_integer(value, CADENCE_DAYS));
        let snoozed_until = members.optional("snoozed_until", as_date);
        let common = Common::read(&mut members, Null::Absent);
        members.refuse_unknown();
        members.build(|| {
            Some(Self { name: name?, status, imported_id, promo_code, cadence_days, snoozed_until, common })
        })
    }
}

/// An edit by a person or through the management API; `Some(None)` clears.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    pub name: Option<String>,
    pub imported_id: Option<Option<String>>,
    pub status: Option<Status>,
    pub cadence_days: Option<Option<i64>>,
    pub snoozed_until: Option<Option<Date>>,
    pub clear_channel: bool,
    pub common: Common,
}

impl Patch {
    /// Returns the edit, and the promo code to attribute by, which the caller looks up.
    pub fn parse(body: &Map<String, Value>) -> Result<(Self, Option<PromoCode>), Invalid> {
        let mut members = Members::of(body);
        let name = members.replaceable("name", as_name);
        let imported_id = members.clearable("imported_id", |value| as_text(value, MAX_IMPORTED_ID));
        let status = members.replaceable("status", Status::from_json);
        let cadence_days = members.clearable("cadence_days", |value| as_integer(value, CADENCE_DAYS));
        let snoozed_until = members.clearable("snoozed_until", as_date);
        let code = members.clearable("promo_code", PromoCode::from_json);
        let common = Common::read(&mut members, Null::Clears);
        members.refuse_unknown();
        members.finish()?;
        let clear_channel = code == Some(None);
        Ok((
            Self { name, imported_id, status, cadence_days, snoozed_until, clear_channel, common },
            code.flatten(),
        ))
    }
}

/// An operator's change of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChange {
    pub status: Status,
    pub note: Option<String>,
}

impl StatusChange {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let status = members.required("status", Status::from_json);
        let note = members.optional("note", |value| as_text(value, MAX_NOTE.or_empty()));
        members.refuse_unknown();
        members.build(|| Some(Self { status: status?, note: note.filter(|note| !note.is_empty()) }))
    }
}

/// An account as it appears in payloads.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub struct AccountCore<'a> {
    /// The account's id in Rapport.
    #[schema(value_type = String, example = "acc_01jz3v8m5xqkf0t6b2n9rc7d4e")]
    id: AccountId,
    /// The record id in your own system. Null if the account has none.
    #[schema(required = true, example = "CRM-00418")]
    imported_id: Option<&'a str>,
    /// The account's name.
    #[schema(example = "Nordlys AS")]
    name: &'a str,
    /// The account's stage in the pipeline.
    status: Status,
    /// Your own fields: any JSON values. Empty if there are none.
    #[schema(value_type = CustomFields)]
    custom_fields: &'a RawValue,
    /// A decimal amount. Null if none was captured.
    #[schema(required = true, example = "1200.50")]
    captured_value: Option<String>,
    /// An ISO 4217 code. Null if no value was captured.
    #[schema(required = true, example = "EUR")]
    captured_value_currency: Option<&'static str>,
    /// The code that attributed the account, as the company spells it. Null if no code did.
    #[schema(required = true, example = "SPRING_26")]
    promo_code: Option<&'a str>,
    /// The channel that the account is attributed to. Null if it has none.
    #[schema(required = true)]
    channel: Option<&'a ChannelRef>,
    /// When the account was attributed to its channel. Null if it never was.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    acquired_at: Option<Time>,
    /// When somebody of the company was last in contact. Null if nobody ever was.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_contact_at: Option<Time>,
    /// The earliest activity. Null if there was none.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    first_seen_at: Option<Time>,
    /// The latest activity. Null if there was none.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_seen_at: Option<Time>,
    /// When the account was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When the account last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A lead or customer of the company.
#[derive(serde::Serialize, utoipa::ToSchema)]
#[schema(as = Account)]
pub struct AccountView<'a> {
    #[serde(flatten)]
    core: AccountCore<'a>,
    /// The account's own cadence. Null if the company's cadence applies.
    #[schema(required = true)]
    cadence_days: Option<i64>,
    /// No reminders until the start of this day in the company's time zone.
    #[schema(required = true, format = Date)]
    snoozed_until: Option<String>,
    /// Whether the status is one of the company's tracked stages.
    tracked: bool,
    overdue: bool,
    /// When contact is due. Null if the account is not tracked.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    days_overdue: i64,
}

impl Account {
    pub fn core(&self) -> AccountCore<'_> {
        let fields = serde_json::from_str(self.custom_fields.as_json());
        AccountCore {
            id: self.id,
            imported_id: self.imported_id.as_deref(),
            name: &self.name,
            status: self.status,
            custom_fields: fields.expect("stored custom fields are JSON"),
            captured_value: self.value.map(|money| money.amount_text()),
            captured_value_currency: self.value.map(|money| money.currency.code()),
            promo_code: self.promo_code.as_ref().map(PromoCode::as_str),
            channel: self.channel.as_ref(),
            acquired_at: self.acquired_at,
            last_contact_at: self.last_contact_at,
            first_seen_at: self.first_seen_at,
            last_seen_at: self.last_seen_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    pub fn view(&self, settings: &Settings, now: Time) -> AccountView<'_> {
        let due = self.due(settings, now);
        AccountView {
            core: self.core(),
            cadence_days: self.cadence_override,
            snoozed_until: self.snoozed_until.map(|date| date.to_string()),
            tracked: due.tracked,
            overdue: due.overdue,
            due_at: due.due_at,
            days_overdue: due.days_overdue,
        }
    }
}

#[cfg(test)]
mod tests;
