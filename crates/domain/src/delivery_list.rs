//! Lists of deliveries: the state shown for each, and the filter that selects them.
//!
//! *Held* isn't stored on the delivery: disabling a webhook changes one row, not a million. An open delivery
//! is shown as pending or held depending on its webhook.

use serde_json::{Map, Value, json};

use crate::delivery::{Delivery, State};
use crate::event::Kind;
use crate::id::{AccountId, WebhookId};
use crate::invalid::{Fault, Invalid, Members, as_str};
use crate::schema::words;
use crate::time::Time;

/// A delivery's state as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shown {
    Pending,
    Succeeded,
    Failed,
    /// Its webhook is disabled: neither attempted nor lost.
    Held,
}

impl Shown {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Succeeded, Self::Failed, Self::Held];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Held => "held",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| Fault::not_one_of("unknown_state", Self::ALL.map(Self::as_str)))
    }
}

words!(
    Shown,
    "DeliveryState",
    "The state of a delivery. `held` means that it waits for its webhook to be enabled."
);

/// The facts about a webhook that decide how its open deliveries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookState {
    pub enabled: bool,
    pub deleted_at: Option<Time>,
    /// An operator dropped the open deliveries created before this time, at this time.
    pub dropped_before: Time,
}

impl WebhookState {
    /// Whether some of its open deliveries have ended but aren't recorded as ended yet.
    pub fn ends_some(&self) -> bool {
        self.deleted_at.is_some() || self.dropped_before > Time::from_micros(0)
    }
}

/// A delivery as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appearance {
    pub state: Shown,
    pub error: Option<String>,
    /// Set only for a pending delivery.
    pub next_attempt_at: Option<Time>,
    pub finished_at: Option<Time>,
}

pub const WEBHOOK_DELETED: &str = "webhook_deleted";
pub const DROPPED: &str = "dropped";
pub const PAYLOAD_ERASED: &str = "payload_erased";

/// How a delivery is shown, given its webhook's state; `None` if the webhook was removed long ago.
pub fn appearance(delivery: &Delivery, standing: Option<&WebhookState>) -> Appearance {
    let own = |state, next_attempt_at| Appearance {
        state,
        error: delivery.error.clone(),
        next_attempt_at,
        finished_at: delivery.finished_at,
    };
    let ended = |error: &str, at| Appearance {
        state: Shown::Failed,
        error: Some(error.to_owned()),
        next_attempt_at: None,
        finished_at: at,
    };
    let next_at = match delivery.state {
        State::Succeeded => return own(Shown::Succeeded, None),
        State::Failed => return own(Shown::Failed, None),
        State::Open { next_at } => next_at,
    };
    match standing {
        None => ended(WEBHOOK_DELETED, None),
        Some(WebhookState { deleted_at: Some(at), .. }) => ended(WEBHOOK_DELETED, Some(*at)),
        Some(standing) if delivery.created_at < standing.dropped_before => {
            ended(DROPPED, Some(standing.dropped_before))
        }
        Some(standing) if standing.enabled || is_untried_test(delivery) => own(Shown::Pending, Some(next_at)),
        Some(_) => own(Shown::Held, None),
    }
}

/// A test event is attempted once, whether its webhook is enabled or not.
pub fn is_untried_test(delivery: &Delivery) -> bool {
    delivery.kind == Kind::WebhookTest && delivery.attempts == 0
}

/// A filter matches a delivery that meets every condition given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    pub webhook: Option<WebhookId>,
    pub state: Option<Shown>,
    pub kind: Option<Kind>,
    pub account: Option<AccountId>,
    /// Created at this time or later.
    pub since: Option<Time>,
    /// Created before this time.
    pub until: Option<Time>,
}

impl Filter {
    pub fn admits(&self, delivery: &Delivery, shown: Shown) -> bool {
        self.webhook.is_none_or(|webhook| webhook == delivery.webhook)
            && self.state.is_none_or(|state| state == shown)
            && self.kind.is_none_or(|kind| kind == delivery.kind)
            && self.account.is_none_or(|account| Some(account) == delivery.account)
            && self.since.is_none_or(|since| delivery.created_at >= since)
            && self.until.is_none_or(|until| delivery.created_at < until)
    }

    /// Reads the members of a request that make up a filter.
    pub(crate) fn read(members: &mut Members) -> Self {
        Self {
            webhook: members.optional("webhook", |value| webhook_id(as_str(value)?)),
            state: members.optional("state", |value| Shown::parse(as_str(value)?)),
            kind: members.optional("type", |value| event_kind(as_str(value)?)),
            account: members.optional("account", |value| account_id(as_str(value)?)),
            since: members.optional("since", |value| time(as_str(value)?)),
            until: members.optional("until", |value| time(as_str(value)?)),
        }
    }

    /// Parses a filter on its own. Unknown members are ignored.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let filter = Self::read(&mut members);
        members.finish().map(|()| filter)
    }

    /// The stored form: a JSON object with the same members.
    pub fn to_stored(&self) -> String {
        json!({
            "webhook": self.webhook,
            "state": self.state.map(Shown::as_str),
            "type": self.kind.map(Kind::as_str),
            "account": self.account,
            "since": self.since,
            "until": self.until,
        })
        .to_string()
    }

    pub fn from_stored(text: &str) -> Result<Self, Invalid> {
        Self::parse(&serde_json::from_str(text).unwrap_or_default())
    }
}

