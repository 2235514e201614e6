//! A raw RFC 5322 message, as the domain sees it. A library parses the MIME structure; this module decides
//! what to use of it.

use std::collections::HashSet;

use mail_parser::{Addr, Address, ContentType, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use rapport_domain::conversation::Attachment;
use rapport_domain::inbound::{
    MAX_ATTACHMENTS, MAX_AUTHENTICATION, MAX_RECIPIENTS, MAX_REFERENCES, Mail, Mailbox, Sign, Signs,
    kept_line, kept_text,
};
use rapport_domain::member::Email;
use rapport_domain::time::Time;

use crate::reading::html::{self, Work};
use crate::reading::repair;

/// An id longer than a header line isn't valid.
const MAX_ID_BYTES: usize = 998;

/// The input isn't a message at all: nothing in it looks like a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body isn't a mail message: it has no headers")]
pub struct NotAMail;

/// Reads a mail. Broken ones are read as far as possible.
pub fn read(raw: &[u8]) -> Result<Mail, NotAMail> {
    read_within(raw, &Work::default())
}

fn read_within(raw: &[u8], work: &Work) -> Result<Mail, NotAMail> {
    let raw = repair::header(raw);
    let message = MessageParser::default().parse(raw.as_ref()).ok_or(NotAMail)?;
    if message.headers().is_empty() {
        return Err(NotAMail);
    }
    let headers = Headers::of(&message);
    let (text, unnamed) = text(&message, &raw, work);
    let (text, is_cut) = kept_text(&text);
    Ok(Mail {
        message_id: headers.ids("message-id").into_iter().next(),
        references: references(&message, &headers),
        from: sender(&message, &headers),
        authentication: authentication(&message, &headers),
        recipients: recipients(&message),
        delivered_to: headers.delivered_to(),
        subject: message.subject().and_then(kept_line),
        date: message.date().filter(|date| date.is_valid()).map(|date| seconds(date.to_timestamp())),
        text,
        text_truncated: is_cut || work.is_over(),
        attachments: attachments(&message, &unnamed),
        signs: headers.signs(&message),
    })
}

fn seconds(seconds: i64) -> Time {
    Time::from_micros(seconds.saturating_mul(1_000_000))
}

/// The headers of a message by name, unchanged.
struct Headers(Vec<(String, String)>);

impl Headers {
    fn of(message: &Message) -> Self {
        let all = message.headers().iter().map(|header| {
            let raw = message.raw_message.get(header.offset_start as usize..header.offset_end as usize);
            let value = String::from_utf8_lossy(raw.unwrap_or_default()).trim().to_owned();
            (header.name.as_str().to_ascii_lowercase(), value)
        });
        Self(all.collect())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.all(name).next().is_some())
    }

    fn first(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    }

    /// The Message-IDs in a header, in order.
    fn ids(&self, name: &str) -> Vec<String> {
        self.all(name).flat_map(ids_in).collect()
    }

    fn delivered_to(&self) -> Vec<Email> {
        const NAMES: [&str; 5] =
            ["delivered-to", "x-original-to", "envelope-to", "x-envelope-to", "x-forwarded-to"];
        let values = NAMES.iter().flat_map(|name| self.all(name));
        let words = values.flat_map(|value| value.split([',', ' ', '\t', '\r', '\n']));
        words.filter_map(|word| Email::parse(word.trim_matches(['<', '>', ';'])).ok()).collect()
    }

    fn signs(&self, message: &Message) -> Signs {
        let table = [
            (
                Sign::Autoreply,
                self.has(&["x-autoreply", "x-autorespond", "x-auto-reply", "x-mail-autoreply"]),
            ),
            (Sign::List, self.has(&["list-id", "list-unsubscribe", "list-post"])),
            (Sign::Loop, self.has(&["x-loop", "x-rapport"])),
            (Sign::NullReturnPath, self.all("return-path").any(|path| path == "<>")),
            (Sign::Report, is_report(message)),
        ];
        let others = table.into_iter().filter(|(_, is_there)| *is_there).map(|(sign, _)| sign).collect();
        Signs { auto_submitted: self.first("auto-submitted"), precedence: self.first("precedence"), others }
    }
}

/// The ids in a header's value: in angle brackets, or bare if the sender forgot them.
fn ids_in(value: &str) -> Vec<String> {
    let bracketed = value.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(id, _)| id);
    let mut found: Vec<String> = bracketed.map(|id| id.split_whitespace().collect::<String>()).collect();
    if found.is_empty() {
        found = value.split_whitespace().map(str::to_owned).collect();
    }
    found.retain(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.contains('\0'));
    found
}

