//! The id of a request: sent back to its caller, and found in logs and in the audit log.

use std::fmt::{self, Write as _};

const MAX_BYTES: usize = 64;

/// A short plain word, kept in place so that passing it on allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl RequestId {
    /// A caller's own id, if it is up to 64 letters, digits, `-`, `_` and `.`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if text.is_empty() || text.len() > MAX_BYTES || !text.iter().all(is_plain) {
            return None;
        }
        let mut id = Self::EMPTY;
        id.push(text);
        Some(id)
    }

    /// The id of a process's nth request.
    pub fn numbered(process: u32, number: u64) -> Self {
        let mut id = Self::EMPTY;
        // Always fits: at most 25 characters.
        let _ = write!(id, "{process:08x}-{number:x}");
        id
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    const EMPTY: Self = Self { bytes: [0; MAX_BYTES], length: 0 };

    fn push(&mut self, text: &[u8]) {
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }
}

impl fmt::Write for RequestId {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.length + text.len() > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.push(text.as_bytes());
        Ok(())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_plain_word_is_taken_over() {
        let longest = "x".repeat(MAX_BYTES);
        for good in ["a", "abc-1", "0af7651916cd43dd8448eb211c80319c", "A_b.C", &longest] {
            assert_eq!(RequestId::parse(good.as_bytes()).expect(good).as_str(), good);
        }
        let too_long = "x".repeat(MAX_BYTES + 1);
        for bad in ["", "a b", "a<b>", "a\nb", "é", "a/b", "a=b", "\"", &too_long] {
            assert_eq!(RequestId::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn our_own_ids_are_such_words_too() {
        assert_eq!(RequestId::numbered(0x1a, 0x2b).as_str(), "0000001a-2b");
        let last = RequestId::numbered(u32::MAX, u64::MAX);
        assert_eq!(RequestId::parse(last.as_str().as_bytes()), Some(last));
    }
}
