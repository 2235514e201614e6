//! Schemas of webhooks and deliveries for the OpenAPI document only. The domain parses the actual members and
//! parameters.

#![expect(dead_code, reason = "these types only describe the API and are never constructed")]

use utoipa::{IntoParams, ToSchema};

/// The event types a webhook can subscribe to.
#[derive(ToSchema)]
pub enum SelectableEvent {
    #[schema(rename = "account.created")]
    AccountCreated,
    #[schema(rename = "account.status_changed")]
    AccountStatusChanged,
    #[schema(rename = "message.inbound")]
    MessageInbound,
    #[schema(rename = "client.contact_due")]
    ClientContactDue,
}

/// All event types.
#[derive(ToSchema)]
pub enum EventKind {
    #[schema(rename = "account.created")]
    AccountCreated,
    #[schema(rename = "account.status_changed")]
    AccountStatusChanged,
    #[schema(rename = "message.inbound")]
    MessageInbound,
    #[schema(rename = "webhook.test")]
    WebhookTest,
    #[schema(rename = "client.contact_due")]
    ClientContactDue,
}

/// The state of a delivery. `held` means that it waits for its webhook to be enabled.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum DeliveryState {
    Pending,
    Succeeded,
    Failed,
    Held,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum AttemptStatus {
    Succeeded,
    Failed,
}

/// Why an attempt got no complete response.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ErrorClass {
    Dns,
    Connect,
    Tls,
    Timeout,
    Protocol,
    /// The destination is not allowed.
    DestinationRefused,
    /// An error of the service itself. It is not counted against the receiver.
    OwnFault,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum RedeliveryState {
    Running,
    Finished,
    Cancelled,
}

#[derive(ToSchema)]
pub struct WebhookCreate {
    /// Must use `https` and have no user information.
    #[schema(example = "https://hooks.acme.example/rapport")]
    url: String,
    #[schema(min_items = 1)]
    events: Vec<SelectableEvent>,
    #[schema(max_length = 200)]
    description: Option<String>,
}

#[derive(ToSchema)]
pub struct WebhookPatch {
    #[schema(example = "https://hooks.acme.example/rapport")]
    url: Option<String>,
    #[schema(min_items = 1)]
    events: Option<Vec<SelectableEvent>>,
    #[schema(max_length = 200)]
    description: Option<String>,
}

#[derive(ToSchema)]
pub struct WebhookEnable {
    /// What to do with the held deliveries. Defaults to `send`.
    #[schema(inline)]
    held: Option<HeldChoice>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum HeldChoice {
    Send,
    Drop,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryListParameters {
    /// A webhook's id.
    webhook: Option<String>,
    state: Option<DeliveryState>,
    /// The event type.
    #[param(rename = "type")]
    kind: Option<EventKind>,
    /// An account's id.
    account: Option<String>,
    /// Created at this time or later.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Created before this time.
    #[param(format = DateTime)]
    until: Option<String>,
}

/// Selects deliveries. Filters that are left out match anything.
#[derive(ToSchema)]
pub struct RedeliverMany {
    /// A webhook's id.
    webhook: Option<String>,
    state: Option<DeliveryState>,
    /// The event type.
    #[schema(rename = "type")]
    kind: Option<EventKind>,
    /// An account's id.
    account: Option<String>,
    /// Created at this time or later.
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Created before this time.
    #[schema(format = DateTime)]
    until: Option<String>,
    /// Only count the deliveries.
    #[schema(default = false)]
    preview: Option<bool>,
}

#[cfg(test)]
mod tests {
    use rapport_domain::delivery::Failure;
    use rapport_domain::delivery_list::Shown;
    use rapport_domain::event::Kind;
    use rapport_domain::redelivery::State;
    use rapport_domain::webhook::SELECTABLE;
    use serde_json::{Value, json};
    use utoipa::PartialSchema;

    use super::*;

    fn words<T: PartialSchema>() -> Value {
        serde_json::to_value(T::schema()).unwrap()["enum"].take()
    }

    #[test]
    fn enum_values_match_the_domain() {
        assert_eq!(words::<SelectableEvent>(), json!(SELECTABLE.map(Kind::as_str)));
        assert_eq!(words::<EventKind>(), json!(Kind::ALL.map(Kind::as_str)));
        assert_eq!(words::<DeliveryState>(), json!(Shown::ALL.map(Shown::as_str)));
        assert_eq!(words::<ErrorClass>(), json!(Failure::ALL.map(Failure::as_str)));
        let states = [State::Running, State::Finished, State::Cancelled];
        assert_eq!(words::<RedeliveryState>(), json!(states.map(State::as_str)));
    }
}