pub fn webhook_id(text: &str) -> Result<WebhookId, Fault> {
    text.parse().map_err(|_| Fault::new("malformed", "must be a webhook id"))
}

pub fn account_id(text: &str) -> Result<AccountId, Fault> {
    text.parse().map_err(|_| Fault::new("malformed", "must be an account id"))
}

pub fn event_kind(text: &str) -> Result<Kind, Fault> {
    Kind::parse(text).ok_or_else(|| Fault::not_one_of("unknown_event", Kind::ALL.map(Kind::as_str)))
}

fn time(text: &str) -> Result<Time, Fault> {
    Time::parse(text).map_err(|error| Fault::new("malformed", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DeliveryId, EventId};

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);
    const LATER: Time = NOW.plus_seconds(60);
    const ON: WebhookState =
        WebhookState { enabled: true, deleted_at: None, dropped_before: Time::from_micros(0) };
    const OFF: WebhookState = WebhookState { enabled: false, ..ON };

    fn delivery(state: State) -> Delivery {
        Delivery {
            id: DeliveryId::from_bytes([1; 16]),
            webhook: WebhookId::from_bytes([2; 16]),
            event: EventId::from_bytes([3; 16]),
            kind: Kind::AccountCreated,
            account: Some(AccountId::from_bytes([4; 16])),
            state,
            attempts: 2,
            scheduled: 2,
            response_code: Some(500),
            error: Some("answered 500".to_owned()),
            created_at: NOW,
            finished_at: None,
        }
    }

    fn open() -> Delivery {
        delivery(State::Open { next_at: LATER })
    }

    #[test]
    fn an_open_delivery_is_shown_by_its_webhooks_state() {
        let deleted = WebhookState { deleted_at: Some(LATER), ..OFF };
        let dropped = WebhookState { dropped_before: LATER, ..ON };
        let kept = WebhookState { dropped_before: NOW, ..OFF };
        let own = Some("answered 500");
        let table = [
            (Some(ON), Shown::Pending, own, Some(LATER), None),
            (Some(OFF), Shown::Held, own, None, None),
            (Some(kept), Shown::Held, own, None, None),
            (Some(deleted), Shown::Failed, Some(WEBHOOK_DELETED), None, Some(LATER)),
            (Some(dropped), Shown::Failed, Some(DROPPED), None, Some(LATER)),
            (None, Shown::Failed, Some(WEBHOOK_DELETED), None, None),
        ];
        for (standing, state, error, next_attempt_at, finished_at) in table {
            let error = error.map(str::to_owned);
            let expected = Appearance { state, error, next_attempt_at, finished_at };
            assert_eq!(appearance(&open(), standing.as_ref()), expected, "{standing:?}");
        }
    }

    #[test]
    fn an_ended_delivery_is_shown_with_its_outcome() {
        let deleted = WebhookState { deleted_at: Some(LATER), dropped_before: LATER, ..OFF };
        for standing in [Some(ON), Some(OFF), Some(deleted), None] {
            for (state, shown) in [(State::Succeeded, Shown::Succeeded), (State::Failed, Shown::Failed)] {
                let seen = appearance(&delivery(state), standing.as_ref());
                assert_eq!((seen.state, seen.error.as_deref()), (shown, Some("answered 500")));
            }
        }
    }

    #[test]
    fn a_test_is_never_held_before_its_attempt() {
        let mut test = Delivery { kind: Kind::WebhookTest, attempts: 0, ..open() };
        assert_eq!(appearance(&test, Some(&OFF)).state, Shown::Pending);
        test.attempts = 1;
        assert_eq!(appearance(&test, Some(&OFF)).state, Shown::Held);
    }

    #[test]
    fn a_filter_matches_when_all_of_its_conditions_do() {
        let delivery = open();
        let full = Filter {
            webhook: Some(delivery.webhook),
            state: Some(Shown::Held),
            kind: Some(delivery.kind),
            account: delivery.account,
            since: Some(NOW),
            until: Some(LATER),
        };
        assert!(full.admits(&delivery, Shown::Held) && Filter::default().admits(&delivery, Shown::Held));
        let off_by_one = [
            Filter { webhook: Some(WebhookId::from_bytes([9; 16])), ..full },
            Filter { state: Some(Shown::Failed), ..full },
            Filter { kind: Some(Kind::WebhookTest), ..full },
            Filter { account: Some(AccountId::from_bytes([9; 16])), ..full },
            Filter { since: Some(LATER), ..full },
            Filter { until: Some(NOW), ..full },
        ];
        for filter in off_by_one {
            assert!(!filter.admits(&delivery, Shown::Held), "{filter:?}");
        }
        assert_eq!(Filter::from_stored(&full.to_stored()), Ok(full));
        assert_eq!(Filter::from_stored(&Filter::default().to_stored()), Ok(Filter::default()));
    }

    #[test]
    fn every_fault_of_a_filter_is_named() {
        let body = json!({"webhook": "acc_1", "state": "open", "type": "x", "account": 7, "since": "never"});
        let invalid = Filter::parse(body.as_object().unwrap()).unwrap_err();
        let found: Vec<(String, &str)> =
            invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect();
        let expected = [
            ("/webhook", "malformed"),
            ("/state", "unknown_state"),
            ("/type", "unknown_event"),
            ("/account", "wrong_type"),
            ("/since", "malformed"),
        ];
        assert_eq!(found, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }
}
