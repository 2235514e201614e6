//! Readers of what others write: mails and home pages. Bytes in, domain values out; no I/O, no clock, and no
//! input that makes them panic or run away.

pub mod html;
pub mod mail;
pub mod page;
mod repair;
