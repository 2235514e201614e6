//! Mails about the deletion of a company, to its owners and admins.

use askama::Template;
use rapport_domain::company::Company;
use rapport_domain::company_deletion::Deletion;
use rapport_domain::mail::one_line;

use super::Letter;

const ADMINISTRATOR: &str = "The server's administrator";

struct DeletionFields {
    company: String,
    by: String,
    /// The day; `None` if the deletion was cancelled.
    day: Option<String>,
    url: String,
}

#[derive(Template)]
#[template(path = "mail/company_deletion.txt")]
struct DeletionPlain<'a> {
    letter: &'a DeletionFields,
}

#[derive(Template)]
#[template(path = "mail/company_deletion.html")]
struct DeletionHtml<'a> {
    letter: &'a DeletionFields,
}

pub(crate) fn requested(base_url: &str, company: &Company, deletion: &Deletion) -> Letter {
    let day = deletion.at.day_in(&company.settings.time_zone).date().strftime("%-d %B %Y").to_string();
    let subject = format!("{} will be deleted on {day}", one_line(&company.name));
    write(base_url, company, subject, deletion.requested_by.as_deref(), Some(day))
}

pub(crate) fn cancelled(base_url: &str, company: &Company, by: Option<&str>) -> Letter {
    write(base_url, company, format!("{} won't be deleted", one_line(&company.name)), by, None)
}

fn write(
    base_url: &str,
    company: &Company,
    subject: String,
    by: Option<&str>,
    day: Option<String>,
) -> Letter {
    let fields = DeletionFields {
        company: one_line(&company.name),
        by: by.map_or_else(|| ADMINISTRATOR.to_owned(), one_line),
        day,
        url: format!("{base_url}/settings/deletion"),
    };
    Letter::render(subject, &DeletionPlain { letter: &fields }, &DeletionHtml { letter: &fields })
}

#[cfg(test)]
mod tests {
    use rapport_domain::company::{Settings, Slug, parse_time_zone};
    use rapport_domain::id::CompanyId;
    use rapport_domain::opt_in::OptIn;
    use rapport_domain::time::Time;

    use super::*;

    #[test]
    fn the_day_is_that_of_the_company() {
        let settings = Settings { time_zone: parse_time_zone("Asia/Tokyo").unwrap(), ..Settings::default() };
        let company = Company {
            id: CompanyId(1),
            slug: Slug::parse("acme").unwrap(),
            name: "Acme & <Sons>".to_owned(),
            settings,
            opt_in: OptIn::default(),
            sample_since: None,
            created_at: Time::from_micros(0),
        };
        let now = Time::parse("2026-01-05T20:00:00Z").unwrap();
        let letter =
            requested("https://crm.acme.test", &company, &Deletion::new(Some("Ana".to_owned()), now));
        assert_eq!(letter.subject, "Acme & <Sons> will be deleted on 20 January 2026");
        for part in ["Ana asked", "20 January 2026", "https://crm.acme.test/settings/deletion"] {
            assert!(letter.plain.contains(part), "{part} is missing in {}", letter.plain);
        }
        assert!(!letter.html.contains("<Sons>"), "{}", letter.html);
        let letter = cancelled("https://crm.acme.test", &company, None);
        assert_eq!(letter.subject, "Acme & <Sons> won't be deleted");
        assert!(letter.plain.contains("The server's administrator cancelled"), "{}", letter.plain);
    }
}
