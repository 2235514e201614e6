//! `rapport mail`: tests the mail server, without the database.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use rapport_app::{Clock as _, Random as _};
use rapport_domain::id::{IdSequence, MailId};

use super::print;
use crate::cli::{MailCommand, TestMail};
use crate::clock::{OsRandom, SystemClock};
use crate::config::Config;
use crate::mailing;
use crate::outbound::Outbound;

pub fn run(config: &Config, command: &MailCommand) -> anyhow::Result<ExitCode> {
    match command {
        MailCommand::Test(arguments) => test(config, arguments),
    }
}

fn test(config: &Config, arguments: &TestMail) -> anyhow::Result<ExitCode> {
    let Some(mailer) = mailing::mailer(config, &Outbound::load(config)?)? else {
        bail!("mail is not configured: set --smtp-url and --mail-from");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("failed to start the runtime")?;
    let now = SystemClock::new().now();
    let mut random = [0; 10];
    OsRandom::new().fill(&mut random);
    let id: MailId = IdSequence::default().next(now, random);
    let recipient = arguments.recipient.as_str();
    let sent = runtime.block_on(mailer.send_test(id, recipient, now));
    sent.map_err(|failure| anyhow!("{} did not accept the mail: {}", config.smtp_url.value, failure.error))?;
    print(&format!("{} accepted the mail for {recipient}.\n", config.smtp_url.value))
}
