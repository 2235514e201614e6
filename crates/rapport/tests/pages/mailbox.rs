//! A mail server for an office, and the mails it received.

use rapport_testkit::{MailSecurity, MailServer, PATIENCE, ReceivedMail};

use crate::office::Office;

/// The paths of links in mails.
pub const INVITATION: &str = "/invitation/";
pub const RESET: &str = "/password-reset/";

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

    /// The mail with this number, the first being 1, once it is there.
    pub fn mail(&self, number: usize) -> ReceivedMail {
        self.0.wait_for(number, PATIENCE).swap_remove(number - 1)
    }

    /// Answers every further mail with this reply.
    pub fn refuse(&self, answer: &str) {
        self.0.refuse(Some(answer));
    }

    pub fn count(&self) -> usize {
        self.0.received().len()
    }
}

/// The link to one of our pages in a mail.
pub fn link(mail: &ReceivedMail, path: &str) -> String {
    let mut words = mail.plain.split_whitespace();
    let found = words.find(|word| word.starts_with("http") && word.contains(path));
    found.unwrap_or_else(|| panic!("no link to {path} in:\n{}", mail.plain)).to_owned()
}
