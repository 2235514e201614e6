//! Mail in the background: sends due mails and records each outcome. Any number of nodes may do this at once.
//! A mail is claimed with a lease, so two nodes send it only if one was gone for minutes.

use std::sync::Arc;
use std::time::Duration;

use rapport_app::job_report::Job;
use rapport_app::mail::{Outgoing, record, take_due};
use rapport_app::password_reset::answer_requests;
use rapport_app::{App, Error, metric};
use rapport_domain::id::CompanyId;
use rapport_store::mail::companies_due;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::mailer::{Letter, Mailer};
use crate::rounds::{Rounds, unless_deleted};

/// How often it checks for due mail, unless some was just written.
pub const EVERY: Duration = Duration::from_secs(5);
/// Concurrent mails, each over its own connection: more would look like an attack to some servers.
const AT_ONCE: usize = 4;

/// Runs until `stop`, and then finishes the mails in progress. Without a mailer it only handles reset
/// requests.
pub async fn run(app: App, mailer: Option<Arc<Mailer>>, stop: CancellationToken, every: Duration) {
    let mut rounds =
        Rounds::of(Job::Mail, &app, &stop).woken_by(app.services().mail_written(), Duration::ZERO);
    while rounds.begin() {
        let ended = round(&app, mailer.as_ref(), &stop).await;
        rounds.pause(ended, every).await;
    }
}

async fn round(app: &App, mailer: Option<&Arc<Mailer>>, stop: &CancellationToken) -> Result<(), Error> {
    answer_requests(app).await?;
    let Some(mailer) = mailer else { return Ok(()) };
    loop {
        let now = app.now();
        let companies = app.read_across(move |across| companies_due(across, now)).await?;
        let mut sent = 0;
        // Companies take turns with a few mails each, so that one company's digest doesn't wait for another's
        // hundred members.
        for company in companies {
            if stop.is_cancelled() {
                return Ok(());
            }
            sent += unless_deleted(some_of(app, mailer, company).await)?;
        }
        if sent == 0 {
            return Ok(());
        }
    }
}

/// Sends a few of a company's mails at once; returns how many were tried.
async fn some_of(app: &App, mailer: &Arc<Mailer>, company: CompanyId) -> Result<usize, Error> {
    let limit = i64::try_from(AT_ONCE).unwrap_or(1);
    let taken = take_due(app, company, limit).await?;
    let count = taken.len();
    let mut under_way = JoinSet::new();
    for mail in taken {
        let (app, mailer) = (app.clone(), Arc::clone(mailer));
        under_way.spawn(async move { one(&app, &mailer, company, mail).await });
    }
    while let Some(ended) = under_way.join_next().await {
        match ended {
            Ok(recorded) => recorded?,
            Err(panic) => tracing::error!(%panic, "sending a mail panicked"),
        }
    }
    Ok(count)
}

async fn one(app: &App, mailer: &Mailer, company: CompanyId, mail: Outgoing) -> Result<(), Error> {
    let id = mail.id.to_string();
    let letter = Letter {
        id: &id,
        recipient: mail.recipient.as_str(),
        subject: &mail.subject,
        plain: &mail.plain,
        html: &mail.html,
        date: mail.date,
    };
    let outcome = mailer.send(letter).await;
    let label = if outcome.is_ok() { "sent" } else { "failed" };
    metric::MAIL_ATTEMPTS.counter([label.into()]).increment(1);
    match &outcome {
        Ok(()) => tracing::info!(company = company.0, %id, "mail sent"),
        Err(failure) => {
            let (permanent, error) = (failure.permanent, &failure.error);
            tracing::warn!(company = company.0, %id, permanent, %error, "failed to send a mail");
        }
    }
    record(app, company, &mail, outcome).await
}
