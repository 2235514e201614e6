//! Webhooks: a company's settings for a receiver, and the effect of failures.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::destination::{Destination, Refusal};
use crate::event::Kind;
use crate::event_filter::EventFilter;
use crate::id::WebhookId;
use crate::invalid::{Fault, Invalid, Members, as_array, as_object, as_str, as_text};
use crate::schema::{one_of, words};
use crate::standing::Standing;
use crate::text::Length;
use crate::time::Time;
use crate::webhook_header::{GivenHeader, read_headers};

/// How many failed attempts in a row disable a webhook.
pub const MAX_STREAK: i64 = 20;
pub const MAX_DESCRIPTION: Length = Length::up_to(200);

/// The kinds that "all events" means: the business events and `client.contact_due`.
pub const STANDARD: [Kind; 4] =
    [Kind::AccountCreated, Kind::AccountStatusChanged, Kind::MessageInbound, Kind::ClientContactDue];

/// The event kinds a webhook can select: those, and the opt-in kinds.
pub const SELECTABLE: [Kind; 7] = [
    Kind::AccountCreated,
    Kind::AccountStatusChanged,
    Kind::MessageInbound,
    Kind::ClientContactDue,
    Kind::AccountUpdated,
    Kind::AccountDeleted,
    Kind::ContactLogged,
];

/// The name of the schema of those kinds.
const SELECTABLE_KIND: &str = "SelectableEvent";

/// A non-empty selection of event kinds, each once, in the order they were given. Every event asks the selections of
/// all webhooks of its company, so the kinds are kept in place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// The first `count` are selected; the others are always the same.
    kinds: [Kind; Kind::ALL.len()],
    count: usize,
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(self.kinds()).finish()
    }
}

impl FromIterator<Kind> for Selection {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        let mut selection = Self { kinds: [Kind::ALL[0]; Kind::ALL.len()], count: 0 };
        for kind in kinds {
            if !selection.includes(kind) {
                selection.kinds[selection.count] = kind;
                selection.count += 1;
            }
        }
        selection
    }
}

impl PartialSchema for Selection {
    fn schema() -> RefOr<Schema> {
        let description = "The event types that a webhook receives.";
        let kind = Ref::from_schema_name(SELECTABLE_KIND);
        ArrayBuilder::new().items(kind).min_items(Some(1)).description(Some(description)).into()
    }
}

impl ToSchema for Selection {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("EventSelection")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let kinds = one_of(SELECTABLE.map(Kind::as_str)).description(Some("An event type to select."));
        schemas.push((SELECTABLE_KIND.to_owned(), kinds.into()));
    }
}

impl Selection {
    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        let not_allowed = || Fault::not_one_of("unknown_event", SELECTABLE.map(Kind::as_str));
        let chosen = as_array(value)?.iter().map(|item| {
            Kind::parse(as_str(item)?).filter(|kind| SELECTABLE.contains(kind)).ok_or_else(not_allowed)
        });
        let chosen: Self = chosen.collect::<Result<_, _>>()?;
        if chosen.kinds().is_empty() {
            return Err(Fault::new("empty", "must include at least one event"));
        }
        Ok(chosen)
    }

    pub fn includes(&self, kind: Kind) -> bool {
        self.kinds().contains(&kind)
    }

    pub fn kinds(&self) -> &[Kind] {
        &self.kinds[..self.count]
    }

    /// Whether it includes all events, which doesn't say anything about the opt-in kinds.
    pub fn is_all(&self) -> bool {
        STANDARD.into_iter().all(|kind| self.includes(kind))
    }

    /// The stored form: the wire values, joined by commas.
    pub fn to_stored(&self) -> String {
        self.kinds().iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
    }

    pub fn from_stored(text: &str) -> Self {
        text.split(',').filter_map(Kind::parse).collect()
    }
}

