//! A mail server for an office, and the mails it received.

use std::thread;
use std::time::{Duration, Instant};

use rapport_testkit::{MailSecurity, MailServer, PATIENCE, ReceivedMail};

use crate::office::Office;

/// The paths of links in mails.
pub const INVITATION: &str = "/invitation/";
pub const RESET: &str = "/password-reset/";
pub const EMAIL_CHANGE: &str = "/email-change/";
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub struct Mailbox(MailServer);

impl Mailbox {
    /// A mail server, and an office that sends through it.
    pub fn with_office() -> (Self, Office) {
        let mailbox = Self(MailServer::start(MailSecurity::Plain));
        let office = Office::open_with(&mailbox.options().each_ref().map(String::as_str));
        (mailbox, office)
    }

    /// The options of a program that sends through it.
    pub fn options(&self) -> [String; 4] {
        let url = format!("smtp+plain://127.0.0.1:{}", self.0.port());
        ["--smtp-url", &url, "--mail-from", "Rapport <rapport@acme.test>"].map(str::to_owned)
    }

    /// The mail with this number, the first being 1, once it is there. Notices about logins have their own numbers.
    pub fn mail(&self, number: usize) -> ReceivedMail {
        self.wait_for(number, |mail| !is_notice(mail))
    }

    /// The notice with this number.
    pub fn notice(&self, number: usize) -> ReceivedMail {
        self.wait_for(number, is_notice)
    }

    fn wait_for(&self, number: usize, is_wanted: impl Fn(&ReceivedMail) -> bool) -> ReceivedMail {
        let since = Instant::now();
        loop {
            let mut found: Vec<ReceivedMail> = self.0.received().into_iter().filter(&is_wanted).collect();
            if found.len() >= number {
                return found.swap_remove(number - 1);
            }
            assert!(since.elapsed() < PATIENCE, "{} of {number} mails arrived", found.len());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Answers every further mail with this reply.
    pub fn refuse(&self, answer: &str) {
        self.0.refuse(Some(answer));
    }

    /// How many mails arrived, without notices.
    pub fn count(&self) -> usize {
        self.0.received().iter().filter(|mail| !is_notice(mail)).count()
    }
}

/// Only notices tell when something happened.
fn is_notice(mail: &ReceivedMail) -> bool {
    mail.plain.contains("\nWhen: ") || mail.plain.contains("\r\nWhen: ")
}

/// The link to one of our pages in a mail.
pub fn link(mail: &ReceivedMail, path: &str) -> String {
    let mut words = mail.plain.split_whitespace();
    let found = words.find(|word| word.starts_with("http") && word.contains(path));
    found.unwrap_or_else(|| panic!("no link to {path} in:\n{}", mail.plain)).to_owned()
}
