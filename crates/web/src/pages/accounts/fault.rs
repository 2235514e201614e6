//! Faults in the query of the list, which the page shows above the filters.

use crate::edge::problem::Problem;
use crate::pages::accounts::asked::TIMES;
use crate::shared::sentence;

/// An invalid parameter.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The label of the filter.
    pub name: String,
    pub text: String,
}

pub fn faults(problem: &Problem) -> Vec<Fault> {
    let fault = |pointer: &str, detail: &str| Fault { name: label(pointer), text: words(pointer, detail) };
    let mut faults: Vec<Fault> = Vec::new();
    for error in problem.errors() {
        let fault = fault(&error.pointer, &error.detail);
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

fn label(name: &str) -> String {
    if let Some(key) = name.strip_prefix("field.").or_else(|| name.strip_prefix("field_prefix.")) {
        return if key.is_empty() { "Custom field".to_owned() } else { format!("Custom field {key}") };
    }
    let label = match name {
        "q" => "Search",
        "status" => "Status",
        "channel" => "Channel",
        "imported_id" => "Imported id",
        "overdue" => "Overdue",
        "tracked" => "Tracked",
        "seen" => "Seen",
        "contacted" => "Contacted",
        "campaign_hold" => "Campaign hold",
        "seen_after" => "Last seen since",
        "seen_before" => "Last seen before",
        "contacted_after" => "Last contact since",
        "contacted_before" => "Last contact before",
        "created_since" => "Created since",
        "created_before" => "Created before",
        "has_field" | "field" => "Custom field",
        "import" | "import_effect" => "Import",
        "cursor" => "Page",
        name => name,
    };
    label.to_owned()
}

/// The API's message, or a friendlier one where we have one.
fn words(name: &str, detail: &str) -> String {
    match name {
        "cursor" => "This link doesn’t lead to a page of this list.".to_owned(),
        name if TIMES.iter().any(|ending| name.ends_with(ending)) => {
            "Must be a date such as 2026-05-12, or an ISO 8601 time.".to_owned()
        }
        _ => sentence(detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::accounts::asked::Asked;
    use jiff::tz::TimeZone;

    fn said(query: &str) -> Vec<String> {
        let asked = Asked::of_query(query);
        let problem = asked.filter(&TimeZone::UTC).map(|_| ()).and(asked.place().map(|_| ()));
        let faults = faults(&problem.expect_err("a fault"));
        faults.into_iter().map(|fault| format!("{}: {}", fault.name, fault.text)).collect()
    }

    #[test]
    fn faults_are_named_as_the_fields_are() {
        assert_eq!(said("overdue=maybe"), ["Overdue: Must be true or false."]);
        assert_eq!(said("channel=x&channel=y"), ["Channel: Must be a channel id."]);
        assert_eq!(said("cursor=zzz"), ["Page: This link doesn’t lead to a page of this list."]);
        let day = "Must be a date such as 2026-05-12, or an ISO 8601 time.";
        assert_eq!(said("seen_after=soon"), [format!("Last seen since: {day}")]);
        assert_eq!(said("field.a=%00").len(), 1);
    }
}
