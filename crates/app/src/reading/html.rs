//! HTML as a stream of pieces, and as plain text.

use std::cell::Cell;
use std::convert::Infallible;

use html5gum::{DefaultEmitter, Readable, Reader, Token, Tokenizer};
use rapport_domain::inbound::MAX_MAIL_BYTES;

/// How much work the HTML of one mail may take. The tokenizer reads a document once, but compares each entity with up
/// to 300 names. A flood of entities would keep it busy for many seconds; without entities, the largest mail takes
/// less than this.
const MAX_WORK: usize = 5 * MAX_MAIL_BYTES;

/// The work that is left for a mail, whatever its number of parts: one unit for each question of the tokenizer.
#[derive(Debug)]
pub struct Work {
    left: Cell<usize>,
}

impl Default for Work {
    fn default() -> Self {
        Self::of(MAX_WORK)
    }
}

impl Work {
    pub fn of(units: usize) -> Self {
        Self { left: Cell::new(units) }
    }

    /// Whether something was left out, because it would have been too much work.
    pub fn is_over(&self) -> bool {
        self.left.get() == 0
    }

    /// Does one unit of work, unless none is left.
    fn one(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

/// A document that ends where the work does.
struct Bounded<'a, R> {
    inner: R,
    work: &'a Work,
}

impl<R: Reader<Error = Infallible>> Reader for Bounded<'_, R> {
    type Error = Infallible;

    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        if self.work.one() { self.inner.read_byte() } else { Ok(None) }
    }

    fn read_until<'b>(
        &'b mut self,
        needle: &[u8],
        buffer: &'b mut [u8; 4],
    ) -> Result<Option<&'b [u8]>, Infallible> {
        if self.work.one() { self.inner.read_until(needle, buffer) } else { Ok(None) }
    }

    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Infallible> {
        if self.work.one() { self.inner.try_read_string(text, case_sensitive) } else { Ok(false) }
    }
}

/// A piece of a document. Names are in lower case, entities are decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Open { name: String, attributes: Vec<(String, String)> },
    Close(String),
    Text(String),
}

