//! The text of mails, rendered from templates as plain text and HTML. Names from outside appear as text on
//! one line, whatever they contain.

pub(crate) mod address;
pub(crate) mod deletion;

use askama::Template;
use rapport_domain::digest::MAX_NAMED;
use rapport_domain::invitation::{INVITATION_DAYS, INVITATION_PATH, link};
use rapport_domain::mail::{SECRET_PLACE, one_line};
use rapport_domain::member::Role;
use rapport_domain::password_reset::{RESET_PATH, RESET_SECONDS};
use rapport_store::clients::CappedCount;

/// A mail before it is addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub subject: String,
    pub plain: String,
    pub html: String,
    /// The secret that replaces the placeholder in its link when it is sent.
    pub secret: Option<String>,
}

impl Letter {
    fn render(subject: String, plain: &impl Template, html: &impl Template) -> Self {
        let (plain, html) = (rendered(plain), rendered(html));
        Self { subject: one_line(&subject), plain, html, secret: None }
    }

    fn with_secret(self, secret: &str) -> Self {
        Self { secret: Some(secret.to_owned()), ..self }
    }
}

fn rendered(template: &impl Template) -> String {
    template.render().expect("writing to a string can't fail")
}

/// An overdue client as listed in a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueClient {
    pub name: String,
    pub days_overdue: i64,
    pub url: String,
}

impl OverdueClient {
    fn days(&self) -> String {
        match self.days_overdue {
            0 => "due today".to_owned(),
            1 => "1 day overdue".to_owned(),
            days => format!("{days} days overdue"),
        }
    }
}

struct DigestFields {
    company: String,
    clients: Vec<OverdueClient>,
    overdue: String,
    more: Option<String>,
    clients_url: String,
    settings_url: String,
}

#[derive(Template)]
#[template(path = "mail/digest.txt")]
struct DigestPlain<'a> {
    letter: &'a DigestFields,
}

#[derive(Template)]
#[template(path = "mail/digest.html")]
struct DigestHtml<'a> {
    letter: &'a DigestFields,
}

/// The weekly digest; `clients` are the most overdue of the `overdue` ones.
pub(crate) fn digest(
    base_url: &str,
    company: &str,
    clients: Vec<OverdueClient>,
    overdue: &CappedCount,
) -> Letter {
    let company = one_line(company);
    let clients: Vec<OverdueClient> = clients
        .into_iter()
        .take(MAX_NAMED)
        .map(|client| OverdueClient { name: one_line(&client.name), ..client })
        .collect();
    let shown = |count: i64| format!("{count}{}", if overdue.capped { "+" } else { "" });
    let subject = match overdue.count {
        0 => format!("{company}: nobody is overdue for contact"),
        1 => format!("{company}: 1 client is overdue for contact"),
        count => format!("{company}: {} clients are overdue for contact", shown(count)),
    };
    let more = overdue.count - i64::try_from(clients.len()).unwrap_or(0);
    let fields = DigestFields {
        company,
        clients,
        overdue: shown(overdue.count),
        more: (more > 0).then(|| shown(more)),
        clients_url: format!("{base_url}/clients"),
        settings_url: format!("{base_url}/settings/digest"),
    };
    Letter::render(subject, &DigestPlain { letter: &fields }, &DigestHtml { letter: &fields })
}

struct InvitationFields {
    company: String,
    invited_by: Option<String>,
    role: &'static str,
    url: String,
    days: i64,
}

#[derive(Template)]
#[template(path = "mail/invitation.txt")]
struct InvitationPlain<'a> {
    letter: &'a InvitationFields,
}

#[derive(Template)]
#[template(path = "mail/invitation.html")]
struct InvitationHtml<'a> {
    letter: &'a InvitationFields,
}

