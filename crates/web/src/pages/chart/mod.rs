//! Figures drawn as SVG on the server, each with its text alternative.

pub mod days;
pub mod sparkline;
pub mod stages;
//! Figures drawn as SVG on the server, each with what it says in words.
pub mod phases;
pub mod success;
