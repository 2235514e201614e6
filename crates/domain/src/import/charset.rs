//! The encoding of a file, and how its text is decoded.
//!
//! UTF-8 and the single-byte encodings are stored unchanged: their delimiters, quotes and line ends are
//! single ASCII bytes, so records can be found without decoding, and a wrong guess can be corrected later.
//! Every other encoding (UTF-16, Shift_JIS, …) is converted to UTF-8 on upload.

use std::borrow::Cow;

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::invalid::Fault;

/// An encoding, by its name in the Encoding Standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Charset {
    pub const UTF_8: Self = Self(UTF_8);
    pub const WINDOWS_1252: Self = Self(WINDOWS_1252);

    /// Reads a label such as `utf-8`, `latin1`, `windows-1252` or `utf-16le`.
    pub fn parse(label: &str) -> Result<Self, Fault> {
        Encoding::for_label_no_replacement(label.as_bytes()).map(Self).ok_or_else(|| {
            Fault::new("unknown_encoding", "must be an encoding such as utf-8, windows-1252 or utf-16le")
        })
    }

    /// From storage, which holds only names returned by `name`.
    pub fn from_stored(name: &str) -> Self {
        Self::parse(name).unwrap_or(Self::UTF_8)
    }

    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Whether its bytes are stored unchanged.
    pub fn is_kept(self) -> bool {
        self.0 == UTF_8 || self.0.is_single_byte()
    }

    /// The text of some stored bytes; `None` if they aren't valid in this encoding.
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let kept = if self.is_kept() { self.0 } else { UTF_8 };
        kept.decode_without_bom_handling_and_without_replacement(bytes)
    }

    /// The same, with replacement characters for invalid bytes.
    pub fn decode_lossy(self, bytes: &[u8]) -> Cow<'_, str> {
        let kept = if self.is_kept() { self.0 } else { UTF_8 };
        kept.decode_without_bom_handling(bytes).0
    }
}

/// The first step of an upload: detects the encoding, removes the byte order mark, and converts text that
/// isn't stored unchanged.
pub struct Intake {
    declared: Option<Charset>,
    /// The first bytes, until there are enough to detect the encoding.
    head: Vec<u8>,
    way: Option<Way>,
}

enum Way {
    AsItCame(Utf8Check),
    Declared(Charset),
    Converted(Charset, Box<Decoder>),
}

/// Enough for a byte order mark, or for two characters without one.
const HEAD_BYTES: usize = 4;

impl Intake {
    /// A byte order mark overrides the declared encoding.
    pub fn new(declared: Option<Charset>) -> Self {
        Self { declared, head: Vec::new(), way: None }
    }

    /// Takes the next bytes and appends the bytes to store to `kept`.
    pub fn take(&mut self, bytes: &[u8], kept: &mut Vec<u8>) {
        if self.way.is_some() {
            return self.pass(bytes, kept, false);
        }
        self.head.extend_from_slice(bytes);
        if self.head.len() >= HEAD_BYTES {
            self.decide(kept);
        }
    }

    /// Called after the last byte: appends the rest and returns the encoding.
    pub fn finish(mut self, kept: &mut Vec<u8>) -> Charset {
        if self.way.is_none() {
            self.decide(kept);
        }
        self.pass(&[], kept, true);
        match self.way {
            Some(Way::Declared(charset) | Way::Converted(charset, _)) => charset,
            Some(Way::AsItCame(check)) if check.is_valid_to_the_end() => Charset::UTF_8,
            Some(Way::AsItCame(_)) | None => Charset::WINDOWS_1252,
        }
    }

    fn decide(&mut self, kept: &mut Vec<u8>) {
        let head = std::mem::take(&mut self.head);
        let (charset, mark) = match Encoding::for_bom(&head) {
            Some((found, bytes)) => (Some(Charset(found)), bytes),
            None => (self.declared.or_else(|| utf16_without_mark(&head)), 0),
        };
        self.way = Some(match charset {
            None => Way::AsItCame(Utf8Check::default()),
            Some(charset) if charset.is_kept() => Way::Declared(charset),
            Some(charset) => Way::Converted(charset, Box::new(charset.0.new_decoder_without_bom_handling())),
        });
        self.pass(&head[mark..], kept, false);
    }

    fn pass(&mut self, bytes: &[u8], kept: &mut Vec<u8>, is_last: bool) {
        match &mut self.way {
            Some(Way::AsItCame(check)) => {
                check.take(bytes);
                kept.extend_from_slice(bytes);
            }
            Some(Way::Declared(_)) => kept.extend_from_slice(bytes),
            Some(Way::Converted(_, decoder)) => convert(decoder, bytes, kept, is_last),
            None => {}
        }
    }
}

fn convert(decoder: &mut Decoder, mut bytes: &[u8], kept: &mut Vec<u8>, is_last: bool) {
    const PIECE: usize = 8 << 10;
    let mut piece = [0; PIECE];
    loop {
        let (result, read, written, _) = decoder.decode_to_utf8(bytes, &mut piece, is_last);
        kept.extend_from_slice(&piece[..written]);
        bytes = &bytes[read..];
        if result == CoderResult::InputEmpty {
            return;
        }
    }
}

