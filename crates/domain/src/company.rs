//! A company: the tenant. Its slug is the wire's `project`; its settings control cadence, digest, defaults and who may
//! export and delete.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::audit::{AUDIT_DAYS, DEFAULT_AUDIT_DAYS};
use crate::id::CompanyId;
use crate::invalid::{Fault, Invalid, Members, as_array, as_bool, as_integer, as_str, as_text};
use crate::member::Email;
use crate::money::Currency;
use crate::opt_in::OptIn;
use crate::password::new_password;
use crate::pipeline::Status;
use crate::right::{Grant, Grants};
use crate::schema::one_of;
use crate::session::Limits;
use crate::text::Length;
use crate::time::Time;

pub const MAX_NAME: Length = Length::up_to(120);
pub const MAX_SLUG_CHARS: usize = 63;
pub const CADENCE_DAYS: std::ops::RangeInclusive<i64> = 1..=3650;
pub const DEFAULT_CADENCE_DAYS: i64 = 42;

/// A company's name on the wire: lowercase letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slug(String);

impl Slug {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=MAX_SLUG_CHARS).contains(&text.len()) && text.bytes().all(allowed);
        if !fits || text.starts_with('-') || text.ends_with('-') {
            let detail = format!(
                "must be 1 to {MAX_SLUG_CHARS} lowercase letters, digits or hyphens, \
                 and must not start or end with a hyphen"
            );
            return Err(Fault::new("malformed", detail));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The stages whose accounts are tracked as clients. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackedStages {
    customer: bool,
    in_trial: bool,
    in_negotiation: bool,
}

impl Default for TrackedStages {
    fn default() -> Self {
        Self { customer: true, in_trial: true, in_negotiation: false }
    }
}

impl TrackedStages {
    pub const ALLOWED: [Status; 3] = [Status::Customer, Status::InTrial, Status::InNegotiation];

    /// Whether a company may track this stage.
    pub fn may_contain(status: Status) -> bool {
        Self::ALLOWED.contains(&status)
    }

    pub fn from_statuses(statuses: &[Status]) -> Result<Self, Fault> {
        if statuses.is_empty() {
            return Err(Fault::new("empty", "must include at least one stage"));
        }
        if !statuses.iter().copied().all(Self::may_contain) {
            return Err(Fault::not_one_of("not_trackable", Self::ALLOWED.map(Status::as_str)));
        }
        Ok(Self {
            customer: statuses.contains(&Status::Customer),
            in_trial: statuses.contains(&Status::InTrial),
            in_negotiation: statuses.contains(&Status::InNegotiation),
        })
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        let statuses: Vec<Status> =
            as_array(value)?.iter().map(Status::from_json).collect::<Result<_, _>>()?;
        Self::from_statuses(&statuses)
    }

    pub fn contains(self, status: Status) -> bool {
        match status {
            Status::Customer => self.customer,
            Status::InTrial => self.in_trial,
            Status::InNegotiation => self.in_negotiation,
            Status::Prospect | Status::Contacted | Status::Lost | Status::DoNotContact => false,
        }
    }

    pub fn statuses(self) -> Vec<Status> {
        Self::ALLOWED.into_iter().filter(|status| self.contains(*status)).collect()
    }

    /// The stored form: the wire values, joined by commas.
    pub fn to_stored(self) -> String {
        self.statuses().into_iter().map(Status::as_str).collect::<Vec<_>>().join(",")
    }

    pub fn from_stored(text: &str) -> Self {
        let statuses: Vec<Status> = text.split(',').filter_map(|word| Status::parse(word).ok()).collect();
        Self::from_statuses(&statuses).unwrap_or_default()
    }
}

/// The weekday of the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weekday(jiff::civil::Weekday);

impl PartialSchema for Weekday {
    fn schema() -> RefOr<Schema> {
        one_of(Self::WORDS).into()
    }
}

impl ToSchema for Weekday {}

impl Weekday {
    pub const MONDAY: Self = Self(jiff::civil::Weekday::Monday);
    const WORDS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let place = Self::WORDS.iter().position(|word| *word == text);
        place
            .and_then(|place| i8::try_from(place).ok())
            .and_then(|place| jiff::civil::Weekday::from_monday_zero_offset(place).ok())
            .map(Self)
            .ok_or_else(|| Fault::not_one_of("unknown_weekday", Self::WORDS))
    }

    pub fn as_str(self) -> &'static str {
        let place = usize::try_from(self.0.to_monday_zero_offset()).unwrap_or(0);
        Self::WORDS[place]
    }

    pub fn to_civil(self) -> jiff::civil::Weekday {
        self.0
    }
}

