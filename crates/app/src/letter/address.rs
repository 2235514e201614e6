//! Mails about a new email address. What goes to the new address names nobody: it may be a stranger's, and the
//! person who asked chose their own name.

use askama::Template;
use rapport_domain::address_change::{CHANGE_PATH, CHANGE_SECONDS};
use rapport_domain::invitation;
use rapport_domain::mail::{SECRET_PLACE, one_line};
use rapport_domain::member::Email;

use super::Letter;

/// The same whether or not the address has a login: people who see the list of mails must not learn that.
const LINK_SUBJECT: &str = "Confirm your email address for Rapport";

struct LinkFields {
    to: String,
    url: String,
    minutes: i64,
}

#[derive(Template)]
#[template(path = "mail/address_link.txt")]
struct LinkPlain<'a> {
    letter: &'a LinkFields,
}

#[derive(Template)]
#[template(path = "mail/address_link.html")]
struct LinkHtml<'a> {
    letter: &'a LinkFields,
}

/// The link, to the new address.
pub(crate) fn link(base_url: &str, to: &Email, secret: &str) -> Letter {
    let url = invitation::link(base_url, CHANGE_PATH, SECRET_PLACE);
    let fields = LinkFields { to: one_line(to.as_str()), url, minutes: CHANGE_SECONDS / 60 };
    Letter::render(LINK_SUBJECT.to_owned(), &LinkPlain { letter: &fields }, &LinkHtml { letter: &fields })
        .with_secret(secret)
}

struct KnownFields {
    to: String,
    login_url: String,
    forgotten_url: String,
}

#[derive(Template)]
#[template(path = "mail/address_known.txt")]
struct KnownPlain<'a> {
    letter: &'a KnownFields,
}

#[derive(Template)]
#[template(path = "mail/address_known.html")]
struct KnownHtml<'a> {
    letter: &'a KnownFields,
}

/// In place of the link, to an address that has a login.
pub(crate) fn known(base_url: &str, to: &Email) -> Letter {
    let fields = KnownFields {
        to: one_line(to.as_str()),
        login_url: format!("{base_url}/login"),
        forgotten_url: format!("{base_url}/forgotten"),
    };
    Letter::render(LINK_SUBJECT.to_owned(), &KnownPlain { letter: &fields }, &KnownHtml { letter: &fields })
}

struct NoticeFields {
    name: String,
    from: Option<String>,
    to: String,
    url: String,
}

#[derive(Template)]
#[template(path = "mail/address_notice.txt")]
struct NoticePlain<'a> {
    letter: &'a NoticeFields,
}

#[derive(Template)]
#[template(path = "mail/address_notice.html")]
struct NoticeHtml<'a> {
    letter: &'a NoticeFields,
}

/// To the old address: somebody asked.
pub(crate) fn requested(base_url: &str, name: &str, to: &Email) -> Letter {
    let url = format!("{base_url}/profile");
    notice(
        "Your email address for Rapport may change",
        NoticeFields { name: one_line(name), from: None, to: one_line(to.as_str()), url },
    )
}

/// To the old address: it was changed.
pub(crate) fn changed(base_url: &str, name: &str, from: &Email, to: &Email) -> Letter {
    let (from, url) = (Some(one_line(from.as_str())), format!("{base_url}/login"));
    notice(
        "Your email address for Rapport was changed",
        NoticeFields { name: one_line(name), from, to: one_line(to.as_str()), url },
    )
}

fn notice(subject: &str, fields: NoticeFields) -> Letter {
    Letter::render(subject.to_owned(), &NoticePlain { letter: &fields }, &NoticeHtml { letter: &fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://crm.acme.test";

    fn email(text: &str) -> Email {
        Email::parse(text).unwrap()
    }

    #[test]
    fn the_new_address_gets_a_link_or_learns_why_not() {
        let to = email("ana@new.test");
        let (link, known) = (link(BASE, &to, "rem_secret"), known(BASE, &to));
        assert_eq!(link.subject, known.subject, "the list of mails tells nobody who has a login");
        for text in [&link.plain, &link.html] {
            assert!(text.contains(&format!("{BASE}/email-change/{SECRET_PLACE}")), "{text}");
            assert!(text.contains("60 minutes") && !text.contains("rem_secret"), "{text}");
        }
        for text in [&known.plain, &known.html] {
            assert!(
                text.contains("already has a login") && text.contains(&format!("{BASE}/forgotten")),
                "{text}"
            );
            assert!(!text.contains("/email-change/"), "{text}");
        }
        assert_eq!((link.secret.as_deref(), known.secret), (Some("rem_secret"), None));
    }

    #[test]
    fn the_old_address_is_told_what_to_do() {
        let (from, to) = (email("ana@old.test"), email("ana@new.test"));
        let asked = requested(BASE, "Ana <b>\nRuiz", &to);
        let done = changed(BASE, "Ana <b>\nRuiz", &from, &to);
        for letter in [&asked, &done] {
            assert!(letter.plain.contains("Hello Ana <b> Ruiz,"), "{}", letter.plain);
            assert!(!letter.html.contains("<b>"), "{}", letter.html);
            assert!(letter.plain.contains("ana@new.test") && letter.html.contains("ana@new.test"));
        }
        assert!(asked.plain.contains(&format!("{BASE}/profile")), "{}", asked.plain);
        assert!(done.plain.contains("from ana@old.test to ana@new.test"), "{}", done.plain);
    }
}
