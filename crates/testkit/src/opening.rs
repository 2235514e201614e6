//! Opening databases on a loaded machine.

use std::time::Instant;

use rapport_store::{Config, Error, Store};

use crate::sight::PATIENCE;

/// Opens a database. A server on a loaded machine may take longer to accept a connection than the store waits.
pub fn open(config: &Config) -> Store {
    let since = Instant::now();
    loop {
        match Store::open(config) {
            Err(Error::Unavailable(_)) if since.elapsed() < PATIENCE => {}
            opened => return opened.expect("a database that opens"),
        }
    }
}