/// Whether a webhook is enabled, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    Enabled,
    DisabledByHand,
    /// Disabled after too many failures in a row.
    AutoDisabled {
        at: Time,
    },
}

impl Switch {
    pub const fn is_enabled(self) -> bool {
        matches!(self, Self::Enabled)
    }

    pub const fn is_auto_disabled(self) -> bool {
        matches!(self, Self::AutoDisabled { .. })
    }
}

/// The last test event and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastTest {
    pub at: Time,
    pub succeeded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    pub description: String,
    pub events: Selection,
    pub switch: Switch,
    pub failure_streak: i64,
    /// Whether an attempt at the current URL has succeeded.
    pub proven: bool,
    pub last_test: Option<LastTest>,
    /// When the URL last changed: a test says nothing about a later URL.
    pub url_changed_at: Time,
    pub created_at: Time,
    pub updated_at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsTest;

impl Webhook {
    /// Its URL without the scheme, which people recognise it by.
    pub fn place(&self) -> &str {
        self.url.strip_prefix("https://").unwrap_or(&self.url)
    }

    /// One counter for all attempts, including tests and manual ones, in the order they are recorded. The
    /// 20th failure in a row disables the webhook; a late success doesn't enable it again.
    pub fn record(&mut self, succeeded: bool, now: Time) {
        if succeeded {
            self.failure_streak = 0;
            self.proven = true;
            return;
        }
        self.failure_streak += 1;
        if self.failure_streak >= MAX_STREAK && self.switch.is_enabled() {
            self.switch = Switch::AutoDisabled { at: now };
        }
    }

    /// Changes the URL. The new receiver has to prove itself again.
    pub fn move_to(&mut self, url: &str, now: Time) {
        url.clone_into(&mut self.url);
        self.url_changed_at = now;
        self.proven = false;
    }

    pub const fn standing(&self) -> Standing {
        Standing::of(self.proven, self.failure_streak)
    }

    pub fn record_test(&mut self, succeeded: bool, now: Time) {
        self.last_test = Some(LastTest { at: now, succeeded });
    }

    /// An auto-disabled webhook can be enabled only after a successful test since it was disabled and since
    /// its URL last changed; one disabled by hand can be enabled at any time. Enabling resets the streak.
    pub fn enable(&mut self, now: Time) -> Result<(), NeedsTest> {
        if let Switch::AutoDisabled { at } = self.switch {
            let since = at.max(self.url_changed_at);
            if !self.last_test.is_some_and(|test| test.succeeded && test.at >= since) {
                return Err(NeedsTest);
            }
        }
        self.switch = Switch::Enabled;
        self.failure_streak = 0;
        self.updated_at = now;
        Ok(())
    }
}

/// A request to create a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    pub url: Destination,
    pub events: Selection,
    pub description: String,
    pub filters: EventFilter,
    pub headers: Vec<GivenHeader>,
}

impl Create {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let url = members.required("url", destination);
        let events = members.required("events", Selection::from_json);
        let description = members.optional("description", |value| as_text(value, MAX_DESCRIPTION.or_empty()));
        let filters = read_filters(&mut members).unwrap_or_default();
        let headers = read_headers(&mut members).unwrap_or_default();
        members.refuse_unknown();
        let description = description.unwrap_or_default();
        members.build(|| Some(Self { url: url?, events: events?, description, filters, headers }))
    }
}

/// An edit of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    pub url: Option<Destination>,
    pub events: Option<Selection>,
    pub description: Option<String>,
    /// Replaces all conditions.
    pub filters: Option<EventFilter>,
    /// Replaces all headers. A secret one without a value keeps its value.
    pub headers: Option<Vec<GivenHeader>>,
}