/// In UTF-16, every second byte of plain text is zero.
fn utf16_without_mark(head: &[u8]) -> Option<Charset> {
    match head {
        [low, 0, next, 0, ..] if *low != 0 && *next != 0 => Some(Charset(UTF_16LE)),
        [0, low, 0, next, ..] if *low != 0 && *next != 0 => Some(Charset(UTF_16BE)),
        _ => None,
    }
}

/// Checks whether bytes that arrive in pieces are UTF-8.
#[derive(Default)]
struct Utf8Check {
    is_broken: bool,
    /// The beginning of a character that continues in the next piece.
    begun: Vec<u8>,
}

impl Utf8Check {
    fn take(&mut self, bytes: &[u8]) {
        if self.is_broken {
            return;
        }
        let joined;
        let bytes = if self.begun.is_empty() {
            bytes
        } else {
            joined = [self.begun.as_slice(), bytes].concat();
            &joined
        };
        let begun = match str::from_utf8(bytes) {
            Ok(_) => Vec::new(),
            Err(error) => {
                self.is_broken = error.error_len().is_some();
                bytes[error.valid_up_to()..].to_vec()
            }
        };
        self.begun = if self.is_broken { Vec::new() } else { begun };
    }

    fn is_valid_to_the_end(&self) -> bool {
        !self.is_broken && self.begun.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes stored of a file that arrives in pieces of this size, and its encoding.
    fn taken(bytes: &[u8], piece: usize, declared: Option<&str>) -> (Vec<u8>, &'static str) {
        let mut intake = Intake::new(declared.map(|label| Charset::parse(label).unwrap()));
        let mut kept = Vec::new();
        for bytes in bytes.chunks(piece) {
            intake.take(bytes, &mut kept);
        }
        let charset = intake.finish(&mut kept);
        (kept, charset.name())
    }

    fn utf16(text: &str, write: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(write).collect()
    }

    #[test]
    fn the_encoding_is_found_whatever_the_pieces() {
        let with_mark = |bytes: &[u8], mark: &[u8]| [mark, bytes].concat();
        let text = "Größe €\r\n";
        let little = utf16(text, u16::to_le_bytes);
        let big = utf16(text, u16::to_be_bytes);
        let table: [(Vec<u8>, &str, &[u8]); 10] = [
            (Vec::new(), "UTF-8", b""),
            (b"a".to_vec(), "UTF-8", b"a"),
            (text.as_bytes().to_vec(), "UTF-8", text.as_bytes()),
            (with_mark(text.as_bytes(), b"\xef\xbb\xbf"), "UTF-8", text.as_bytes()),
            (b"Gr\xf6\xdfe \x80".to_vec(), "windows-1252", b"Gr\xf6\xdfe \x80"),
            (b"ends in half: \xc3".to_vec(), "windows-1252", b"ends in half: \xc3"),
            (with_mark(&little, b"\xff\xfe"), "UTF-16LE", text.as_bytes()),
            (with_mark(&big, b"\xfe\xff"), "UTF-16BE", text.as_bytes()),
            (little, "UTF-16LE", text.as_bytes()),
            (big, "UTF-16BE", text.as_bytes()),
        ];
        for (bytes, name, kept) in table {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(taken(&bytes, piece, None), (kept.to_vec(), name), "{bytes:?} by {piece}");
            }
        }
    }

    #[test]
    fn a_declared_encoding_counts_unless_there_is_a_byte_order_mark() {
        assert_eq!(taken(b"\xe9", 1, Some("iso-8859-2")).1, "ISO-8859-2");
        assert_eq!(taken("é".as_bytes(), 1, Some("latin1")).1, "windows-1252");
        assert_eq!(taken(b"\xef\xbb\xbfabc", 2, Some("latin1")), (b"abc".to_vec(), "UTF-8"));
        assert_eq!(taken(b"\x83\x65", 1, Some("shift_jis")), ("テ".as_bytes().to_vec(), "Shift_JIS"));
    }

    #[test]
    fn text_is_read_in_its_encoding() {
        assert_eq!(Charset::WINDOWS_1252.decode(b"\x80 5").as_deref(), Some("€ 5"));
        assert_eq!(Charset::UTF_8.decode(b"\x80"), None);
        assert_eq!(Charset::UTF_8.decode_lossy(b"\x80"), "\u{fffd}");
        let converted = Charset::parse("utf-16le").unwrap();
        assert!(!converted.is_kept());
        assert_eq!(converted.decode("€".as_bytes()).as_deref(), Some("€"));
        assert!(Charset::parse("klingon").is_err());
    }

    proptest! {
        #[test]
        fn any_text_comes_through(text in "\\PC{0,60}", piece in 1_usize..9) {
            let (kept, name) = taken(text.as_bytes(), piece, Some("utf-8"));
            prop_assert_eq!((kept.as_slice(), name), (text.trim_start_matches('\u{feff}').as_bytes(), "UTF-8"));
        }
    }
}
