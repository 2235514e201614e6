//! Notices: mails to a person when something about their login changes. Each says what happened, when and from where,
//! and what to do if it wasn't them.
//!
//! A new notice is a variant with its words. Send it in the transaction that makes the change.

use jiff::Zoned;
use rapport_domain::history::Actor;
use rapport_domain::id::PersonId;
use rapport_domain::mail::{Kind, NOTICE_DAYS, one_line};
use rapport_domain::member::Role;
use rapport_domain::second_factor::Factor;
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
    PasswordReset {
        proved: bool,
    },
    /// A token that acts for the person.
    TokenCreated {
        name: &'a str,
        role: Role,
        by: Option<&'a str>,
    },
    /// Somebody logged in with a browser that never did before.
    NewBrowser,
    /// All sessions but the one that asked for it, or a single one.
    SessionsEnded {
        all: bool,
    },
    /// A second factor. Passkeys have names.
    FactorAdded {
        factor: Factor,
        name: Option<&'a str>,
    },
    FactorRemoved {
        factor: Factor,
        name: Option<&'a str>,
    },
    /// All second factors, by an owner of this company or on the server.
    FactorsReset {
        by: Option<&'a str>,
    },
    RecoveryCodesCreated,
    RecoveryCodeUsed {
        left: i64,
    },
    /// Somebody who knows the password tried too many codes.
    CodesRefused {
        wrong: i64,
    },
}

/// What to do about somebody else's second factor. It would outlive a new password.
const FOREIGN_FACTOR: &str = "If this wasn't you, choose a new password now. That logs out everyone else. Then look at \
                              the ways to log in on your profile page, and remove those that aren't yours. If you \
                              can't log in any more, ask an owner of your company or the administrator of this \
                              server.";

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
            Self::FactorAdded { factor, name } => Words {
                subject: "A way to log in was added",
                what: format!(
                    "{} was added to your login, and your other sessions were logged out.",
                    factor_words(*factor, *name)
                ),
                advice: FOREIGN_FACTOR,
                link: FORGOTTEN,
            },
            Self::FactorRemoved { factor, name } => Words {
                subject: "A way to log in was removed",
                what: format!(
                    "{} was removed from your login, and your other sessions were logged out.",
                    factor_words(*factor, *name)
                ),
                advice: FOREIGN_FACTOR,
                link: FORGOTTEN,
            },
            Self::FactorsReset { by } => Words {
                subject: "Your second factor was reset",
                what: format!(
                    "{} removed all passkeys, the authenticator app and the recovery codes from your login, and all your \
                     sessions were logged out.",
                    by.map_or_else(
                        || "The server's administrator".to_owned(),
                        |company| format!("An owner of {}", one_line(company))
                    )
                ),
                advice: "If you didn't expect this, choose a new password now, and ask them why.",
                link: FORGOTTEN,
            },
            Self::RecoveryCodesCreated => Words {
                subject: "New recovery codes",
                what: "New recovery codes were made for your login. The old ones no longer work.".to_owned(),
                advice: FOREIGN_FACTOR,
                link: FORGOTTEN,
            },
            Self::RecoveryCodeUsed { left } => Words {
                subject: "A recovery code was used",
                what: format!("Somebody logged in as you with a recovery code. Unused codes left: {left}."),
                advice: FOREIGN_FACTOR,
                link: FORGOTTEN,
            },
            Self::CodesRefused { wrong } => Words {
                subject: "Somebody knows your password",
                what: format!(
                    "Somebody who knows your password tried {wrong} wrong codes. Codes from your authenticator app are \
                     refused until you log in with a recovery code or a passkey."
                ),
                advice: "If this wasn't you, choose a new password now.",
                link: FORGOTTEN,
            },
        }
    }
}

fn factor_words(factor: Factor, name: Option<&str>) -> String {
    match (factor, name) {
        (Factor::Passkey, Some(name)) => format!("The passkey “{}”", one_line(name)),
        (Factor::Passkey, None) => "A passkey".to_owned(),
        (Factor::Totp, _) => "An authenticator app".to_owned(),
        (Factor::RecoveryCode, _) => "A recovery code".to_owned(),
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
