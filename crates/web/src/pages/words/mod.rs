//! Numbers, money and times as text.

pub mod browser;
pub mod money;
pub mod number;
pub mod total;
pub mod when;
