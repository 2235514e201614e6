//! Converts a webhook to the fields of its form, and the form to the members that the API parses.

use rapport_app::read::webhook::Choice;
use rapport_domain::event::Kind;
use rapport_domain::event_filter::EventFilter;
use rapport_domain::invalid::Invalid;
use rapport_domain::webhook::{Create, Patch, STANDARD, Selection, Webhook};
use rapport_domain::webhook_header::{Header, MAX_HEADERS};
use serde_json::{Map, Value, json};

use crate::pages::kit::conditions;
use crate::pages::kit::form::{As, Form};

/// The field that selects all events or only the ticked ones.
const WHICH: &str = "which";
const ALL: &str = "all";
const SOME: &str = "some";
/// The events that have to be asked for.
const MORE: &str = "more";
/// The field names in a row for a header: name, value, and whether the value is secret.
const HEADER: [&str; 3] = ["header", "header_value", "header_kind"];
const SECRET: &str = "secret";
const VISIBLE: &str = "visible";
/// Empty rows for headers at the end of the form.
const SPARE_HEADERS: usize = 2;

/// A row for one header. It never has the value of a secret header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderRow {
    pub name: String,
    pub value: String,
    pub is_visible: bool,
    /// The webhook has a header of this name with a secret value, which stays if no other is typed.
    pub is_kept: bool,
}

pub fn create(form: &Form) -> Result<Create, Invalid> {
    body(form).and_then(|body| Create::parse(&body)).map_err(conditions::flat)
}

pub fn patch(form: &Form) -> Result<Patch, Invalid> {
    let parse = |mut body: Map<String, Value>| {
        // An empty field clears the description.
        body.entry("description").or_insert_with(|| Value::from(""));
        body.entry("url").or_insert_with(|| Value::from(""));
        Patch::parse(&body)
    };
    body(form).and_then(parse).map_err(conditions::flat)
}

/// What the form says about events, whatever else is in it.
pub fn selected(form: &Form) -> Result<(Selection, EventFilter), Invalid> {
    let body = json!({ "events": events(form), "filters": filters(form).map_err(conditions::flat)? });
    let Value::Object(body) = body else { unreachable!("an object") };
    let patch = Patch::parse(&body).map_err(conditions::flat)?;
    let missing = || Invalid::one("/events", "required", "is required");
    Ok((patch.events.ok_or_else(missing)?, patch.filters.unwrap_or_default()))
}

fn body(form: &Form) -> Result<Map<String, Value>, Invalid> {
    let mut body = form.members(&[("url", As::Text), ("description", As::Text)]);
    body.insert("events".to_owned(), events(form));
    body.insert("filters".to_owned(), Value::Object(filters(form)?));
    body.insert("headers".to_owned(), headers(form));
    Ok(body)
}

fn events(form: &Form) -> Value {
    let some = form.all("events").map(Value::from);
    let more = form.all(MORE).map(Value::from);
    if form.text(WHICH) == ALL {
        return STANDARD.iter().map(|kind| Value::from(kind.as_str())).chain(more).collect();
    }
    some.chain(more).collect()
}

fn filters(form: &Form) -> Result<Map<String, Value>, Invalid> {
    let mut filters = form.members(&[("from", As::Ticks), ("to", As::Ticks), ("channel", As::Ticks)]);
    filters.insert("fields".to_owned(), Value::Object(conditions::fields(form)?));
    Ok(filters)
}

/// The rows with a name or a value. A secret header without a value keeps its value.
fn headers(form: &Form) -> Value {
    let header = |row: HeaderRow| {
        let mut header = json!({ "name": row.name.trim(), "secret": !row.is_visible });
        if !row.value.is_empty() {
            header["value"] = row.value.into();
        }
        header
    };
    typed_headers(form).into_iter().map(header).collect()
}

fn typed_headers(form: &Form) -> Vec<HeaderRow> {
    let [names, values, kinds] = HEADER.map(|name| form.all(name).map(str::to_owned).collect::<Vec<_>>());
    let at = |texts: &[String], place: usize| texts.get(place).cloned().unwrap_or_default();
    (0..names.len())
        .map(|place| HeaderRow {
            name: at(&names, place),
            value: at(&values, place),
            is_visible: at(&kinds, place) == VISIBLE,
            is_kept: false,
        })
        .filter(|row| !row.name.trim().is_empty() || !row.value.is_empty())
        .collect()
}

/// The rows of headers to show, and empty ones to fill in. A secret that was typed isn't shown again.
pub fn header_rows(form: &Form, existing: &[Header]) -> Vec<HeaderRow> {
    let has_secret = |name: &str| {
        existing.iter().any(|header| header.value.is_none() && header.name.eq_ignore_ascii_case(name.trim()))
    };
    let mut rows = typed_headers(form);
    for row in &mut rows {
        row.is_kept = !row.is_visible && has_secret(&row.name);
        if !row.is_visible {
            row.value.clear();
        }
    }
    let room = MAX_HEADERS.saturating_sub(rows.len());
    rows.extend(vec![HeaderRow::default(); SPARE_HEADERS.min(room)]);
    rows
}

