//! Figures drawn as SVG on the server, each with what it says in words.

pub mod phases;
pub mod success;
