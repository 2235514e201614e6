//! Goals, rules and filters in words.

use jiff::Zoned;
use jiff::tz::TimeZone;
use rapport_domain::audience::{FieldTest, Filter};
use rapport_domain::campaign::{Goal, Rule};
use rapport_domain::channel::Channel;
use rapport_domain::time::Time;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::pages::kit::conditions::{channel_names, field_words};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub const fn goal(goal: &Goal) -> &'static str {
    match goal {
        Goal::Acquisition => "Acquisition",
        Goal::Reactivation => "Reactivation",
        Goal::Expansion => "Expansion",
        Goal::Announcement => "Announcement",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub const fn about_goal(goal: &Goal) -> &'static str {
    match goal {
        Goal::Acquisition => "Win new customers: everyone except customers and trials",
        Goal::Reactivation => "Win customers back: everyone except customers and trials",
        Goal::Expansion => "Grow existing customers: customers only",
        Goal::Announcement => "Tell everyone",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub const fn rule(rule: &Rule) -> &'static str {
    match rule {
        Rule::DoNotContact => "Do not contact",
        Rule::CampaignHold => "Reactivated from Do not contact",
        Rule::Customers => "Customers",
        Rule::Trials => "In trial",
        Rule::NotCustomers => "Not customers",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub const fn about_rule(rule: &Rule) -> &'static str {
    match rule {
        Rule::DoNotContact => "Never in any campaign",
        Rule::CampaignHold => "Excluded until someone moves them",
        Rule::Customers => "The goal excludes customers",
        Rule::Trials => "Treated as customers unless trials are included",
        Rule::NotCustomers => "The goal includes only customers",
    }
}

/// The conditions of a filter, as pairs of name and text.
pub fn filters(filter: &Filter, channels: &[Channel], zone: &TimeZone) -> Vec<(&'static str, String)> {
    let mut parts = Vec::new();
    let mut part = |name, text: String| {
        if !text.is_empty() {
            parts.push((name, text));
        }
    };
    part("Search", filter.q.clone().unwrap_or_default());
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.label()).collect();
    part("Stage", statuses.join(", "));
    part("Channel", channel_names(&filter.channels, channels));
    part("Last seen", times(filter.seen, filter.seen_after, filter.seen_before, zone));
    part("Last contact", times(filter.contacted, filter.contacted_after, filter.contacted_before, zone));
    part("Created", since(filter.created_since, filter.created_before, zone));
    part("Tracked", yes_or_no(filter.tracked));
    part("Overdue", yes_or_no(filter.overdue));
    part("Custom fields", field_words(&filter.fields));
    part("Imported id", filter.imported_id.clone().unwrap_or_default());
    part("On campaign hold", yes_or_no(filter.campaign_hold));
    parts
}

fn yes_or_no(flag: Option<bool>) -> String {
    flag.map_or("", |flag| if flag { "yes" } else { "no" }).to_owned()
}

fn times(ever: Option<bool>, after: Option<Time>, before: Option<Time>, zone: &TimeZone) -> String {
    let ever = ever.map(|ever| if ever { "ever" } else { "never" }.to_owned());
    let after = after.map(|time| format!("after {}", moment(time, zone)));
    let before = before.map(|time| format!("before {}", moment(time, zone)));
    [ever, after, before].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn since(since: Option<Time>, before: Option<Time>, zone: &TimeZone) -> String {
    let since = since.map(|time| format!("since {}", moment(time, zone)));
    let before = before.map(|time| format!("before {}", moment(time, zone)));
    [since, before].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// A time as text, or only its day if the day starts then.
fn moment(time: Time, zone: &TimeZone) -> String {
    let at = Zoned::new(time.to_timestamp(), zone.clone());
    let pattern = if Time::start_of_day(at.date(), zone) == time { "%-d %b %Y" } else { "%-d %b %Y, %H:%M" };
    at.strftime(pattern).to_string()
}

/// The address of the list of accounts that match a filter.
pub fn accounts(filter: &Filter) -> String {
    let mut query = Serializer::new(String::new());
    if let Value::Object(members) = filter.to_json() {
        for (name, value) in members.iter().filter(|(name, _)| *name != "fields") {
            match value {
                Value::Array(values) => {
                    query.extend_pairs(values.iter().filter_map(Value::as_str).map(|value| (name, value)));
                }
                Value::String(text) => {
                    query.append_pair(name, text);
                }
                value => {
                    query.append_pair(name, &value.to_string());
                }
            }
        }
    }
    for field in &filter.fields {
        match &field.test {
            FieldTest::Is(values) => {
                query.extend_pairs(values.iter().map(|value| (format!("field.{}", field.key), value)));
            }
            FieldTest::BeginsWith(text) => {
                query.append_pair(&format!("field_prefix.{}", field.key), text);
            }
            FieldTest::Exists => {
                query.append_pair("has_field", &field.key);
            }
        }
    }
    format!("/accounts?{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapport_domain::audience::FieldFilter;
    use rapport_domain::pipeline::Status;

    fn filter() -> Filter {
        let field = |key: &str, test| FieldFilter { key: key.to_owned(), test };
        Filter {
            q: Some("a&b".to_owned()),
            statuses: vec![Status::Lost, Status::InTrial],
            seen_before: Time::parse("2026-05-11T22:00:00Z").ok(),
            contacted: Some(false),
            fields: vec![
                field("plan", FieldTest::Is(vec!["pro".to_owned(), "team".to_owned()])),
                field("city", FieldTest::BeginsWith("Ber".to_owned())),
                field("vat", FieldTest::Exists),
            ],
            ..Filter::default()
        }
    }

    #[test]
    fn filters_are_told_in_words() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let told: Vec<String> = filters(&filter(), &[], &zone)
            .into_iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        let expected = [
            "Search: a&b",
            "Stage: Lost, In trial",
            "Last seen: before 12 May 2026",
            "Last contact: never",
            "Custom fields: plan is pro or team, city begins with Ber, vat exists",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_filter_leads_to_its_accounts() {
        let expected = "/accounts?contacted=false&q=a%26b&seen_before=2026-05-11T22%3A00%3A00Z&status=lost\
                        &status=in_trial&field.plan=pro&field.plan=team&field_prefix.city=Ber&has_field=vat";
        assert_eq!(accounts(&filter()), expected);
    }
}
