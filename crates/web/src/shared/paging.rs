//! Pages of a list, in the form that every list of the API returns.

use serde::Serialize;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Send it as `cursor` to get the next page. Null on the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Cuts a page from a list that was read completely: the items that follow `after` in the list's order.
    pub fn cut<K: Ord>(
        items: Vec<T>,
        key: impl Fn(&T) -> K,
        after: Option<&K>,
        limit: i64,
        write_cursor: impl FnOnce(K) -> String,
    ) -> Self {
        let limit = usize::try_from(limit).unwrap_or(0);
        let mut items: Vec<T> =
            items.into_iter().filter(|item| after.is_none_or(|after| key(item) < *after)).collect();
        items.sort_unstable_by_key(|item| std::cmp::Reverse(key(item)));
        let more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = items.last().filter(|_| more).map(|last| write_cursor(key(last)));
        Self { items, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cut_from_a_list_cover_it_newest_first() {
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let page =
                Page::cut(vec![3, 1, 5, 2, 4], |item| *item, after.as_ref(), 2, |key: i32| key.to_string());
            seen.extend(page.items);
            let Some(cursor) = page.next_cursor else { break };
            after = Some(cursor.parse().unwrap());
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
    }
}
