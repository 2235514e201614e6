//! What the API and the pages have in common: both ask the same questions and send the same files.
//!
//! - `parameters`: query parameters and cursors. `paging`: pages cut from a list. `subject`: ids in paths.
//! - `account_filter`, `client_list`: the questions that both ask.
//! - `lookup`: what a domain's home page says.
//! - `audit`, `export`, `error_file`: files, sent as they are read. `csv`, `paged_file`: what they are made with.

pub mod account_filter;
pub mod audit;
pub mod client_list;
pub mod csv;
pub mod error_file;
pub mod export;
pub mod lookup;
pub mod paged_file;
pub mod paging;
pub mod parameters;
pub mod subject;

use rapport_app::Needs;
use rapport_domain::member::Role;

pub const MEMBER: Needs = Needs::Role(Role::Member);
pub const ADMIN: Needs = Needs::Role(Role::Admin);