/// The ids of the mails this one answers, nearest first; for a bounce, of the mail that came back.
fn references(message: &Message, headers: &Headers) -> Vec<String> {
    let mut found = headers.ids("in-reply-to");
    found.extend(headers.ids("references").into_iter().rev());
    let returned = if is_report(message) { message.parts.as_slice() } else { &[] };
    for part in returned {
        match &part.body {
            PartType::Message(inner) => found.extend(Headers::of(inner).ids("message-id")),
            PartType::Text(text) if is_type(part, "text", "rfc822-headers") => {
                let lines = text.lines().filter_map(|line| line.split_once(':'));
                let ids = lines.filter(|(name, _)| name.eq_ignore_ascii_case("message-id"));
                found.extend(ids.flat_map(|(_, value)| ids_in(value)));
            }
            _ => {}
        }
    }
    let mut nearest: Vec<String> = Vec::new();
    for id in found {
        if !nearest.contains(&id) && nearest.len() < MAX_REFERENCES {
            nearest.push(id);
        }
    }
    nearest
}

/// The sender a mail names.
fn sender(message: &Message, headers: &Headers) -> Option<Mailbox> {
    let named = [message.from(), message.sender(), message.reply_to()].into_iter().flatten();
    let first = named.flat_map(mailboxes).next();
    first.or_else(|| {
        let path = headers.first("return-path")?;
        let address = Email::parse(path.trim_matches(['<', '>'])).ok()?;
        Some(Mailbox { address, name: None })
    })
}

/// What relays said about the author, if the mail names exactly one.
fn authentication(message: &Message, headers: &Headers) -> Vec<String> {
    let is_one = |from: &Address| from.iter().count() == 1 && mailboxes(from).count() == 1;
    if headers.all("from").count() != 1 || !message.from().is_some_and(is_one) {
        return Vec::new();
    }
    headers.all("authentication-results").take(MAX_AUTHENTICATION).map(str::to_owned).collect()
}

fn recipients(message: &Message) -> Vec<Mailbox> {
    let lists = [message.to(), message.cc(), message.bcc()].into_iter().flatten();
    let mut found: Vec<Mailbox> = Vec::new();
    for mailbox in lists.flat_map(mailboxes) {
        let is_new = !found.iter().any(|known| known.address == mailbox.address);
        if is_new && found.len() < MAX_RECIPIENTS {
            found.push(mailbox);
        }
    }
    found
}

/// The mailboxes of a header, including those in groups; invalid addresses are left out.
fn mailboxes<'a>(address: &'a Address<'a>) -> impl Iterator<Item = Mailbox> + 'a {
    address.iter().filter_map(|Addr { name, address }| {
        let address = Email::parse(address.as_deref()?.trim()).ok()?;
        Some(Mailbox { address, name: name.as_deref().and_then(kept_line) })
    })
}

/// The text a reader would see: the plain parts, else the HTML ones; and the parts used for it although they
/// were found among the attachments.
fn text(message: &Message, raw: &[u8], work: &Work) -> (String, HashSet<u32>) {
    // Without a plain part, the HTML is found as both.
    let html = Some(&message.html_body).filter(|html| **html != message.text_body);
    for parts in [&message.text_body].into_iter().chain(html) {
        let text = body(message, parts, work);
        if !text.trim().is_empty() {
            return (text, HashSet::new());
        }
    }
    // If a boundary is broken, the intended text is found as an attachment without a name.
    let is_text = |id: &&u32| message.parts.get(**id as usize).is_some_and(is_unnamed_text);
    let unnamed: Vec<u32> = message.attachments.iter().filter(is_text).copied().collect();
    let text = body(message, &unnamed, work);
    if !text.trim().is_empty() {
        return (text, unnamed.into_iter().collect());
    }
    match message.parts.first() {
        // It claims to have parts and has none, or its text began without an empty line.
        Some(root) if is_shapeless(root) => {
            (repair::body(raw).into_owned(), message.attachments.iter().copied().collect())
        }
        _ => (String::new(), HashSet::new()),
    }
}

fn is_unnamed_text(part: &MessagePart) -> bool {
    let is_meant = part.content_disposition().is_some_and(ContentType::is_attachment);
    let is_readable = is_type(part, "text", "plain") || is_type(part, "text", "html");
    is_readable && !is_meant && part.attachment_name().is_none()
}