impl Patch {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let url = members.replaceable("url", destination);
        let events = members.replaceable("events", Selection::from_json);
        let description =
            members.clearable("description", |value| as_text(value, MAX_DESCRIPTION.or_empty()));
        let filters =
            read_filters(&mut members).or_else(|| members.is_cleared("filters").then(EventFilter::default));
        let headers = read_headers(&mut members).or_else(|| members.is_cleared("headers").then(Vec::new));
        members.refuse_unknown();
        members.finish()?;
        let description = description.map(Option::unwrap_or_default);
        Ok(Self { url, events, description, filters, headers })
    }
}

fn read_filters(members: &mut Members) -> Option<EventFilter> {
    let filters = members.optional("filters", as_object)?;
    EventFilter::parse(filters, "/filters").map_err(|invalid| members.absorb(invalid)).ok()
}

/// What happens to deliveries held while a webhook was disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    Send,
    Drop,
}

impl Held {
    pub const ALL: [Self; 2] = [Self::Send, Self::Drop];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Drop => "drop",
        }
    }

    fn from_json(value: &Value) -> Result<Self, Fault> {
        let text = as_str(value)?;
        let unknown = || Fault::not_one_of("unknown_choice", Self::ALL.map(Self::as_str));
        Self::ALL.into_iter().find(|held| held.as_str() == text).ok_or_else(unknown)
    }

    /// Parses a request to enable a webhook.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let held = members.optional("held", Self::from_json);
        members.refuse_unknown();
        members.finish().map(|()| held.unwrap_or(Self::Send))
    }
}

fn destination(value: &Value) -> Result<Destination, Fault> {
    Destination::parse(as_str(value)?).map_err(|refusal| refused(&refusal))
}

words!(Held, "HeldChoice", "What to do with the held deliveries.");

