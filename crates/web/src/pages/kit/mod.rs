//! What pages are made of.
//!
//! - `visit`: a request for a page. `action`: a form that was sent, and what becomes of it. `visitor`: who sent it.
//! - `frame`: the frame of every page. `refusal`: error pages. `navigation`: gives them the frame, for who is logged in.
//! - `form`, `draft`: what was typed, and its faults. `replay`: a form that arrives twice is handled once. `flash`: a
//!   message on the next page about what was done. `origin`: only our own pages may send forms. `cookie`.
//!   `known_browser`: where a person has logged in before. `challenge`: what a passkey is asked. `password`: a person's
//!   password, typed again. `conditions`: conditions on custom fields. `proof`: asks for it, or for a passkey, before something sensitive.

pub mod action;
pub mod challenge;
pub mod conditions;
pub mod cookie;
pub mod draft;
pub mod flash;
pub mod form;
pub mod frame;
pub mod known_browser;
pub mod navigation;
pub mod origin;
pub mod password;
pub mod proof;
pub mod refusal;
pub mod replay;
pub mod visit;
pub mod visitor;
