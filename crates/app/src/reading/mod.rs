//! Readers for text written by others: mails and home pages. Bytes in, domain values out, without I/O or a
//! clock. No input makes them panic or run forever.

pub mod html;
pub mod mail;
pub mod page;
mod repair;
