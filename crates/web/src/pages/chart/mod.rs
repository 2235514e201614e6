//! Charts drawn as SVG on the server, each with a text alternative.

pub mod days;
pub mod phases;
pub mod sparkline;
pub mod stages;
pub mod success;
