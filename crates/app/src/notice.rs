//! Notices: mails to a person when something about their login changes. Each says what happened, when and from where,
//! and what to do if it wasn't them.
//!
//! A new notice is a variant with its words. Send it in the transaction that makes the change.

use jiff::Zoned;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::mail::{Kind, NOTICE_DAYS, one_line};
use rapport_domain::member::Role;
use rapport_store::{Tx, member};

use crate::command::Context;
use crate::letter::{self, NoticeFields};
use crate::mail::{self, Recipient};

/// The page that mails a link for a new password.
const FORGOTTEN: (&str, &str) = ("Choose a new password", "/forgotten");
const PROFILE: (&str, &str) = ("Look at your sessions", "/profile");

/// What changed about somebody's login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice<'a> {
    /// By somebody who knew the old password.
    PasswordChanged,
    /// With a link. One that came by mail can also have proved the address.
    PasswordReset { proved: bool },
    /// A token that acts for the person.
    TokenCreated { name: &'a str, role: Role, by: Option<&'a str> },
    /// Somebody logged in with a browser that never did before.
    NewBrowser,
    /// All sessions but the one that asked for it, or a single one.
    SessionsEnded { all: bool },
}

/// The words of a notice.
struct Words {
    subject: &'static str,
    what: String,
    advice: &'static str,
    /// The text and the path of the link that helps.
    link: (&'static str, &'static str),
}

impl Notice<'_> {
    fn words(&self) -> Words {
        match self {
            Self::PasswordChanged => Words {
                subject: "Your password was changed",
                what: "Your password was changed, and your other sessions were logged out.".to_owned(),
                advice: "If this wasn't you, choose a new password now. That logs out everyone else.",
                link: FORGOTTEN,
            },
            Self::PasswordReset { proved } => Words {
                subject: "Your password was reset",
                what: format!(
                    "A new password was chosen with a link, and all your sessions were logged out.{}",
                    if *proved { " This also confirmed that this address is yours." } else { "" }
                ),
                advice: "If this wasn't you, somebody else may read your mail: secure your mailbox, then choose a new \
                         password.",
                link: FORGOTTEN,
            },
            Self::TokenCreated { name, role, by } => Words {
                subject: "An API token was created in your name",
                what: format!(
                    "{} created the API token “{}” in your name. It can do what the role {} allows, as long as you \
                     can.",
                    by.map_or_else(|| "Somebody".to_owned(), one_line),
                    one_line(name),
                    role.as_str()
                ),
                advice: "If you didn't expect this, revoke the token, or ask an admin to do so. Then choose a new \
                         password.",
                link: FORGOTTEN,
            },
            Self::NewBrowser => Words {
                subject: "New login",
                what: "Somebody logged in as you with a browser that we didn't know.".to_owned(),
                advice: "If this was you, there is nothing to do. If it wasn't, choose a new password now. That logs \
                         out everyone else.",
                link: FORGOTTEN,
            },
            Self::SessionsEnded { all } => Words {
                subject: "You were logged out elsewhere",
                what: if *all {
                    "All your sessions but one were logged out.".to_owned()
                } else {
                    "One of your sessions was logged out.".to_owned()
                },
                advice: "If this wasn't you, somebody else is logged in as you: choose a new password now. That logs \
                         out everyone.",
                link: PROFILE,
            },
        }
    }
}

/// Mails a person what changed about their login. Without mail, nothing is sent.
pub(crate) fn send(
    tx: &mut Tx,
    cx: &Context,
    person: PersonId,
    notice: Notice,
) -> Result<(), rapport_store::Error> {
    if !cx.outside().mail_configured {
        return Ok(());
    }
    let Some((email, name)) = member::address(tx, person)? else { return Ok(()) };
    let Words { subject, what, advice, link: (text, path) } = notice.words();
    let zone = cx.settings().time_zone.clone();
    let letter = letter::notice(NoticeFields {
        subject,
        name,
        company: cx.company().name.clone(),
        what,
        when: Zoned::new(cx.now.to_timestamp(), zone).strftime("%-d %b %Y, %H:%M %Z").to_string(),
        from: origin(cx),
        advice,
        link: text,
        url: format!("{}{path}", cx.outside().base_url),
    });
    // It is about the login, so it is also sent if the person leaves the company meanwhile.
    let recipients = vec![Recipient { email, member: None }];
    mail::write(tx, cx, Kind::Notice, letter, recipients, cx.now.plus_days(NOTICE_DAYS)).map(drop)
}

/// Where the change came from, in words.
fn origin(cx: &Context) -> String {
    match (cx.origin, cx.address_text(), cx.actor()) {
        (Some(origin), Some(address), _) => format!("{address}, {}", origin.device),
        (_, _, Actor::CommandLine) => "the server's command line".to_owned(),
        _ => "an unknown address".to_owned(),
    }
}
