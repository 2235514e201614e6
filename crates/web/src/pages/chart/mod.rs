//! Figures drawn as SVG on the server, each with what it says in words.

pub mod days;
pub mod phases;
pub mod sparkline;
pub mod stages;
pub mod success;
