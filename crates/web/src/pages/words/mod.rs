//! Numbers, money and times as text.

pub mod money;
pub mod number;
pub mod total;
pub mod when;
pub mod worth;
