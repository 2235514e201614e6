//! What the API and the pages have in common: both ask the same questions and send the same files.
//!
//! - `parameters`: query parameters and cursors. `paging`: pages cut from a list. `subject`: ids in paths.
//! - `account_filter`, `client_list`: the questions that both ask.
//! - `lookup`: what a domain's home page says. `catalogue`: the events that webhooks deliver. `prose`: texts with `code`.
//!   `documentation`: what the API's documentation says.
//! - `audit`, `export`, `error_file`, `full_export`, `own_data`: files, sent as they are read. `paged_file`: what they are
//!   made with.

pub mod account_filter;
pub mod audit;
pub mod catalogue;
pub mod client_list;
pub mod documentation;
pub mod error_file;
pub mod export;
pub mod full_export;
pub mod lookup;
pub mod own_data;
pub mod paged_file;
pub mod paging;
pub mod parameters;
pub mod prose;
pub mod subject;

use rapport_app::Needs;
use rapport_domain::right::Right;

pub const READ: Needs = Needs::Right(Right::Read);
pub const WORK: Needs = Needs::Right(Right::Work);
pub const EXPORT: Needs = Needs::Right(Right::Export);
pub const DELETE: Needs = Needs::Right(Right::Delete);
pub const IMPORT: Needs = Needs::Right(Right::Import);
pub const WEBHOOKS: Needs = Needs::Right(Right::Webhooks);
pub const KEYS: Needs = Needs::Right(Right::Keys);
pub const MEMBERS: Needs = Needs::Right(Right::Members);
pub const SETTINGS: Needs = Needs::Right(Right::Settings);
pub const AUDIT: Needs = Needs::Right(Right::Audit);
pub const SSO: Needs = Needs::Right(Right::Sso);
pub const ACCOUNT_DATA: Needs = Needs::Right(Right::AccountData);
pub const COMPANY: Needs = Needs::Right(Right::Company);
/// A person who may still have to show or set up a second factor.
pub const LOGIN: Needs = Needs::Login;

/// Turns a detail, which is written to follow a field's name, into a sentence.
pub fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