/// Reads an IANA time zone name.
pub fn parse_time_zone(text: &str) -> Result<TimeZone, Fault> {
    let unknown =
        || Fault::new("unknown_time_zone", "must be an IANA time zone such as Europe/Berlin or UTC");
    if text.is_empty() || text.len() > 64 {
        return Err(unknown());
    }
    TimeZone::get(text).map_err(|_| unknown())
}

/// The IANA name of a zone.
pub fn time_zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub cadence_days: i64,
    pub tracked_stages: TrackedStages,
    pub digest_enabled: bool,
    pub digest_weekday: Weekday,
    pub time_zone: TimeZone,
    pub default_currency: Currency,
    /// How long entries of the audit log are kept.
    pub audit_days: i64,
    /// Who may export and who may delete.
    pub grants: Grants,
    /// How long sessions last.
    pub sessions: Limits,
    /// Whether members need a second factor to log in.
    pub second_factor_required: bool,
    /// Whether a lifecycle event that is older than the account's latest move still moves the account.
    pub late_events_move: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cadence_days: DEFAULT_CADENCE_DAYS,
            tracked_stages: TrackedStages::default(),
            digest_enabled: true,
            digest_weekday: Weekday::MONDAY,
            time_zone: TimeZone::UTC,
            default_currency: Currency::USD,
            audit_days: DEFAULT_AUDIT_DAYS,
            grants: Grants::default(),
            sessions: Limits::default(),
            second_factor_required: false,
            late_events_move: true,
        }
    }
}

impl Settings {
    /// The settings after a PATCH; unknown members are rejected by name.
    pub fn patched(&self, body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let settings = self.read(&mut members);
        members.refuse_unknown();
        members.finish().map(|()| settings)
    }

    /// The settings with the members that are given. Faults are collected there.
    fn read(&self, members: &mut Members) -> Self {
        let cadence_days = members.replaceable("cadence_days", |value| as_integer(value, CADENCE_DAYS));
        let tracked_stages = members.replaceable("tracked_stages", TrackedStages::from_json);
        let digest_enabled = members.replaceable("digest_enabled", as_bool);
        let digest_weekday = members.replaceable("digest_weekday", |value| Weekday::parse(as_str(value)?));
        let time_zone = members.replaceable("time_zone", |value| parse_time_zone(as_str(value)?));
        let default_currency = members.replaceable("default_currency", Currency::from_json);
        let audit_days = members.replaceable("audit_days", |value| as_integer(value, AUDIT_DAYS));
        let export = members.replaceable("export_role", Grant::from_json);
        let delete = members.replaceable("delete_role", Grant::from_json);
        let sessions = self.sessions.patched(members);
        let second_factor_required = members.replaceable("second_factor_required", as_bool);
        let late_events_move = members.replaceable("late_events_move", as_bool);
        Self {
            cadence_days: cadence_days.unwrap_or(self.cadence_days),
            tracked_stages: tracked_stages.unwrap_or(self.tracked_stages),
            digest_enabled: digest_enabled.unwrap_or(self.digest_enabled),
            digest_weekday: digest_weekday.unwrap_or(self.digest_weekday),
            time_zone: time_zone.unwrap_or_else(|| self.time_zone.clone()),
            default_currency: default_currency.unwrap_or(self.default_currency),
            audit_days: audit_days.unwrap_or(self.audit_days),
            grants: Grants {
                export: export.unwrap_or(self.grants.export),
                delete: delete.unwrap_or(self.grants.delete),
            },
            sessions,
            second_factor_required: second_factor_required.unwrap_or(self.second_factor_required),
            late_events_move: late_events_move.unwrap_or(self.late_events_move),
        }
    }

