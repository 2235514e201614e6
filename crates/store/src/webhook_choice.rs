//! What a webhook filters by and the headers it adds. They are apart from the rest of a webhook, because an attempt's
//! outcome reads and writes that, and has nothing to do with these.

use rapport_domain::event_filter::EventFilter;
use rapport_domain::id::WebhookId;
use rapport_domain::time::Time;
use rapport_domain::webhook_header::{self, Header};

use crate::error::Error;
use crate::statement::statements;
use crate::subscription;
use crate::tx::{Snapshot, Tx};
use crate::values;

statements! {
    company GET = "SELECT filters, headers FROM webhook WHERE company = $1 AND deleted_at IS NULL AND id = $2";
    company SEALED = "SELECT header_secrets FROM webhook WHERE company = $1 AND deleted_at IS NULL AND id = $2";
    company SET_FILTERS = "UPDATE webhook SET filters = $3 WHERE company = $1 AND id = $2";
    company SET_HEADERS = "UPDATE webhook SET headers = $3, header_secrets = $4 WHERE company = $1 AND id = $2";
}

/// The filter and the headers of a webhook, without the values of secret headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    pub filter: EventFilter,
    pub headers: Vec<Header>,
}

/// The choice of a webhook; an empty one if there is no such webhook.
pub fn get(snapshot: &mut Snapshot, id: WebhookId) -> Result<Choice, Error> {
    let Some(mut row) = snapshot.query_opt(&GET, values![&id])? else { return Ok(Choice::default()) };
    let (filters, headers): (String, String) = (row.take()?, row.take()?);
    Ok(Choice { filter: EventFilter::from_stored(&filters), headers: webhook_header::from_stored(&headers) })
}

/// The encrypted values of the secret headers, which only the vault can decrypt.
pub fn sealed_headers(snapshot: &mut Snapshot, id: WebhookId) -> Result<Option<Vec<u8>>, Error> {
    let found: Option<Option<Vec<u8>>> =
        snapshot.query_opt(&SEALED, values![&id])?.map(|mut row| row.take()).transpose()?;
    Ok(found.flatten())
}

pub fn set_filter(tx: &mut Tx, id: WebhookId, filter: &EventFilter, now: Time) -> Result<(), Error> {
    tx.execute(&SET_FILTERS, values![&id, &filter.to_stored()])?;
    subscription::renew(tx, now)
}

pub fn set_headers(
    tx: &mut Tx,
    id: WebhookId,
    headers: &[Header],
    sealed: Option<&[u8]>,
) -> Result<(), Error> {
    tx.execute(&SET_HEADERS, values![&id, &webhook_header::to_stored(headers), sealed])?;
    Ok(())
}
