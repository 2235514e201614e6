//! Figures drawn as SVG on the server, each with its text alternative.

pub mod days;
pub mod sparkline;
pub mod stages;