    /// Whether a change to these settings weakens or strengthens who gets in, or what is known about it later.
    pub fn guards_differ(&self, other: &Self) -> bool {
        let guards = |settings: &Self| {
            (settings.sessions, settings.grants, settings.second_factor_required, settings.audit_days)
        };
        guards(self) != guards(other)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Company {
    pub id: CompanyId,
    pub slug: Slug,
    pub name: String,
    pub settings: Settings,
    /// The events that are written only because some webhook selects them.
    pub opt_in: OptIn,
    /// When sample data was added, while it is there.
    pub sample_since: Option<Time>,
    pub created_at: Time,
}

impl Company {
    /// The company after a PATCH of its name and settings; unknown members are rejected by name. Its slug stays.
    pub fn patched(&self, body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.replaceable("name", |value| as_text(value, MAX_NAME));
        let settings = self.settings.read(&mut members);
        members.refuse_unknown();
        members.finish()?;
        Ok(Self { name: name.unwrap_or_else(|| self.name.clone()), settings, ..self.clone() })
    }
}

/// A request for a company and its owner.
pub struct Create {
    pub slug: Slug,
    pub name: String,
    pub owner: Email,
    pub owner_name: String,
    pub password: String,
}

impl Create {
    /// `name` and `email` are the owner's; the company's name is `company`.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.required("company", |value| as_text(value, MAX_NAME));
        let slug = members.required("project", |value| Slug::parse(as_str(value)?));
        let owner_name = members.required("name", |value| as_text(value, MAX_NAME));
        let owner = members.required("email", Email::from_json);
        let password = members.required("password", new_password);
        members.refuse_unknown();
        members.build(|| {
            let (slug, name) = (slug?, name?);
            Some(Self { slug, name, owner: owner?, owner_name: owner_name?, password: password? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_company_has_the_decided_defaults() {
        let settings = Settings::default();
        assert_eq!(settings.cadence_days, 42);
        assert_eq!(settings.tracked_stages.to_stored(), "customer,in_trial");
        assert!(settings.digest_enabled);
        assert_eq!(settings.digest_weekday.as_str(), "monday");
        assert_eq!(time_zone_name(&settings.time_zone), "UTC");
        assert_eq!(settings.default_currency.code(), "USD");
        assert_eq!(settings.audit_days, 730);
        assert_eq!(settings.grants, Grants { export: Grant::Admins, delete: Grant::Admins });
        assert_eq!(settings.sessions.idle_minutes, 14 * 24 * 60);
        assert_eq!(settings.sessions.max_minutes, 90 * 24 * 60);
        assert!(!settings.second_factor_required);
        assert!(settings.late_events_move);
    }

    #[test]
    fn a_company_begins_with_its_owner() {
        let full = json!({
            "company": "Acme", "project": "acme",
            "name": "Ana", "email": "Ana@acme.test", "password": "ten chars!",
        });
        let created = Create::parse(full.as_object().unwrap()).unwrap();
        assert_eq!((created.slug.as_str(), created.name.as_str()), ("acme", "Acme"));
        assert_eq!((created.owner.as_str(), created.owner_name.as_str()), ("ana@acme.test", "Ana"));
        assert_eq!(created.password, "ten chars!");
        let faulty =
            json!({"company": "", "project": "Acme", "email": "ana", "password": "short", "slug": "acme"});
        let invalid = Create::parse(faulty.as_object().unwrap()).err().expect("faults");
        let found: Vec<(&str, &str)> =
            invalid.0.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        let expected = [
            ("/company", "empty"),
            ("/project", "malformed"),
            ("/name", "required"),
            ("/email", "malformed"),
            ("/password", "too_short"),
            ("/slug", "unknown_member"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_patch_names_every_bad_member() {
        let body = json!({
            "cadence_days": 0, "tracked_stages": ["lost"], "digest_enabled": "yes",
            "digest_weekday": "Monday", "time_zone": "Mars/Olympus", "default_currency": "XYZ",
            "audit_days": 29, "export_role": "viewer", "delete_role": 1, "session_idle_minutes": 5,
            "session_max_minutes": "long", "second_factor_required": "yes",
            "late_events_move": 1, "more": 1,
        });
        let invalid = Settings::default().patched(body.as_object().unwrap()).unwrap_err();
        let codes: Vec<&str> = invalid.0.iter().map(|error| error.code).collect();
        let expected = [
            "out_of_range",
            "not_trackable",
            "wrong_type",
            "unknown_weekday",
            "unknown_time_zone",
            "unknown_currency",
            "out_of_range",
            "unknown_role",
            "wrong_type",
            "out_of_range",
            "wrong_type",
            "wrong_type",
            "wrong_type",
            "unknown_member",
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn only_some_settings_guard_the_company() {
        let before = Settings::default();
        let table = [
            (json!({"cadence_days": 7, "time_zone": "Europe/Berlin", "late_events_move": false}), false),
            (json!({"audit_days": 730, "session_idle_minutes": 20_160}), false),
            (json!({"audit_days": 30}), true),
            (json!({"export_role": "member"}), true),
            (json!({"session_idle_minutes": 30}), true),
            (json!({"session_max_minutes": 525_600}), true),
            (json!({"second_factor_required": true}), true),
        ];
        for (body, differ) in table {
            let after = before.patched(body.as_object().unwrap()).unwrap();
            assert_eq!(before.guards_differ(&after), differ, "{body}");
        }
    }

    #[test]
    fn a_company_is_renamed_like_its_settings_are_changed() {
        let acme = Company {
            id: CompanyId(1),
            slug: Slug::parse("acme").unwrap(),
            name: "Acme".to_owned(),
            settings: Settings::default(),
            opt_in: OptIn::default(),
            sample_since: None,
            created_at: Time::from_micros(0),
        };
        let patched = |body: Value| acme.patched(body.as_object().unwrap());
        let renamed = patched(json!({"name": "Acme & Sons", "cadence_days": 7})).unwrap();
        assert_eq!((renamed.name.as_str(), renamed.settings.cadence_days), ("Acme & Sons", 7));
        assert_eq!((renamed.slug, renamed.id), (acme.slug.clone(), acme.id));
        let codes =
            |body: Value| patched(body).unwrap_err().0.iter().map(|error| error.code).collect::<Vec<_>>();
        assert_eq!(codes(json!({"name": "", "cadence_days": 0})), ["empty", "out_of_range"]);
        assert_eq!(codes(json!({"name": null, "time_zone": null})), ["not_clearable", "not_clearable"]);
        assert_eq!(codes(json!({"name": "x".repeat(121), "project": "b"})), ["too_long", "unknown_member"]);
    }

    #[test]
    fn stages_are_a_non_empty_subset() {
        let read = |value: Value| TrackedStages::from_json(&value);
        assert_eq!(read(json!([])).unwrap_err().code, "empty");
        assert_eq!(read(json!(["prospect"])).unwrap_err().code, "not_trackable");
        let all = read(json!(["in_negotiation", "customer", "in_trial"])).unwrap();
        assert_eq!(TrackedStages::from_stored(&all.to_stored()), all);
    }

    #[test]
    fn slugs_are_plain() {
        for good in ["acme", "a", "acme-2"] {
            assert!(Slug::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "Acme", "-a", "a-", "a_b", "a.b", "ä", &"a".repeat(64)] {
            assert!(Slug::parse(bad).is_err(), "{bad}");
        }
    }
}
