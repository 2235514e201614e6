//! Numbers, money and times as people read them.

pub mod browser;
pub mod money;
pub mod number;
pub mod total;
pub mod when;
