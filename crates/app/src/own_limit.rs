//! The limits that tokens have of their own, from where they are read to where they are enforced.
//!
//! A credential is read in the transaction that it authorises, and requests are counted before that, at the edge. So the
//! check of a credential notes its limit here, and the edge picks it up when it learns that the credential is valid. A
//! token's limit never changes, so the edge may keep it.

use std::collections::HashMap;

use parking_lot::Mutex;
use rapport_domain::credential::SecretHash;

/// As many as the edge counts at once. A few megabytes.
const MAX_NOTED: usize = 65_536;

#[derive(Debug, Default)]
pub struct OwnLimits(Mutex<HashMap<SecretHash, i64>>);

impl OwnLimits {
    pub(crate) fn note(&self, credential: SecretHash, per_second: i64) {
        let mut noted = self.0.lock();
        if noted.len() >= MAX_NOTED
            && !noted.contains_key(&credential)
            && let Some(other) = noted.keys().next().copied()
        {
            // It is noted again when it is next used.
            noted.remove(&other);
        }
        noted.insert(credential, per_second);
    }

    /// The limit of a credential that was just checked, in requests per second, if it has one.
    pub fn of(&self, credential: &SecretHash) -> Option<i64> {
        self.0.lock().get(credential).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(number: usize) -> SecretHash {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        SecretHash::from_bytes(bytes)
    }

    #[test]
    fn a_limit_is_found_and_memory_is_bounded() {
        let limits = OwnLimits::default();
        assert_eq!(limits.of(&credential(1)), None);
        for number in 0..MAX_NOTED + 100 {
            limits.note(credential(number), 5);
            assert_eq!(limits.of(&credential(number)), Some(5), "the newest is always there");
        }
        assert_eq!(limits.0.lock().len(), MAX_NOTED);
        limits.note(credential(7), 5);
        assert_eq!(limits.of(&credential(7)), Some(5));
    }
}