pub(crate) fn invitation(
    base_url: &str,
    company: &str,
    invited_by: Option<&str>,
    role: Role,
    secret: &str,
) -> Letter {
    let fields = InvitationFields {
        company: one_line(company),
        invited_by: invited_by.map(one_line),
        role: role.as_str(),
        url: link(base_url, INVITATION_PATH, SECRET_PLACE),
        days: INVITATION_DAYS,
    };
    let subject = format!("Join {} on Rapport", fields.company);
    Letter::render(subject, &InvitationPlain { letter: &fields }, &InvitationHtml { letter: &fields })
        .with_secret(secret)
}

struct ResetFields {
    name: String,
    company: String,
    url: String,
    minutes: i64,
}

#[derive(Template)]
#[template(path = "mail/password_reset.txt")]
struct ResetPlain<'a> {
    letter: &'a ResetFields,
}

#[derive(Template)]
#[template(path = "mail/password_reset.html")]
struct ResetHtml<'a> {
    letter: &'a ResetFields,
}

/// `company` tells logins with the same address apart.
pub(crate) fn password_reset(base_url: &str, name: &str, company: &str, secret: &str) -> Letter {
    let url = link(base_url, RESET_PATH, SECRET_PLACE);
    let (name, company) = (one_line(name), one_line(company));
    let fields = ResetFields { name, company, url, minutes: RESET_SECONDS / 60 };
    let subject = "Choose a new password for Rapport".to_owned();
    Letter::render(subject, &ResetPlain { letter: &fields }, &ResetHtml { letter: &fields })
        .with_secret(secret)
}

struct DisabledFields {
    company: String,
    webhook: String,
    failures: i64,
    url: String,
}

#[derive(Template)]
#[template(path = "mail/webhook_disabled.txt")]
struct DisabledPlain<'a> {
    letter: &'a DisabledFields,
}

#[derive(Template)]
#[template(path = "mail/webhook_disabled.html")]
struct DisabledHtml<'a> {
    letter: &'a DisabledFields,
}

/// `webhook` is the name people know it by: its description or its host, without a query that may contain
/// secrets.
pub(crate) fn webhook_disabled(base_url: &str, company: &str, webhook: &str, failures: i64) -> Letter {
    let fields = DisabledFields {
        company: one_line(company),
        webhook: one_line(webhook),
        failures,
        url: format!("{base_url}/webhooks"),
    };
    let subject = format!("{}: a webhook was disabled", fields.company);
    Letter::render(subject, &DisabledPlain { letter: &fields }, &DisabledHtml { letter: &fields })
}

struct BreakGlassFields {
    company: String,
    name: String,
    /// Where they logged in from.
    address: Option<String>,
    url: String,
}

#[derive(Template)]
#[template(path = "mail/break_glass_used.txt")]
struct BreakGlassPlain<'a> {
    letter: &'a BreakGlassFields,
}

#[derive(Template)]
#[template(path = "mail/break_glass_used.html")]
struct BreakGlassHtml<'a> {
    letter: &'a BreakGlassFields,
}

/// Tells the owners that one of them logged in without single sign-on.
pub(crate) fn break_glass_used(base_url: &str, company: &str, name: &str, address: Option<&str>) -> Letter {
    let fields = BreakGlassFields {
        company: one_line(company),
        name: one_line(name),
        address: address.map(one_line),
        url: format!("{base_url}/settings/audit"),
    };
    let subject = format!("{}: {} logged in without single sign-on", fields.company, fields.name);
    Letter::render(subject, &BreakGlassPlain { letter: &fields }, &BreakGlassHtml { letter: &fields })
}

struct TestFields {
    company: String,
    url: String,
}

#[derive(Template)]
#[template(path = "mail/test.txt")]
struct TestPlain<'a> {
    letter: &'a TestFields,
}

#[derive(Template)]
#[template(path = "mail/test.html")]
struct TestHtml<'a> {
    letter: &'a TestFields,
}

