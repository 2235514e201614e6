//! How much goes on at once. Anyone can start a login, so a provider that never answers must not hold up the others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rapport_domain::sso::Issuer;

const AT_ONCE: usize = 32;
const AT_ONCE_WITH_ONE: usize = 8;

#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<HashMap<String, usize>>>);

/// Ends when it is dropped.
pub struct Turn {
    turns: Turns,
    issuer: String,
}

impl Turns {
    pub fn take(&self, issuer: &Issuer) -> Option<Turn> {
        let mut taken = self.0.lock();
        let all: usize = taken.values().sum();
        let own = taken.get(issuer.as_str()).copied().unwrap_or(0);
        if all >= AT_ONCE || own >= AT_ONCE_WITH_ONE {
            return None;
        }
        taken.insert(issuer.as_str().to_owned(), own + 1);
        Some(Turn { turns: self.clone(), issuer: issuer.as_str().to_owned() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = self.turns.0.lock();
        match taken.get_mut(&self.issuer) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.issuer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_provider_does_not_take_every_turn() {
        let issuer = |number: usize| Issuer::from_stored(format!("https://{number}.test"));
        let turns = Turns::default();
        let mut taken: Vec<Turn> = (0..AT_ONCE_WITH_ONE).map(|_| turns.take(&issuer(0)).unwrap()).collect();
        assert!(turns.take(&issuer(0)).is_none());
        taken.extend((AT_ONCE_WITH_ONE..AT_ONCE).map(|number| turns.take(&issuer(number)).unwrap()));
        assert!(turns.take(&issuer(99)).is_none());
        taken.remove(0);
        assert!(turns.take(&issuer(99)).is_some());
        drop(taken);
        assert!(turns.0.lock().is_empty(), "nothing is left behind");
    }
}
