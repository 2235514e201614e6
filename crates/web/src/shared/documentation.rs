//! The content of the API's documentation, which the pages show within their navigation to a person who is logged in.

use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Documentation {
    /// HTML that we rendered ourselves.
    pub content: Arc<str>,
    pub stylesheet: &'static str,
}