/// The form of a new webhook.
pub fn blank() -> Form {
    Form::of(&[(WHICH.to_owned(), ALL.to_owned())])
}

/// The form of an existing webhook.
pub fn of_webhook(webhook: &Webhook, Choice { filter, headers }: &Choice) -> Form {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut pair = |name: &str, value: &str| pairs.push((name.to_owned(), value.to_owned()));
    pair("url", &webhook.url);
    pair("description", &webhook.description);
    pair(WHICH, if webhook.events.is_all() { ALL } else { SOME });
    for kind in webhook.events.kinds() {
        pair(if Kind::OPT_IN.contains(kind) { MORE } else { "events" }, kind.as_str());
    }
    for (name, statuses) in [("from", &filter.from), ("to", &filter.to)] {
        for status in statuses {
            pair(name, status.as_str());
        }
    }
    for channel in &filter.channels {
        pair("channel", &channel.to_string());
    }
    for (name, text) in conditions::of_fields(&filter.fields) {
        pair(name, &text);
    }
    for Header { name, value } in headers {
        let kind = if value.is_some() { VISIBLE } else { SECRET };
        for (field, text) in
            HEADER.into_iter().zip([name.as_str(), value.as_deref().unwrap_or_default(), kind])
        {
            pair(field, text);
        }
    }
    Form::of(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::id::{ChannelId, WebhookId};
    use rapport_domain::time::Time;
    use rapport_domain::webhook::Switch;

    fn webhook(events: &[&str]) -> Webhook {
        let at = Time::from_micros(0);
        Webhook {
            id: WebhookId::from_bytes([1; 16]),
            url: "https://example.com/hook".to_owned(),
            description: "CRM".to_owned(),
            events: Selection::from_json(&json!(events)).unwrap(),
            switch: Switch::Enabled,
            failure_streak: 0,
            proven: false,
            last_test: None,
            url_changed_at: at,
            created_at: at,
            updated_at: at,
        }
    }

    #[test]
    fn a_webhook_survives_its_form() {
        let channel = ChannelId::from_bytes([3; 16]).to_string();
        let filters = json!({
            "from": ["in_trial"], "to": ["customer", "lost"], "channel": [channel],
            "fields": {"plan": ["a", "b"], "vat": {"exists": true}},
        });
        let filter = EventFilter::parse(filters.as_object().unwrap(), "").unwrap();
        let header = |name: &str, value: Option<&str>| Header {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        };
        let headers = vec![header("Authorization", None), header("X-Env", Some("prod"))];
        let choice = Choice { filter, headers };
        for events in [&["account.created", "account.updated"][..], &STANDARD.map(Kind::as_str)[..]] {
            let webhook = webhook(events);
            let form = of_webhook(&webhook, &choice);
            let patch = patch(&form).unwrap();
            assert_eq!(patch.events, Some(webhook.events));
            assert_eq!(patch.filters, Some(choice.filter.clone()));
            let given = patch.headers.unwrap();
            assert_eq!((given[0].secret, given[0].value.as_deref()), (true, None), "it keeps its value");
            assert_eq!((given[1].secret, given[1].value.as_deref()), (false, Some("prod")));
            assert_eq!(patch.description.as_deref(), Some("CRM"));
        }
    }

    #[test]
    fn all_events_are_those_that_nobody_has_to_ask_for() {
        let form =
            Form::parse(b"url=https://example.com/&which=all&events=account.created&more=contact.logged");
        let create = create(&form).unwrap();
        let expected: Vec<Kind> = STANDARD.into_iter().chain([Kind::ContactLogged]).collect();
        assert_eq!(create.events.kinds(), expected);
        assert_eq!((create.filters, create.headers), (EventFilter::default(), Vec::new()));
    }

    #[test]
    fn a_secret_that_was_typed_is_not_shown_again() {
        let form = Form::parse(
            b"header=Authorization&header_value=Bearer+x&header_kind=secret&header=X-Env&header_value=p&header_kind=visible",
        );
        let existing = [Header { name: "authorization".to_owned(), value: None }];
        let rows = header_rows(&form, &existing);
        assert_eq!((rows[0].value.as_str(), rows[0].is_kept), ("", true));
        assert_eq!((rows[1].value.as_str(), rows[1].is_kept), ("p", false));
        assert_eq!(rows.len(), 2 + SPARE_HEADERS);
    }

    #[test]
    fn faults_stand_at_the_fields_of_the_form() {
        let form = Form::parse(
            b"which=some&from=nope&field=a&test=begins_with&value=&header=Host&header_value=x&header_kind=visible",
        );
        let pointers =
            |invalid: Invalid| -> Vec<String> { invalid.0.into_iter().map(|error| error.pointer).collect() };
        let faults = pointers(create(&form).unwrap_err());
        assert_eq!(faults, ["/url", "/events", "/from", "/fields/a", "/headers/0/name"]);
        assert_eq!(pointers(selected(&form).unwrap_err()), ["/events", "/from", "/fields/a"]);
    }
}
