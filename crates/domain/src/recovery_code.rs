//! Recovery codes: for a person who has lost their other second factors. Each works once.
//!
//! A code has 120 random bits, so a fast hash is enough to store it.

use crate::credential::{SecretHash, hash};
use crate::id::base32;

/// How many codes a person gets at once.
pub const RECOVERY_CODES: usize = 10;
pub const CODE_BYTES: usize = 15;
/// Codes are written in groups, so that they are easy to copy by hand.
const GROUP_CHARS: usize = 4;

/// A new code: the only time its text is available.
pub struct NewCode {
    pub text: String,
    pub hash: SecretHash,
}

/// Makes a code from the given randomness.
pub fn make(random: [u8; CODE_BYTES]) -> NewCode {
    let digits = base32().encode(&random);
    let groups: Vec<&str> =
        (0..digits.len()).step_by(GROUP_CHARS).map(|at| &digits[at..at + GROUP_CHARS]).collect();
    NewCode { text: groups.join("-"), hash: hash(&digits) }
}

/// The hash of a typed code, in any case and with or without its hyphens. `None` if it can't be a code.
pub fn read(typed: &str) -> Option<SecretHash> {
    let digits: String = typed.chars().filter(|c| !c.is_whitespace() && *c != '-').map(as_written).collect();
    let bytes = base32().decode(digits.as_bytes()).ok()?;
    (bytes.len() == CODE_BYTES).then(|| hash(&digits))
}

/// Codes contain none of the letters that look like digits.
fn as_written(c: char) -> char {
    match c.to_ascii_lowercase() {
        'o' => '0',
        'i' | 'l' => '1',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let code = make([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(code.text, "000g-40r4-0m30-e209-185g-r38e");
        let typed = [
            "000g-40r4-0m30-e209-185g-r38e",
            "000G40R40M30E209185GR38E",
            " 000g 40r4 0m30 e209 185g r38e ",
            "ooog-40r4-0m30-e209-185g-r38e",
        ];
        for typed in typed {
            assert!(read(typed).is_some_and(|hash| hash.matches(&code.hash)), "{typed}");
        }
        assert!(read("000g-40r4-0m30-e209-185g-r38a").is_some_and(|hash| !hash.matches(&code.hash)));
        for other in [
            "",
            "123456",
            "000g-40r4-0m30-e209-185g-r38",
            "000g-40r4-0m30-e209-185g-r38e0",
            "000g-40r4-0m30-e209-185g-r38u",
            "é",
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }
}
