//! How far things are counted before "more than" is said. Exact figures of large sets cost more than they are worth.

/// What a page shows at a glance, such as the number on a tab.
pub const ON_A_PAGE: i64 = 1_000;
/// What a list or an audience says about itself.
pub const IN_A_LIST: i64 = 10_000;
/// What a bulk operation is going to touch.
pub const IN_BULK: i64 = 100_000;
