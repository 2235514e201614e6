//! Lookup by domain: fetches a home page, reads it, shows it, and creates an account from it.

use std::future::{Future, ready};
use std::pin::Pin;

use rapport_domain::account::Account;
use rapport_domain::custom_fields::FieldChange;
use rapport_domain::destination::Destination;
use rapport_domain::invalid::Fault;
use rapport_domain::lookup::{Create, Preview};
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::right::Right;
use rapport_store::{Tx, account, account_site};

use crate::Answer;
use crate::access::Needs;
use crate::account::record_created;
use crate::command::{Command, Context};
use crate::error::Error;
use crate::outbox::Outbox;

/// Fetches home pages. It owns the sockets and decides where it may connect.
pub trait HomePages: Send + Sync + 'static {
    fn fetch<'a>(
        &'a self,
        page: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<Fetched, FetchError>> + Send + 'a>>;
}

/// For a process that has no sockets of its own.
pub(crate) struct NoHomePages;

impl HomePages for NoHomePages {
    fn fetch<'a>(
        &'a self,
        _: &'a Destination,
    ) -> Pin<Box<dyn Future<Output = Result<Fetched, FetchError>> + Send + 'a>> {
        Box::pin(ready(Err(FetchError::Own("this process can't fetch pages".to_owned()))))
    }
}

/// A page as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its address after redirects.
    pub at: Destination,
    pub content_type: Option<String>,
    /// The beginning of the page.
    pub body: Vec<u8>,
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// There was no answer, for the reason given. The reason is for the log only: with it, the caller could use
    /// lookups to explore the network that the service runs in.
    #[error("we couldn't load a page from this domain; check that its site is public and works over https")]
    Unreachable(String),
    #[error("the page returned status {0}")]
    Answered(u16),
    #[error("the site didn't return an HTML page")]
    NotHtml,
    #[error("the page redirects too many times")]
    TooManyRedirects,
    #[error("{0}")]
    BadRedirect(String),
    /// Too many lookups are in progress.
    #[error("too many lookups are in progress")]
    Busy,
    /// A fault on our side, not the page's.
    #[error("we can't fetch pages right now: {0}")]
    Own(String),
}

impl FetchError {
    /// What is wrong with the domain, unless the fault is ours.
    pub fn fault(&self) -> Option<Fault> {
        let code = match self {
            Self::Unreachable(_) => "unreachable",
            Self::Answered(_) => "no_page",
            Self::NotHtml => "not_html",
            Self::TooManyRedirects => "too_many_redirects",
            Self::BadRedirect(_) => "bad_redirect",
            Self::Busy | Self::Own(_) => return None,
        };
        Some(Fault::new(code, self.to_string()))
    }
}

/// Creates an account from what a lookup showed.
pub struct CreateFromLookup {
    pub preview: Preview,
    pub create: Create,
}

impl Command for CreateFromLookup {
    type Reply = Answer<Account>;
    const NEEDS: Needs = Needs::Right(Right::Work);

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<Answer<Account>, Error> {
        let Self { preview, create } = self;
        if let Some(known) = account_site::find(tx, &preview.domain)? {
            let detail = format!("this domain already has an account: {known}");
            return Err(Error::conflict("domain_taken", detail));
        }
        let name = create.name.as_ref().unwrap_or(&preview.name).clone();
        let status = create.status.unwrap_or(Status::Prospect);
        let mut made = Account::new(cx.id(), name, status, cx.now);
        let found = FieldChange::parse(&preview.fields())?;
        made.custom_fields = made.custom_fields.merged(&found)?.merged(&create.custom_fields)?;
        account::insert(tx, &[&made])?;
        if !account_site::insert(tx, &preview.domain, made.id)? {
            // Another request came first.
            return Err(rapport_store::Error::Again.into());
        }
        let mut outbox = Outbox::default();
        outbox.created(cx, &made, Source::Lookup);
        outbox.write(tx, cx)?;
        record_created(tx, cx, &made)?;
        Ok(Answer { reply: made, company: cx.company().clone(), now: cx.now })
    }
}
