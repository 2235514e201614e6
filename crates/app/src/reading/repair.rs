//! Repairs a mail before and after it is parsed, so that no words are lost to a sender's mistakes.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;

/// How far to search for the end of an encoded word: the standard allows 75 bytes, senders use more. Without
/// a limit, a header full of beginnings would be searched to its end from each of them.
const MAX_WORD_BYTES: usize = 2_000;
const MAX_CHARSET_BYTES: usize = 64;

/// Returns the message with a header that a strict parser understands: in UTF-8, and with its encoded words
/// whole.
pub fn header(raw: &[u8]) -> Cow<'_, [u8]> {
    let (head, body) = raw.split_at(body_start(raw));
    let text = match str::from_utf8(head) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => decode(head),
    };
    let joined = join_words(&text);
    if matches!((&text, &joined), (Cow::Borrowed(_), Cow::Borrowed(_))) {
        return Cow::Borrowed(raw);
    }
    Cow::Owned([joined.as_bytes(), body].concat())
}

/// Decodes bytes of undeclared encoding the way most programs mean them.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}

/// The text after the header: after the empty line, or from the first line that can't be part of a header.
pub fn body(raw: &[u8]) -> Cow<'_, str> {
    decode(&raw[body_start(raw)..])
}

fn body_start(raw: &[u8]) -> usize {
    let mut at = 0;
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.trim_ascii_end();
        if bare.is_empty() {
            return at + line.len();
        }
        let is_folded = matches!(line.first(), Some(b' ' | b'\t'));
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_named = name.len() < bare.len() && name.trim_ascii_end().iter().all(u8::is_ascii_graphic);
        // Old mailbox formats put a line before the header.
        let is_mailbox = at == 0 && line.starts_with(b"From ");
        if !(is_folded || is_named || is_mailbox) {
            return at;
        }
        at += line.len();
    }
    at
}

/// Joins adjacent encoded words of one kind. Some programs cut a text in the middle of a character, and
/// neither half is valid alone.
fn join_words(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    let mut copied = true;
    while let Some((before, word, after)) = next_word(rest) {
        let mut payload = word.payload.to_owned();
        let mut end = after;
        while let Some(("", next, after)) = next_word(end.trim_start())
            && next.kind.eq_ignore_ascii_case(word.kind)
            && next.can_follow(&payload)
        {
            payload.push_str(next.payload);
            end = after;
            copied = false;
        }
        out.push_str(before);
        out.extend(["=?", word.kind, &payload, "?="]);
        rest = end;
    }
    out.push_str(rest);
    if copied { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

struct Word<'a> {
    /// Charset and encoding, with the question marks after them.
    kind: &'a str,
    payload: &'a str,
}

impl Word<'_> {
    /// Base64 can be joined if the first part has no padding.
    fn can_follow(&self, payload: &str) -> bool {
        let is_base64 = self.kind.len() > 2 && self.kind[self.kind.len() - 2..].eq_ignore_ascii_case("b?");
        !is_base64 || (payload.len().is_multiple_of(4) && !payload.ends_with('='))
    }
}

/// The next encoded word of a text, with the text before and after it.
fn next_word(text: &str) -> Option<(&str, Word<'_>, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("=?") {
        let start = from + found;
        if let Some((word, after)) = word_at(&text[start + 2..]) {
            return Some((&text[..start], word, after));
        }
        from = start + 2;
    }
    None
}

fn word_at(text: &str) -> Option<(Word<'_>, &str)> {
    let charset = beginning(text, MAX_CHARSET_BYTES).find('?')?;
    let kind_end = charset + 3;
    let encoding = text.get(charset + 1..kind_end)?;
    let is_known = ["q?", "b?"].iter().any(|known| encoding.eq_ignore_ascii_case(known));
    let rest = text.get(kind_end..)?;
    let end = beginning(rest, MAX_WORD_BYTES).find("?=")?;
    let payload = &rest[..end];
    let is_word =
        is_known && !text[..charset].contains(char::is_whitespace) && !payload.contains(char::is_whitespace);
    is_word.then(|| (Word { kind: &text[..kind_end], payload }, &rest[end + 2..]))
}

fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn torn_words_are_joined_and_others_left_alone() {
        let table = [
            ("plain text", "plain text"),
            ("=?utf-8?Q?Torn_=E2=82?= =?UTF-8?q?=AC_sign?= end", "=?utf-8?Q?Torn_=E2=82=AC_sign?= end"),
            ("=?utf-8?Q?a?=\r\n =?utf-8?Q?b?=\r\n =?utf-8?Q?c?=", "=?utf-8?Q?abc?="),
            ("=?utf-8?B?YWJj?= =?utf-8?B?ZGVm?=", "=?utf-8?B?YWJjZGVm?="),
            ("=?utf-8?B?YQ==?= =?utf-8?B?Yg==?=", "=?utf-8?B?YQ==?= =?utf-8?B?Yg==?="),
            ("=?utf-8?Q?a?= =?latin1?Q?b?=", "=?utf-8?Q?a?= =?latin1?Q?b?="),
            ("=?utf-8?Q?a?= between =?utf-8?Q?b?=", "=?utf-8?Q?a?= between =?utf-8?Q?b?="),
            ("=?=?utf-8?Q?a?=", "=?=?utf-8?Q?a?="),
            ("=?x?Z?a?= =?", "=?x?Z?a?= =?"),
        ];
        for (text, joined) in table {
            assert_eq!(join_words(text), joined, "{text}");
        }
    }

    #[test]
    fn a_body_begins_where_the_header_ends() {
        let table: [(&[u8], &str); 8] = [
            (b"A: b\r\n\r\nbody", "body"),
            (b"A: b\n\nbody", "body"),
            (b"A: b\r\n folded\r\nC: d\r\n\r\nbody", "body"),
            (b"A: b\r\nno header\r\nmore", "no header\r\nmore"),
            (b"From x y\r\nA: b\r\n\r\nbody", "body"),
            (b"A: b\r\n", ""),
            (b"just words", "just words"),
            (b"A: b\r\n\r\n\xfcber", "über"),
        ];
        for (raw, text) in table {
            assert_eq!(body(raw), text);
        }
        assert_eq!(header(b"A: \xfc\r\n\r\n\xff"), "A: ü\r\n\r\n".bytes().chain([0xff]).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn anything_is_mended(raw in r"(=\?|\?=|\?|[qQbB]|utf-8|[ \r\n:=A]|ä){0,40}") {
            let _ = (header(raw.as_bytes()), body(raw.as_bytes()));
        }
    }
}