/// The pieces of a document, as a browser's tokenizer sees them, as far as the work lasts.
pub fn pieces<'a>(html: &'a str, work: &'a Work) -> impl Iterator<Item = Piece> + 'a {
    let mut emitter = DefaultEmitter::<()>::default();
    // The content of a title, a script or a style is text, whatever it looks like.
    emitter.naively_switch_states(true);
    let document = Bounded { inner: html.to_reader(), work };
    Tokenizer::new_with_emitter(document, emitter).flatten().filter_map(|token| match token {
        Token::StartTag(tag) => {
            let attributes = tag.attributes.iter().map(|(name, value)| (lossy(name), lossy(value)));
            Some(Piece::Open { name: lossy(&tag.name), attributes: attributes.collect() })
        }
        Token::EndTag(tag) => Some(Piece::Close(lossy(&tag.name))),
        Token::String(text) => Some(Piece::Text(lossy(&text))),
        Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => None,
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Elements whose content isn't text of the document.
const SILENT: [&str; 9] =
    ["head", "iframe", "script", "style", "title", "template", "noscript", "object", "svg"];
/// Elements that get lines of their own.
const BLOCKS: [&str; 27] = [
    "address",
    "article",
    "aside",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "legend",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "section",
    "summary",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
];
/// Elements separated from their surroundings by an empty line.
const PARAGRAPHS: [&str; 9] = ["p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote"];
const MAX_QUOTE_DEPTH: usize = 8;

/// The text a reader of the document would see, in lines. Quotations begin with `> ` as in plain mails.
pub fn to_text(html: &str, work: &Work) -> String {
    let mut writer = Writer::default();
    let mut silence: Option<(String, usize)> = None;
    for piece in pieces(html, work) {
        if let Some((element, depth)) = &mut silence {
            match &piece {
                Piece::Open { name, .. } if name == element => *depth += 1,
                Piece::Close(name) if name == element => *depth -= 1,
                // A body ends a head that was never closed.
                Piece::Open { name, .. } if name == "body" && element == "head" => *depth = 0,
                _ => {}
            }
            if *depth == 0 {
                silence = None;
            }
            continue;
        }
        match piece {
            Piece::Open { name, .. } if SILENT.contains(&name.as_str()) => silence = Some((name, 1)),
            Piece::Open { name, attributes } => writer.open(&name, &attributes),
            Piece::Close(name) => writer.close(&name),
            Piece::Text(text) => writer.text(&text),
        }
    }
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Line breaks due before the next word.
    lines: usize,
    space: bool,
    quotes: usize,
    preformatted: usize,
}

impl Writer {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) {
        self.boundary(name);
        match name {
            "br" => self.line_break(),
            "blockquote" => self.quotes += 1,
            "pre" => self.preformatted += 1,
            "li" => self.word("- "),
            "td" | "th" => self.space = true,
            "img" => {
                let alt = attributes.iter().find(|(name, _)| name == "alt");
                alt.into_iter().for_each(|(_, text)| self.text(text));
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        self.boundary(name);
        match name {
            "blockquote" => self.quotes = self.quotes.saturating_sub(1),
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
    }

    fn boundary(&mut self, name: &str) {
        let owed = if PARAGRAPHS.contains(&name) { 2 } else { usize::from(BLOCKS.contains(&name)) };
        if owed > 0 {
            self.lines = self.lines.max(owed);
            self.space = false;
        }
    }

    /// Several breaks in a row become one empty line, which a reader sees as a gap.
    fn line_break(&mut self) {
        self.lines = (self.lines + 1).min(2);
        self.space = false;
    }

    fn text(&mut self, text: &str) {
        if self.preformatted > 0 {
            for (number, line) in text.split('\n').enumerate() {
                if number > 0 {
                    self.lines += 1;
                }
                if !line.trim().is_empty() {
                    self.word(line.trim_end());
                }
            }
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.space = true;
        }
        for word in text.split_whitespace() {
            self.word(word);
            self.space = true;
        }
        if !text.ends_with(char::is_whitespace) && !text.is_empty() {
            self.space = false;
        }
    }

    fn word(&mut self, word: &str) {
        let at_start = self.out.is_empty();
        if self.lines > 0 && !at_start {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            (0..self.lines).for_each(|_| self.out.push('\n'));
        }
        if at_start || self.lines > 0 {
            (0..self.quotes.min(MAX_QUOTE_DEPTH)).for_each(|_| self.out.push_str("> "));
        } else if self.space && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.lines = 0;
        self.space = false;
        self.out.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn html_reads_as_its_reader_would() {
        let table = [
            ("Hello", "Hello"),
            ("<p>One</p><p>Two</p>", "One\n\nTwo"),
            ("<div>One</div><div>Two</div>", "One\nTwo"),
            ("One<br>Two<br/>Three", "One\nTwo\nThree"),
            ("One<br><br><br>Two", "One\n\nTwo"),
            ("a <b>bold</b>, word", "a bold, word"),
            ("spread\n   over\tlines", "spread over lines"),
            ("&lt;b&gt; &amp; &auml;&#8364;&#x20AC;&nbsp;x", "<b> & ä€€ x"),
            ("<ul><li>One</li><li>Two</li></ul>", "- One\n- Two"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
            ("<head><title>No</title><style>p{}</style></head><body>Yes</body>", "Yes"),
            ("<style>x</style><script>alert('</p>')</script>Yes", "Yes"),
            ("<!-- no -->Yes<!--[if mso]>no<![endif]-->", "Yes"),
            (
                "Hi<blockquote>old<blockquote>older</blockquote></blockquote>new",
                "Hi\n\n> old\n\n> > older\n\nnew",
            ),
            ("<pre>a  b\n  c</pre>", "a  b\n  c"),
            ("<img alt='Logo of Acme' src=x> Hi", "Logo of Acme Hi"),
            ("<p>unclosed <b>tags<p>everywhere", "unclosed tags\n\neverywhere"),
            ("<head>no body tag<p>lost", ""),
            ("<head><meta x><body><p>found", "found"),
            ("<", "<"),
            ("a < b and b > c", "a < b and b > c"),
            ("", ""),
        ];
        for (html, text) in table {
            assert_eq!(to_text(html, &Work::default()), text, "{html}");
        }
    }

    const FLOOD_BYTES: usize = 4 << 10;

    /// The units of work for a document that repeats this piece, and its length.
    fn cost(piece: &str) -> (usize, usize) {
        let (html, work) = (piece.repeat(FLOOD_BYTES / piece.len()), Work::default());
        let _ = to_text(&html, &work);
        (MAX_WORK - work.left.get(), html.len())
    }

    #[test]
    fn the_largest_mail_without_entities_is_read_to_its_end() {
        let markup =
            "<|<b>|<b/>|</b>|<a b>|<a b=c>|<a b='c'|</|<!|<!--|<!-- -->|<?|<![CDATA[|<!doctype|<li>|<pre>\n";
        let special = "<script>|<script><!--|<title>|<title></|&|& |&&|&#|&#x|&#9;|&#x9;|x|x |\r\n|\r|\0|ä";
        for piece in markup.split('|').chain(special.split('|')) {
            let (work, bytes) = cost(piece);
            assert!(work / MAX_WORK.div_ceil(MAX_MAIL_BYTES) <= bytes, "{piece:?}: {work} for {bytes} bytes");
        }
    }

    #[test]
    fn a_flood_of_entities_ends_where_the_work_does() {
        for piece in ["&lx ", "&lt;", "&nbsp;", "&bogus;", "<a b=&lx>", "<title>&lx", "&CounterClockwise"] {
            let (html, work) = (piece.repeat(FLOOD_BYTES), Work::of(FLOOD_BYTES));
            let text = to_text(&html, &work);
            assert!(work.is_over(), "{piece}");
            assert!(text.len() <= FLOOD_BYTES, "{piece}: {} bytes of text", text.len());
            assert_eq!(to_text("<p>more</p>", &work), "", "the next part of the mail has no work left");
        }
        let (text, work) = ("&auml;".repeat(200_000 / 100), Work::default());
        assert_eq!(to_text(&text, &work).chars().count(), 2_000);
        assert!(MAX_WORK - work.left.get() < MAX_WORK / 100, "a mail of 200,000 entities is read to its end");
    }

    proptest! {
        #[test]
        fn anything_is_read(html in "(<[a-z/!]{0,4}|blockquote>|pre>|&[a-z#0-9]{0,6};?|[ -~äß\n]){0,60}") {
            let _ = to_text(&html, &Work::default());
        }
    }
}
