//! Converts a campaign to the fields of its form, and the form to the members that the API parses.

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rapport_domain::audience::Filter;
use rapport_domain::campaign::{Aim, Campaign, Draft, Goal, Patch};
use rapport_domain::invalid::Invalid;
use rapport_domain::time::Time;
use serde_json::{Map, Value, json};

use crate::pages::kit::conditions;
use crate::pages::kit::form::{As, FORM, Form};

const TIMES: [&str; 6] =
    ["seen_after", "seen_before", "contacted_after", "contacted_before", "created_since", "created_before"];
const FLAGS: [&str; 5] = ["tracked", "overdue", "seen", "contacted", "campaign_hold"];

pub fn draft(form: &Form, zone: &TimeZone) -> Result<Draft, Invalid> {
    body(form, zone, true).and_then(|body| Draft::parse(&body)).map_err(conditions::flat)
}

pub fn aim(form: &Form, zone: &TimeZone) -> Result<Aim, Invalid> {
    body(form, zone, false).and_then(|body| Aim::parse(&body)).map_err(conditions::flat)
}

/// The patch that applies the form to a campaign.
pub fn patch(form: &Form, zone: &TimeZone) -> Result<Patch, Invalid> {
    let Draft { name, aim } = draft(form, zone)?;
    Ok(Patch {
        name: Some(name),
        goal: Some(aim.goal),
        include_trials: Some(aim.include_trials),
        filters: Some(aim.filters),
    })
}

fn body(form: &Form, zone: &TimeZone, with_name: bool) -> Result<Map<String, Value>, Invalid> {
    let own: &[(&'static str, As)] =
        &[("name", As::Text), ("goal", As::Text), ("include_trials", As::Ticked)];
    let mut body = form.members(if with_name { own } else { &own[1..] });
    let mut filters = form.members(&[
        ("q", As::Text),
        ("status", As::Ticks),
        ("channel", As::Ticks),
        ("imported_id", As::Text),
    ]);
    for name in FLAGS {
        let flag =
            form.given(name).map(|text| text.parse::<bool>().map_or_else(|_| json!(text), Value::from));
        filters.extend(flag.map(|flag| (name.to_owned(), flag)));
    }
    for name in TIMES {
        let time = form.given(name).map(|text| json!(in_zone(text, zone)));
        filters.extend(time.map(|time| (name.to_owned(), time)));
    }
    filters.insert("fields".to_owned(), Value::Object(conditions::fields(form)?));
    body.insert("filters".to_owned(), Value::Object(filters));
    Ok(body)
}

/// Converts a day to its start in the company's zone. Anything else is left to the parser.
fn in_zone(text: &str, zone: &TimeZone) -> String {
    text.parse::<Date>()
        .ok()
        .filter(|_| text.len() == "2026-05-12".len())
        .map_or_else(|| text.to_owned(), |date| Time::start_of_day(date, zone).to_string())
}

/// The form of a new campaign.
pub fn blank() -> Form {
    Form::of(&[("goal".to_owned(), Goal::Acquisition.as_str().to_owned())])
}

/// The form of an existing campaign.
pub fn of_campaign(campaign: &Campaign, zone: &TimeZone) -> Form {
    let Campaign { name, aim, .. } = campaign;
    let mut pairs =
        vec![("name".to_owned(), name.clone()), ("goal".to_owned(), aim.goal.as_str().to_owned())];
    pairs.extend(aim.include_trials.then(|| ("include_trials".to_owned(), "on".to_owned())));
    pairs.extend(of_filter(&aim.filters, zone));
    Form::of(&pairs)
}

fn of_filter(filter: &Filter, zone: &TimeZone) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut pair =
        |name: &str, value: Option<String>| pairs.extend(value.map(|value| (name.to_owned(), value)));
    pair("q", filter.q.clone());
    pair("imported_id", filter.imported_id.clone());
    for status in &filter.statuses {
        pair("status", Some(status.to_string()));
    }
    for channel in &filter.channels {
        pair("channel", Some(channel.to_string()));
    }
    let flags = [filter.tracked, filter.overdue, filter.seen, filter.contacted, filter.campaign_hold];
    for (name, flag) in FLAGS.into_iter().zip(flags) {
        pair(name, flag.map(|flag| flag.to_string()));
    }
    let times = [
        filter.seen_after,
        filter.seen_before,
        filter.contacted_after,
        filter.contacted_before,
        filter.created_since,
        filter.created_before,
    ];
    for (name, time) in TIMES.into_iter().zip(times) {
        pair(name, time.map(|time| day_or_time(time, zone)));
    }
    for (name, text) in conditions::of_fields(&filter.fields) {
        pair(name, Some(text));
    }
    pairs
}

/// The day that starts at this time in the company's zone, else the time itself.
fn day_or_time(time: Time, zone: &TimeZone) -> String {
    let date = Zoned::new(time.to_timestamp(), zone.clone()).date();
    if Time::start_of_day(date, zone) == time { date.to_string() } else { time.to_string() }
}

/// Whether nothing was typed. The hidden field does not count.
pub fn is_blank(form: &Form) -> bool {
    form.fields().all(|(name, _)| name == FORM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::id::CampaignId;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    #[test]
    fn a_campaign_survives_its_form() {
        let channel = rapport_domain::id::ChannelId::from_bytes([3; 16]).to_string();
        let filters = json!({
            "q": "nord", "status": ["prospect", "lost"], "channel": [channel], "imported_id": "crm-1",
            "tracked": true, "overdue": false, "seen": true, "seen_before": "2026-05-11T22:00:00Z",
            "seen_after": "2026-01-01T08:30:00Z", "contacted": true, "campaign_hold": false,
            "fields": {"city": {"begins_with": "Ber"}, "plan": "pro", "tags": ["a", "7"], "vat/id": {"exists": true}},
        });
        let filters = Filter::parse(filters.as_object().unwrap(), "").unwrap();
        let aim = Aim { goal: Goal::Expansion, include_trials: true, filters };
        let at = Time::from_micros(0);
        let id = CampaignId::from_bytes([1; 16]);
        let campaign = Campaign { id, name: "Spring".to_owned(), aim, created_at: at, updated_at: at };
        let form = of_campaign(&campaign, &berlin());
        assert_eq!(form.text("seen_before"), "2026-05-12", "a day in the company's zone");
        assert_eq!(form.text("seen_after"), "2026-01-01T08:30:00Z");
        let (_, changed) = campaign.patched(&patch(&form, &berlin()).unwrap(), at);
        assert!(changed.is_empty(), "{changed:?}");
    }

    #[test]
    fn faults_stand_at_the_fields_of_the_form() {
        let form =
            Form::parse(b"goal=fame&status=nope&seen=maybe&seen_after=then&field=a&test=begins_with&value=");
        let faults = draft(&form, &berlin()).unwrap_err();
        let pointers: Vec<&str> = faults.0.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/name", "/goal", "/status", "/seen", "/seen_after", "/fields/a"]);
        assert!(faults.0[5].detail.starts_with("a must"), "{}", faults.0[5].detail);
    }
}
