//! Reads which clients an API request or a page address asks for.

use rapport_app::App;
use rapport_app::read::clients::{ListClients, Place, Tab};
use rapport_domain::id::AccountId;

use crate::edge::problem::Problem;
use crate::shared::parameters::{Parameters, read_cursor, write_cursor};

pub fn question(app: &App, mut parameters: Parameters) -> Result<ListClients, Problem> {
    let tab = parameters.optional("tab", Tab::parse).unwrap_or(Tab::Overdue);
    let after = parameters.cursor(|text| read_place(tab, text));
    let limit = parameters.limit();
    parameters.finish()?;
    Ok(ListClients { tab, after, limit, now: app.now() })
}

/// A cursor is only valid in its own tab.
const fn list_of(tab: Tab) -> u8 {
    match tab {
        Tab::Overdue => b'1',
        Tab::DueSoon => b'2',
        Tab::Snoozed => b'3',
        Tab::Tracked => b'4',
    }
}

pub fn write_place(tab: Tab, place: Place) -> String {
    let key = place.key.to_be_bytes();
    write_cursor(list_of(tab), &[key.as_slice(), place.account.as_bytes()].concat())
}

fn read_place(tab: Tab, text: &str) -> Option<Place> {
    let place: [u8; 24] = read_cursor(list_of(tab), text)?;
    let (key, account) = place.split_first_chunk::<8>()?;
    Some(Place { key: i64::from_be_bytes(*key), account: AccountId::from_bytes(account.try_into().ok()?) })
}
