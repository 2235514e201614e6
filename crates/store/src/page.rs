//! Pages of a list: their size, and whether there are more.

/// The most rows that a page may have.
pub const MAX_LIMIT: i64 = 200;
pub const DEFAULT_LIMIT: i64 = 50;

/// One page, and whether there is more.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub more: bool,
}

impl<T> Page<T> {
    /// Builds a page from up to one row more than was asked for.
    pub fn from_one_more(mut items: Vec<T>, limit: i64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(0);
        let more = items.len() > limit;
        items.truncate(limit);
        Self { items, more }
    }
}