fn is_shapeless(root: &MessagePart) -> bool {
    let is_divided = matches!(root.body, PartType::Multipart(_) | PartType::Html(_) | PartType::Message(_));
    let kind = root.content_type().map_or("text", |content| content.ctype());
    !is_divided && ["text", "multipart"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

fn body(message: &Message, parts: &[u32], work: &Work) -> String {
    let parts = parts.iter().filter_map(|id| message.parts.get(*id as usize));
    let texts = parts.filter_map(|part| match &part.body {
        PartType::Text(text) if text.contains(char::REPLACEMENT_CHARACTER) => {
            Some(undeclared(message, part).unwrap_or_else(|| text.to_string()))
        }
        PartType::Text(text) => Some(text.to_string()),
        PartType::Html(source) => Some(html::to_text(source, work)),
        _ => None,
    });
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    texts.join("\n\n")
}

/// The text of a part that isn't UTF-8 and doesn't declare another encoding.
fn undeclared(message: &Message, part: &MessagePart) -> Option<String> {
    let charset = part.content_type().and_then(|content| content.attribute("charset"));
    let is_declared = charset.is_some_and(|charset| !charset.eq_ignore_ascii_case("us-ascii"));
    let encoding = part.content_transfer_encoding().unwrap_or("8bit");
    let is_plain = ["7bit", "8bit", "binary"].iter().any(|plain| encoding.eq_ignore_ascii_case(plain));
    if is_declared || !is_plain {
        return None;
    }
    let raw = message.raw_message.get(part.offset_body as usize..part.offset_end as usize)?;
    Some(repair::decode(raw).into_owned())
}

/// The attachments: their names are kept, not their content.
fn attachments(message: &Message, taken: &HashSet<u32>) -> Vec<Attachment> {
    let left = message.attachments.iter().filter(|id| !taken.contains(id));
    let parts = left.filter_map(|id| message.parts.get(*id as usize));
    parts.take(MAX_ATTACHMENTS).map(attachment).collect()
}

fn attachment(part: &MessagePart) -> Attachment {
    let (name, size) = match &part.body {
        PartType::Message(inner) => (inner.subject(), inner.raw_message.len()),
        _ => (None, part.len()),
    };
    let media_type = part.content_type().map_or_else(
        || "application/octet-stream".to_owned(),
        |content| match content.subtype() {
            Some(subtype) => format!("{}/{subtype}", content.ctype()).to_ascii_lowercase(),
            None => content.ctype().to_ascii_lowercase(),
        },
    );
    let name = part.attachment_name().or(name).and_then(kept_line);
    let media_type = kept_line(&media_type).unwrap_or_else(|| "application/octet-stream".to_owned());
    Attachment { name, media_type, size }
}

fn is_report(message: &Message) -> bool {
    message.parts.first().is_some_and(|root| is_type(root, "multipart", "report"))
}

fn is_type(part: &MessagePart, kind: &str, subtype: &str) -> bool {
    part.content_type().is_some_and(|content| {
        content.ctype().eq_ignore_ascii_case(kind)
            && content.subtype().is_some_and(|found| found.eq_ignore_ascii_case(subtype))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_only_for_a_single_author() {
        let results = "Authentication-Results: mx.acme.test;\r\n\tdkim=pass\r\nAuthentication-Results: b\r\n";
        let kept =
            |from: &str| read(format!("{results}{from}\r\n\r\nHello").as_bytes()).unwrap().authentication;
        assert_eq!(kept("From: Ana <a@x.test>"), ["mx.acme.test;\r\n\tdkim=pass", "b"]);
        for from in [
            "From: a@x.test, b@y.test",
            "From: a@x.test\r\nFrom: b@y.test",
            "From: Nobody",
            "Sender: a@x.test",
            "Reply-To: a@x.test",
        ] {
            assert_eq!(kept(from), Vec::<String>::new(), "{from}");
        }
    }

    #[test]
    fn a_mail_that_is_too_much_work_is_marked_as_truncated() {
        let flood = "<p>Hello</p>".to_owned() + &"<a title='&lx'>".repeat(1_000);
        for raw in [
            format!("From: a@x.test\r\nContent-Type: text/html\r\n\r\n{flood}"),
            format!(
                "From: a@x.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
                 --b\r\nContent-Type: text/html\r\n\r\n{flood}\r\n\
                 --b\r\nContent-Type: text/html\r\n\r\nmore\r\n--b--\r\n"
            ),
        ] {
            let mail = read_within(raw.as_bytes(), &Work::of(10_000)).unwrap();
            assert_eq!((mail.text.as_str(), mail.text_truncated), ("Hello", true));
            let whole = read(raw.as_bytes()).unwrap();
            assert!(whole.text.starts_with("Hello") && !whole.text_truncated);
        }
    }
}
