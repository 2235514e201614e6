//! The encrypted columns. This is the only list of them: the vault seals for an [`Owner`] and for nothing else, so
//! a new encrypted column needs a variant here, and then changing the key reaches it too.

use rapport_domain::id::{MailId, PersonId, ResponseId, SsoId, WebhookId};

use crate::error::Error;
use crate::statement::{Statement, statements};
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    company WEBHOOKS = "SELECT id, secret FROM webhook WHERE company = $1 AND id > $2 ORDER BY id LIMIT $3";
    company HEADERS = "SELECT id, header_secrets FROM webhook WHERE company = $1 AND id > $2 ORDER BY id LIMIT $3";
    company LINKS = "SELECT id, secret FROM mail_content WHERE company = $1 AND id > $2 ORDER BY id LIMIT $3";
    reference APPS = "SELECT person, secret FROM totp WHERE person > $1 ORDER BY person LIMIT $2";
    company CLIENTS = "SELECT id, secret FROM sso WHERE company = $1 AND id > $2 ORDER BY id LIMIT $3";
    company RESPONSES = "SELECT id, secret FROM kept_response WHERE company = $1 AND id > $2 ORDER BY id LIMIT $3";
    company REPLACE_WEBHOOK = "UPDATE webhook SET secret = $4 WHERE company = $1 AND id = $2 AND secret = $3";
    company REPLACE_HEADERS = "UPDATE webhook SET header_secrets = $4 \
                               WHERE company = $1 AND id = $2 AND header_secrets = $3";
    company REPLACE_LINK = "UPDATE mail_content SET secret = $4 WHERE company = $1 AND id = $2 AND secret = $3";
    reference REPLACE_APP = "UPDATE totp SET secret = $3 WHERE person = $1 AND secret = $2";
    company REPLACE_CLIENT = "UPDATE sso SET secret = $4 WHERE company = $1 AND id = $2 AND secret = $3";
    company REPLACE_RESPONSE = "UPDATE kept_response SET secret = $4 WHERE company = $1 AND id = $2 AND secret = $3";
}

/// The row that an encrypted secret belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// What a webhook's deliveries are signed with.
    Webhook(WebhookId),
    /// The values of a webhook's secret headers.
    WebhookHeaders(WebhookId),
    /// The secret of the link in a mail that has not been sent yet.
    MailLink(MailId),
    /// What a person's authenticator app makes its codes from.
    Totp(PersonId),
    /// What we log in with at a company's identity provider.
    SsoClient(SsoId),
    /// A kept response that contains a secret, such as a new token.
    Response(ResponseId),
}

impl Owner {
    /// For each encrypted column, an owner before all others.
    pub const BEFORE_ALL: [Self; 6] = [
        Self::Webhook(WebhookId::from_bytes([0; 16])),
        Self::WebhookHeaders(WebhookId::from_bytes([0; 16])),
        Self::MailLink(MailId::from_bytes([0; 16])),
        Self::Totp(PersonId::from_bytes([0; 16])),
        Self::SsoClient(SsoId::from_bytes([0; 16])),
        Self::Response(ResponseId::from_bytes([0; 16])),
    ];

    /// Whether each company has secrets of its own in the column. The others are read once, in no company.
    pub const fn is_of_company(self) -> bool {
        match self {
            Self::Webhook(_)
            | Self::WebhookHeaders(_)
            | Self::MailLink(_)
            | Self::SsoClient(_)
            | Self::Response(_) => true,
            Self::Totp(_) => false,
        }
    }

    /// The table and the column that the secret is in.
    pub const fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Webhook(_) => ("webhook", "secret"),
            Self::WebhookHeaders(_) => ("webhook", "header_secrets"),
            Self::MailLink(_) => ("mail_content", "secret"),
            Self::Totp(_) => ("totp", "secret"),
            Self::SsoClient(_) => ("sso", "secret"),
            Self::Response(_) => ("kept_response", "secret"),
        }
    }
}

/// An encrypted secret, or the place of one that is no longer needed.
#[derive(Debug, Clone)]
pub struct Sealed {
    pub owner: Owner,
    pub secret: Option<Vec<u8>>,
}

/// The next secrets of the same column, in the order of their owners: those of the company, if each has its own.
pub fn after(snapshot: &mut Snapshot, owner: Owner, limit: i64) -> Result<Vec<Sealed>, Error> {
    match owner {
        Owner::Webhook(id) => {
            let rows = snapshot.query(&WEBHOOKS, values![&id, limit])?.into_iter();
            rows.map(|mut row| Ok(Sealed { owner: Owner::Webhook(row.take()?), secret: row.take()? }))
                .collect()
        }
        Owner::WebhookHeaders(id) => {
            let rows = snapshot.query(&HEADERS, values![&id, limit])?.into_iter();
            rows.map(|mut row| Ok(Sealed { owner: Owner::WebhookHeaders(row.take()?), secret: row.take()? }))
                .collect()
        }
        Owner::MailLink(id) => {
            let rows = snapshot.query(&LINKS, values![&id, limit])?.into_iter();
            rows.map(|mut row| Ok(Sealed { owner: Owner::MailLink(row.take()?), secret: row.take()? }))
                .collect()
        }
        Owner::Totp(person) => {
            let rows = snapshot.query(&APPS, values![&person, limit])?.into_iter();
            rows.map(|mut row| Ok(Sealed { owner: Owner::Totp(row.take()?), secret: row.take()? })).collect()
        }
        Owner::SsoClient(id) => {
            let rows = snapshot.query(&CLIENTS, values![&id, limit])?.into_iter();
            rows.map(|mut row| Ok(Sealed { owner: Owner::SsoClient(row.take()?), secret: row.take()? }))
                .collect()
        }
        Owner::Response(id) => {
            let rows = snapshot.query(&RESPONSES, values![&id, limit])?.into_iter();
            rows.map(|mut row| Ok(Sealed { owner: Owner::Response(row.take()?), secret: row.take()? }))
                .collect()
        }
    }
}

/// Replaces a secret by the same one encrypted anew, unless it has changed since it was read.
pub fn replace(tx: &mut Tx, owner: Owner, before: &[u8], sealed: &[u8]) -> Result<(), Error> {
    let mut run = |statement: &Statement, id: &[u8]| tx.execute(statement, values![id, before, sealed]);
    match owner {
        Owner::Webhook(id) => run(&REPLACE_WEBHOOK, id.as_bytes())?,
        Owner::WebhookHeaders(id) => run(&REPLACE_HEADERS, id.as_bytes())?,
        Owner::MailLink(id) => run(&REPLACE_LINK, id.as_bytes())?,
        Owner::Totp(person) => run(&REPLACE_APP, person.as_bytes())?,
        Owner::SsoClient(id) => run(&REPLACE_CLIENT, id.as_bytes())?,
        Owner::Response(id) => run(&REPLACE_RESPONSE, id.as_bytes())?,
    };
    Ok(())
}