/// Turns a refused destination into an error of the member `url`.
pub fn refused(refusal: &Refusal) -> Fault {
    Fault::new(refusal.code(), refusal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Time = Time::from_micros(1_000_000);
    const LATER: Time = Time::from_micros(2_000_000);

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::from_bytes([1; 16]),
            url: "https://example.com/".to_owned(),
            description: String::new(),
            events: Selection::from_iter([Kind::AccountCreated]),
            switch: Switch::Enabled,
            failure_streak: 0,
            proven: false,
            last_test: None,
            url_changed_at: NOW,
            created_at: NOW,
            updated_at: NOW,
        }
    }

    #[test]
    fn the_twentieth_failure_in_a_row_disables() {
        let mut hook = webhook();
        for _ in 0..19 {
            hook.record(false, NOW);
        }
        assert!(hook.switch.is_enabled());
        hook.record(true, NOW);
        assert_eq!(hook.failure_streak, 0);
        for _ in 0..20 {
            hook.record(false, LATER);
        }
        assert_eq!(hook.switch, Switch::AutoDisabled { at: LATER });
        hook.record(true, LATER);
        assert_eq!(hook.switch, Switch::AutoDisabled { at: LATER }, "a late success does not enable it");
    }

    #[test]
    fn a_success_proves_the_receiver_until_the_url_changes() {
        let mut hook = webhook();
        assert_eq!(hook.standing(), Standing::New);
        hook.record(true, NOW);
        hook.record(false, NOW);
        assert_eq!(hook.standing(), Standing::Proven, "one failure does not undo it");
        hook.record(true, NOW);
        hook.move_to("https://example.org/", LATER);
        assert_eq!((hook.standing(), hook.url_changed_at), (Standing::New, LATER));
    }

    #[test]
    fn enabling_needs_a_successful_test_since_the_disabling_and_the_last_url() {
        let mut hook = webhook();
        hook.switch = Switch::AutoDisabled { at: LATER };
        hook.failure_streak = 20;
        assert_eq!(hook.enable(LATER), Err(NeedsTest));
        hook.record_test(true, NOW);
        assert_eq!(hook.enable(LATER), Err(NeedsTest), "a test from before it was disabled proves nothing");
        hook.record_test(false, LATER);
        assert_eq!(hook.enable(LATER), Err(NeedsTest));
        hook.record_test(true, LATER);
        hook.url_changed_at = LATER.plus_seconds(1);
        assert_eq!(hook.enable(LATER), Err(NeedsTest), "nor does a test of another URL");
        hook.url_changed_at = NOW;
        assert_eq!(hook.enable(LATER), Ok(()));
        assert_eq!((hook.switch, hook.failure_streak), (Switch::Enabled, 0));
        hook.switch = Switch::DisabledByHand;
        hook.last_test = None;
        assert_eq!(hook.enable(LATER), Ok(()));
    }

    #[test]
    fn a_webhook_chooses_among_the_business_events() {
        let read = |value: Value| Selection::from_json(&value);
        assert_eq!(
            read(json!(["account.created", "account.created"])).unwrap().kinds(),
            [Kind::AccountCreated]
        );
        assert_eq!(
            read(json!(["message.inbound", "account.created", "message.inbound"])).unwrap().kinds(),
            [Kind::MessageInbound, Kind::AccountCreated],
            "in the order they were given"
        );
        assert_eq!(read(json!([])).unwrap_err().code, "empty");
        assert_eq!(read(json!(["webhook.test"])).unwrap_err().code, "unknown_event");
        assert_eq!(read(json!("account.created")).unwrap_err().code, "wrong_type");
        let all = read(json!(SELECTABLE.map(Kind::as_str))).unwrap();
        assert_eq!(Selection::from_stored(&all.to_stored()), all);
        let expected: Vec<Kind> = STANDARD.into_iter().chain(Kind::OPT_IN).collect();
        assert_eq!(all.kinds(), expected, "and those that have to be asked for");
        let standard = read(json!(STANDARD.map(Kind::as_str))).unwrap();
        assert!(standard.is_all() && all.is_all(), "all events are those that nobody has to ask for");
        assert!(Kind::OPT_IN.into_iter().all(|kind| !standard.includes(kind)));
        assert!(!read(json!(["account.created", "account.updated"])).unwrap().is_all());
    }

    #[test]
    fn held_deliveries_are_sent_unless_they_are_to_be_dropped() {
        let parse = |body: Value| Held::parse(body.as_object().unwrap()).map_err(|invalid| invalid.0[0].code);
        let table = [
            (json!({}), Ok(Held::Send)),
            (json!({"held": null}), Ok(Held::Send)),
            (json!({"held": "send"}), Ok(Held::Send)),
            (json!({"held": "drop"}), Ok(Held::Drop)),
            (json!({"held": "keep"}), Err("unknown_choice")),
            (json!({"held": true}), Err("wrong_type")),
            (json!({"hold": "send"}), Err("unknown_member")),
        ];
        for (body, expected) in table {
            assert_eq!(parse(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn filters_and_headers_are_read_with_their_faults() {
        let body = json!({
            "url": "https://example.com/", "events": ["account.created"], "filters": {"to": "nope"},
            "headers": [{"name": "Host", "value": "x"}],
        });
        let invalid = Create::parse(body.as_object().unwrap()).unwrap_err();
        let pointers: Vec<&str> = invalid.0.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/filters/to", "/headers/0/name"]);
        for cleared in [json!({"filters": {}, "headers": []}), json!({"filters": null, "headers": null})] {
            let patch = Patch::parse(cleared.as_object().unwrap()).unwrap();
            assert_eq!((patch.filters, patch.headers), (Some(EventFilter::default()), Some(Vec::new())));
        }
        let patch = Patch::parse(json!({"filters": null}).as_object().unwrap()).unwrap();
        assert_eq!(patch.headers, None, "what isn't sent stays");
    }

    #[test]
    fn only_https_is_accepted() {
        let body = json!({"url": "http://example.com/", "events": ["account.created"]});
        let invalid = Create::parse(body.as_object().unwrap()).unwrap_err();
        assert_eq!((invalid.0[0].pointer.as_str(), invalid.0[0].code), ("/url", "not_https"));
    }
}