pub(crate) fn test(base_url: &str, company: &str) -> Letter {
    let fields = TestFields { company: one_line(company), url: format!("{base_url}/settings/mail") };
    let subject = "Test mail from Rapport".to_owned();
    Letter::render(subject, &TestPlain { letter: &fields }, &TestHtml { letter: &fields })
}

/// The text of a notice about somebody's login.
pub(crate) struct NoticeFields {
    pub subject: &'static str,
    pub name: String,
    pub company: String,
    pub what: String,
    pub when: String,
    pub from: String,
    pub advice: &'static str,
    /// The text of the link that helps.
    pub link: &'static str,
    pub url: String,
}

#[derive(Template)]
#[template(path = "mail/notice.txt")]
struct NoticePlain<'a> {
    letter: &'a NoticeFields,
}

#[derive(Template)]
#[template(path = "mail/notice.html")]
struct NoticeHtml<'a> {
    letter: &'a NoticeFields,
}

pub(crate) fn notice(fields: NoticeFields) -> Letter {
    let (name, company) = (one_line(&fields.name), one_line(&fields.company));
    let fields = NoticeFields { name, company, ..fields };
    let subject = format!("{} on Rapport", fields.subject);
    Letter::render(subject, &NoticePlain { letter: &fields }, &NoticeHtml { letter: &fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://crm.acme.test";

    fn exactly(count: i64) -> CappedCount {
        CappedCount { count, capped: false }
    }

    fn client(number: i64, name: &str) -> OverdueClient {
        let url = format!("{BASE}/accounts/{number}");
        OverdueClient { name: name.to_owned(), days_overdue: number, url }
    }

    #[test]
    fn a_digest_names_the_most_overdue_and_counts_the_rest() {
        let clients = (0..60).map(|number| client(60 - number, &format!("Client {number}"))).collect();
        let letter = digest(BASE, "Acme", clients, &exactly(1_234));
        assert_eq!(letter.subject, "Acme: 1234 clients are overdue for contact");
        for text in [&letter.plain, &letter.html] {
            assert!(text.contains("Client 0") && text.contains("60 days overdue"), "{text}");
            assert!(text.contains("Client 49") && !text.contains("Client 50"), "{text}");
            assert!(text.contains("and 1184 more"), "{text}");
            assert!(text.contains("https://crm.acme.test/accounts/60"), "{text}");
            assert!(text.contains("https://crm.acme.test/clients"), "{text}");
        }
        let (first, second) =
            (letter.plain.find("Client 0").unwrap(), letter.plain.find("Client 1").unwrap());
        assert!(first < second);
    }

    #[test]
    fn with_nobody_overdue_it_says_so_in_a_line() {
        let letter = digest(BASE, "Acme", Vec::new(), &exactly(0));
        assert_eq!(letter.subject, "Acme: nobody is overdue for contact");
        for text in [&letter.plain, &letter.html] {
            assert!(text.contains("Nobody is overdue for contact."), "{text}");
            assert!(!text.contains("more"), "{text}");
        }
    }

    #[test]
    fn more_than_are_counted_are_said_to_be_more() {
        let count = CappedCount { count: 10_000, capped: true };
        let letter = digest(BASE, "Acme", vec![client(1, "Nordlys")], &count);
        assert_eq!(letter.subject, "Acme: 10000+ clients are overdue for contact");
        assert!(letter.plain.contains("and 9999+ more"), "{}", letter.plain);
    }

    #[test]
    fn one_is_one() {
        let letter = digest(BASE, "Acme", vec![client(1, "Nordlys")], &exactly(1));
        assert!(letter.subject.contains("1 client is overdue"), "{}", letter.subject);
        assert!(
            letter.plain.contains("1 day overdue") && !letter.plain.contains("1 days"),
            "{}",
            letter.plain
        );
        assert!(!letter.plain.contains("more"), "{}", letter.plain);
    }

    #[test]
    fn names_are_text_whatever_they_contain() {
        let odd = "<script>alert(1)</script>\r\nBcc: x@y.test & \"q\" \u{202e}שלום🎉{{ 7*7 }}";
        let letter = digest(BASE, "A<b>\nme", vec![client(3, odd)], &exactly(1));
        assert!(!letter.subject.contains(['\r', '\n']), "{:?}", letter.subject);
        assert!(!letter.html.contains("<script>"), "{}", letter.html);
        assert!(
            letter.html.contains("&#60;script&#62;") || letter.html.contains("&lt;script&gt;"),
            "{}",
            letter.html
        );
        assert!(letter.plain.contains("<script>alert(1)</script> Bcc: x@y.test & \"q\" שלום🎉{{ 7*7 }}"));
        assert!(!letter.plain.contains('\u{202e}') && !letter.html.contains('\u{202e}'));
    }

    #[test]
    fn a_secret_is_not_in_what_is_kept() {
        let letters = [
            (invitation(BASE, "Acme", Some("Ana"), Role::Admin, "rjn_secret"), INVITATION_PATH),
            (password_reset(BASE, "Ana", "Acme", "rpw_secret"), RESET_PATH),
        ];
        for (letter, path) in letters {
            let place = format!("{BASE}{path}{SECRET_PLACE}");
            for text in [&letter.plain, &letter.html] {
                assert!(text.contains(&place), "{text}");
                assert!(!text.contains("_secret"), "{text}");
            }
            assert!(letter.secret.unwrap().ends_with("_secret"));
        }
    }

    #[test]
    fn owners_are_told_who_logged_in_without_single_sign_on() {
        let letter = break_glass_used(BASE, "Acme", "Ana <b>", Some("203.0.113.9"));
        assert_eq!(letter.subject, "Acme: Ana <b> logged in without single sign-on");
        for text in [&letter.plain, &letter.html] {
            assert!(
                text.contains("203.0.113.9") && text.contains(&format!("{BASE}/settings/audit")),
                "{text}"
            );
        }
        assert!(letter.plain.contains("Ana <b>") && !letter.html.contains("Ana <b>"), "{}", letter.html);
        assert!(!break_glass_used(BASE, "Acme", "Ana", None).plain.contains("from"));
    }

    #[test]
    fn a_notice_says_which_webhook() {
        let letter = webhook_disabled(BASE, "Acme", "CRM <sync>", 20);
        assert_eq!(letter.subject, "Acme: a webhook was disabled");
        assert!(letter.plain.contains("CRM <sync>") && letter.plain.contains("20"), "{}", letter.plain);
        assert!(!letter.html.contains("<sync>"), "{}", letter.html);
        assert!(letter.plain.contains(&format!("{BASE}/webhooks")), "{}", letter.plain);
        assert_eq!(letter.secret, None);
    }

    #[test]
    fn a_notice_says_what_when_from_where_and_what_to_do() {
        let letter = notice(NoticeFields {
            subject: "New login",
            name: "Ana\r\nBcc: x@y.test".to_owned(),
            company: "A<b>me".to_owned(),
            what: "“<i>CRM</i>” was created.".to_owned(),
            when: "5 Jan 2026, 10:00 CET".to_owned(),
            from: "192.0.2.7, Firefox on Linux".to_owned(),
            advice: "If it wasn't you, choose a new password.",
            link: "Choose a new password",
            url: format!("{BASE}/forgotten"),
        });
        assert_eq!(letter.subject, "New login on Rapport");
        for text in [&letter.plain, &letter.html] {
            for part in ["Ana Bcc: x@y.test", "5 Jan 2026, 10:00 CET", "192.0.2.7, Firefox on Linux"] {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(
                text.contains("choose a new password.") && text.contains(&format!("{BASE}/forgotten")),
                "{text}"
            );
        }
        assert!(letter.plain.contains("“<i>CRM</i>” was created.") && letter.plain.contains("A<b>me"));
        assert!(!letter.html.contains("<i>") && !letter.html.contains("A<b>me"), "{}", letter.html);
        assert_eq!(letter.secret, None);
    }
}
