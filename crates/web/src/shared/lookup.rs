//! Reads the home page of a domain, for the endpoint and the page.

use rapport_app::lookup::FetchError;
use rapport_app::reading::page;
use rapport_app::{App, Error};
use rapport_domain::invalid::Invalid;
use rapport_domain::lookup::{Preview, Site};

/// Reads the home page of a site. The caller must already be verified.
pub async fn preview(app: &App, site: &Site) -> Result<Preview, Error> {
    let fetched = app.services().home_page(&site.page).await.map_err(refused)?;
    let read = tokio::task::spawn_blocking(move || {
        let page = page::read(&fetched.body, fetched.content_type.as_deref(), &fetched.at);
        (fetched.at, page)
    });
    let (at, page) =
        read.await.map_err(|error| Error::Internal(format!("failed to read a page: {error}")))?;
    Ok(Preview::new(site, at.as_str().to_owned(), page))
}

fn refused(error: FetchError) -> Error {
    if let FetchError::Unreachable(reason) = &error {
        tracing::info!(reason, "failed to reach a home page");
    }
    if let Some(fault) = error.fault() {
        return Invalid::one("/domain", fault.code, fault.detail).into();
    }
    tracing::warn!(%error, "failed to fetch a home page");
    Error::Busy
}
