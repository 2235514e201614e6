//! The filters of the list in words, each with a link that removes it.

use rapport_domain::channel::Channel;
use rapport_domain::pipeline::Status;

use crate::pages::accounts::asked::Asked;
use crate::pages::words::when::date;

/// A filter in words.
pub struct Chip {
    pub text: String,
    /// The list without this filter.
    pub href: String,
}

pub fn chips(asked: &Asked, channels: &[Channel]) -> Vec<Chip> {
    let chip = |(name, value): (&str, &str)| Chip {
        text: words(name, value, channels),
        href: asked.without(name, value),
    };
    asked.filters().map(chip).collect()
}

fn words(name: &str, value: &str, channels: &[Channel]) -> String {
    if let Some(key) = name.strip_prefix("field.") {
        return format!("{key} is “{value}”");
    }
    if let Some(key) = name.strip_prefix("field_prefix.") {
        return format!("{key} begins with “{value}”");
    }
    let either = |yes: &str, no: &str| match value {
        "true" => yes.to_owned(),
        "false" => no.to_owned(),
        other => format!("{yes}: {other}"),
    };
    match name {
        "q" => format!("“{value}”"),
        "status" => {
            Status::parse(value).map_or_else(|_| value.to_owned(), |status| status.label().to_owned())
        }
        "channel" => {
            let known = channels.iter().find(|channel| channel.id.to_string() == value);
            format!("Channel: {}", known.map_or("unknown", |channel| channel.name.as_str()))
        }
        "imported_id" => format!("Imported id: {value}"),
        "overdue" => either("Overdue", "Not overdue"),
        "tracked" => either("In a tracked stage", "Not in a tracked stage"),
        "seen" => either("Seen", "Never seen"),
        "contacted" => either("Contacted", "Never contacted"),
        "campaign_hold" => either("Held back from campaigns", "Not held back from campaigns"),
        "seen_after" => format!("Last seen since {}", day(value)),
        "seen_before" => format!("Last seen before {}", day(value)),
        "contacted_after" => format!("Last contact since {}", day(value)),
        "contacted_before" => format!("Last contact before {}", day(value)),
        "created_since" => format!("Created since {}", day(value)),
        "created_before" => format!("Created before {}", day(value)),
        "has_field" => format!("Has {value}"),
        "import" => "From one import".to_owned(),
        "import_effect" if value == "created" => "Created by the import".to_owned(),
        "import_effect" if value == "changed" => "Changed by the import".to_owned(),
        name => format!("{name}: {value}"),
    }
}

fn day(value: &str) -> String {
    let day = value.parse().ok().filter(|_| value.len() == 10);
    day.map_or_else(|| value.to_owned(), date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_read_as_words() {
        let query = "q=keller&status=in_trial&overdue=true&seen=false&contacted_before=2026-05-12&created_since=2026-05-04&has_field=vat&field.plan=pro";
        let imported = Asked::of_query("import=imp_1&import_effect=changed");
        let imported: Vec<String> = chips(&imported, &[]).into_iter().map(|chip| chip.text).collect();
        assert_eq!(imported, ["From one import", "Changed by the import"]);
        let asked = Asked::of_query(query);
        let texts: Vec<String> = chips(&asked, &[]).into_iter().map(|chip| chip.text).collect();
        let expected = [
            "“keller”",
            "In trial",
            "Overdue",
            "Never seen",
            "Last contact before 12 May 2026",
            "Created since 4 May 2026",
            "Has vat",
            "plan is “pro”",
        ];
        assert_eq!(texts, expected);
        assert_eq!(
            chips(&Asked::of_query("overdue=maybe"), &[])[0].text,
            "Overdue: maybe",
            "as it was asked"
        );
        assert_eq!(chips(&asked, &[])[7].href, asked.href().replace("&field.plan=pro", ""));
    }
}
