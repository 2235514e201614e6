//! Which site a browser says that a request comes from.

use axum::http::HeaderMap;

const SITE: &str = "sec-fetch-site";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// Our own pages.
    Ours,
    /// The person: an address they typed, a bookmark.
    Person,
    /// Another site, or another host of the same one.
    Other,
}

/// None for programs and for browsers too old to tell.
pub fn site(headers: &HeaderMap) -> Option<Site> {
    let value = headers.get(SITE)?.to_str().ok()?;
    Some(match value {
        "same-origin" => Site::Ours,
        "none" => Site::Person,
        _ => Site::Other,
    })
}
