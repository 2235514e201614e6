//! Real-world mails, each with what must be read from it.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rapport_app::reading::mail::read;
use rapport_domain::conversation::MAX_SUBJECT;
use rapport_domain::inbound::{Automatic, MAX_RECIPIENTS, Mail, Mailbox};
use rapport_domain::time::Time;

/// The expected content of a mail in the corpus. Fields left out must be absent, except the date.
#[derive(Default)]
struct Said {
    file: &'static str,
    from: &'static str,
    to: &'static [&'static str],
    id: &'static str,
    subject: &'static str,
    text: &'static str,
    attachments: &'static [&'static str],
    references: &'static [&'static str],
    automatic: Option<Automatic>,
}

/// What most of the corpus has in common.
const PLAIN: Said = Said {
    file: "",
    from: "ana@nordlys.example",
    to: &["bo@acme.example"],
    id: "",
    subject: "",
    text: "",
    attachments: &[],
    references: &[],
    automatic: None,
};

const CORPUS: &[Said] = &[
    Said {
        file: "plain",
        from: "Ana Keller <ana@nordlys.example>",
        to: &["Bo <bo@acme.example>"],
        id: "plain-1@nordlys.example",
        subject: "Offer for the spring",
        text: "Hello Bo,\n\ncould you send us an offer?\n\nAna",
        ..PLAIN
    },
    Said {
        file: "gmail_reply",
        from: "Ana Keller <ana@nordlys.example>",
        to: &["Bo <bo@acme.example>"],
        id: "CAF=gmail-2+xyz@mail.gmail.com",
        subject: "Re: Offer for the spring",
        text: "Great – we take it.\n\nOn Mon, Jan 5, 2026 at 9:15\u{202f}AM Bo <bo@acme.example> wrote:\n> Here is the offer.",
        references: &["second@acme.example", "first@acme.example"],
        ..PLAIN
    },
    Said {
        file: "outlook_nested",
        from: "Keller, Ana <ana@nordlys.example>",
        to: &[
            "Bo Lübke <bo@acme.example>",
            "Smith; John <john@acme.example>",
            "Žofie Nováková <zofie@nordlys.example>",
        ],
        id: "AM0PR0000MB1234@AM0PR0000MB1234.eurprd01.prod.exchangelabs.com",
        subject: "Angebot für das Frühjahr",
        text: "Schöne Grüße,\n[cid:image001.png@01D]\nAna",
        attachments: &["image001.png image/png 8", "Angebot für Sie.pdf application/pdf 19"],
        ..PLAIN
    },
    Said {
        file: "apple_html_only",
        from: "Zoë Müller <zoe@nordlys.example>",
        id: "8F2B1C@nordlys.example",
        subject: "Only HTML",
        text: "Hello Bo,\n\nsee you at five & bring cake.\n- one\n- two",
        ..PLAIN
    },
    Said {
        file: "base64_text",
        id: "b64@nordlys.example",
        subject: "Привет мир",
        text: "Здравствуйте, Бо!\nДо встречи.",
        ..PLAIN
    },
    Said {
        file: "koi8",
        from: "Анна <ana@nordlys.example>",
        id: "koi8@nordlys.example",
        subject: "Тема",
        text: "Привет из KOI8",
        ..PLAIN
    },
    Said {
        file: "iso_2022_jp",
        from: "田中 <tanaka@nordlys.example>",
        id: "jis@nordlys.example",
        subject: "見積り",
        text: "こんにちは",
        ..PLAIN
    },
    Said {
        file: "unknown_charset",
        id: "charset@nordlys.example",
        subject: "odd charset",
        text: "plain words survive",
        ..PLAIN
    },
    Said { file: "missing_headers", to: &[], text: "No subject, no date, no id.", ..PLAIN },
    Said {
        file: "no_from",
        from: "",
        id: "nofrom@x.example",
        subject: "Anonymous",
        text: "Who am I?",
        ..PLAIN
    },
    Said {
        file: "sender_only",
        from: "Ana's assistant <assistant@nordlys.example>",
        id: "sender@x.example",
        subject: "Sender only",
        text: "Written for her.",
        ..PLAIN
    },
    Said {
        file: "broken_boundary",
        id: "broken@nordlys.example",
        subject: "Broken boundary",
        text: "The text that must not be lost.\n\n--wrong\nContent-Type: application/pdf; name=a.pdf\n\nJVBERi0=",
        ..PLAIN
    },
    Said {
        file: "missing_boundary_parameter",
        id: "noboundary@nordlys.example",
        subject: "No boundary",
        text: "--x\nContent-Type: text/plain\n\nStill here.\n--x--",
        ..PLAIN
    },
    Said {
        file: "unclosed_boundary",
        id: "cut@nordlys.example",
        subject: "Cut off",
        text: "First and only part, and the connection bro",
        ..PLAIN
    },
    Said { file: "no_blank_line", id: "headersonly@nordlys.example", subject: "Headers only", ..PLAIN },
    Said {
        file: "body_without_blank_line",
        to: &[],
        id: "straight@nordlys.example",
        subject: "Straight on",
        text: "this line is no header\nand neither is this",
        ..PLAIN
    },
    Said { file: "bare_lf", id: "lf@nordlys.example", subject: "Bare line feeds", text: "one\ntwo", ..PLAIN },
    Said {
        file: "eight_bit_garbage",
        from: "Anä <ana@nordlys.example>",
        id: "8bit@nordlys.example",
        subject: "Grüße ÿþ",
        text: "raw ümläuts and  a nul ÿ",
        ..PLAIN
    },
    Said {
        file: "groups",
        to: &[
            "Bo L. <bo@acme.example>",
            "kim@acme.example",
            "Eva (a comment in Oslo) <eva@nordlys.example>",
            "quoted \"name\" <q@nordlys.example>",
        ],
        id: "groups@nordlys.example",
        subject: "Groups",
        text: "To all of you.",
        ..PLAIN
    },
    Said {
        file: "bounce_dsn",
        from: "Mail Delivery System <mailer-daemon@mx.acme.example>",
        id: "bounce@mx.acme.example",
        subject: "Undelivered Mail Returned to Sender",
        text: "I'm sorry to have to inform you that your message could not be delivered.",
        attachments: &["- message/delivery-status 0", "Offer for the spring message/rfc822 0"],
        references: &["original@acme.example"],
        automatic: Some(Automatic::Report),
        ..PLAIN
    },
    Said {
        file: "bounce_headers_only",
        from: "postmaster@mx.nordlys.example",
        id: "bounce2@mx.nordlys.example",
        subject: "Delivery Status Notification (Failure)",
        text: "Mailbox full.",
        attachments: &["- message/delivery-status 0", "- text/rfc822-headers 0"],
        references: &["original@acme.example"],
        automatic: Some(Automatic::Report),
        ..PLAIN
    },
    Said {
        file: "vacation_outlook",
        from: "Ana Keller <ana@nordlys.example>",
        to: &["Bo <bo@acme.example>"],
        id: "oof@nordlys.example",
        subject: "Automatic reply: Offer for the spring",
        text: "I am away until the 19th.",
        references: &["original@acme.example"],
        automatic: Some(Automatic::Answer),
        ..PLAIN
    },
    Said {
        file: "vacation_by_subject",
        from: "Ana Keller <ana@nordlys.example>",
        to: &["Bo <bo@acme.example>"],
        id: "abw@nordlys.example",
        subject: "Abwesenheitsnotiz: Angebot",
        text: "Ich bin im Urlaub.",
        automatic: Some(Automatic::Answer),
        ..PLAIN
    },
    Said {
        file: "list_mail",
        from: "Ana Keller via Users <users@lists.example>",
        to: &["users@lists.example"],
        id: "list@lists.example",
        subject: "[Users] Release 2.0",
        text: "It is out.",
        automatic: Some(Automatic::Loop),
        ..PLAIN
    },
    Said {
        file: "newsletter",
        from: "News <news@shop.example>",
        id: "news@shop.example",
        subject: "Sale",
        text: "Everything half price",
        automatic: Some(Automatic::List),
        ..PLAIN
    },
    Said {
        file: "calendar_invite",
        from: "Ana Keller <ana@nordlys.example>",
        id: "invite@nordlys.example",
        subject: "Meeting",
        text: "Shall we meet?",
        attachments: &["- text/calendar 0", "invite.ics application/ics 32"],
        ..PLAIN
    },
    Said {
        file: "smime_signed",
        from: "Ana Keller <ana@nordlys.example>",
        id: "signed@nordlys.example",
        subject: "Signed",
        text: "Signed and sealed.",
        attachments: &["smime.p7s application/pkcs7-signature 60"],
        ..PLAIN
    },
    Said {
        file: "winmail",
        from: "Ana Keller <ana@nordlys.example>",
        id: "tnef@nordlys.example",
        subject: "From an old Outlook",
        text: "See the attachment.",
        attachments: &["winmail.dat application/ms-tnef 54"],
        ..PLAIN
    },
    Said {
        file: "forwarded_as_attachment",
        from: "Ana Keller <ana@nordlys.example>",
        id: "fwd@nordlys.example",
        subject: "Fwd: what he wrote",
        text: "Look at this.",
        attachments: &["The original message/rfc822 0"],
        ..PLAIN
    },
    Said {
        file: "empty_plain_part",
        id: "empty@nordlys.example",
        subject: "Empty alternative",
        text: "The words are here.",
        ..PLAIN
    },
    Said { file: "bad_dates", id: "date@nordlys.example", subject: "Whenever", text: "Hello.", ..PLAIN },
    Said {
        file: "odd_message_ids",
        id: "no.brackets@nordlys.example",
        subject: "Odd ids",
        text: "Hello.",
        references: &["replied@acme.example", "three@acme.example", "two@acme.example", "one@acme.example"],
        ..PLAIN
    },
    Said {
        file: "format_flowed",
        id: "flowed@nordlys.example",
        subject: "Quoted history",
        text: "> What do you think?\n>> Older still\n\nI agree.\n-- \nAna",
        ..PLAIN
    },
    Said {
        file: "deeply_nested",
        id: "deep@nordlys.example",
        subject: "Nested deeply",
        text: "At the bottom.",
        ..PLAIN
    },
    Said {
        file: "quoted_printable_torn",
        id: "torn@nordlys.example",
        subject: "Torn € sign",
        text: "A soft break, a bad =ZZ escape, a lone =sign, and an end",
        ..PLAIN
    },
    Said {
        file: "uuencoded_and_bcc",
        from: "Bo <bo@acme.example>",
        to: &["Ana <ana@nordlys.example>", "log@in.acme.example"],
        id: "fromus@acme.example",
        subject: "From us",
        text: "Here is the offer.\n\nbegin 644 a.txt\n#0V%T\n`\nend",
        ..PLAIN
    },
    Said {
        file: "mbox_line",
        id: "mbox@nordlys.example",
        subject: "With an mbox line",
        text: "Hello.",
        ..PLAIN
    },
];

fn corpus(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mail").join(format!("{file}.eml"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn shown(mailbox: &Mailbox) -> String {
    match &mailbox.name {
        Some(name) => format!("{name} <{}>", mailbox.address.as_str()),
        None => mailbox.address.as_str().to_owned(),
    }
}

/// Everything a mail contains, as lines to compare.
fn lines(mail: &Mail) -> Vec<String> {
    let mut lines = vec![
        format!("from {}", mail.from.as_ref().map(shown).unwrap_or_default()),
        format!("id {}", mail.message_id.as_deref().unwrap_or_default()),
        format!("subject {}", mail.subject.as_deref().unwrap_or_default()),
        format!("text {}", mail.text),
        format!("automatic {:?}", mail.automatic()),
    ];
    lines.extend(mail.recipients.iter().map(|mailbox| format!("to {}", shown(mailbox))));
    lines.extend(mail.references.iter().map(|id| format!("answers {id}")));
    lines
}

fn expected(said: &Said) -> Vec<String> {
    let mut lines = vec![
        format!("from {}", said.from),
        format!("id {}", said.id),
        format!("subject {}", said.subject),
        format!("text {}", said.text),
        format!("automatic {:?}", said.automatic),
    ];
    lines.extend(said.to.iter().map(|mailbox| format!("to {mailbox}")));
    lines.extend(said.references.iter().map(|id| format!("answers {id}")));
    lines
}

#[test]
fn every_mail_of_the_corpus_says_what_it_says() {
    let mut wrong = Vec::new();
    for said in CORPUS {
        let mail = read(&corpus(said.file)).unwrap_or_else(|error| panic!("{}: {error}", said.file));
        if lines(&mail) != expected(said) {
            wrong.push(format!(
                "{}\n  found    {:#?}\n  expected {:#?}",
                said.file,
                lines(&mail),
                expected(said)
            ));
        }
        let attachments = mail.attachments.iter().map(|attachment| {
            let name = attachment.name.as_deref().unwrap_or("-");
            format!("{name} {} {}", attachment.media_type, attachment.size)
        });
        // A size of 0 in the table means any size, because line endings may differ.
        let found: Vec<String> = attachments.collect();
        let same = |found: &String, row: &&str| {
            *found == **row || row.strip_suffix(" 0").is_some_and(|row| found.starts_with(row))
        };
        if found.len() != said.attachments.len()
            || !found.iter().zip(said.attachments).all(|(found, row)| same(found, row))
        {
            wrong.push(format!("{}: attachments {found:?}, expected {:?}", said.file, said.attachments));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_of_the_corpus_is_in_the_table() {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mail")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names = names.filter_map(|name| name.strip_suffix(".eml").map(str::to_owned));
    let missing: Vec<String> =
        names.filter(|name| name != "huge_header" && !CORPUS.iter().any(|said| said.file == name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_huge_header_is_cut_to_what_is_kept() {
    let mail = read(&corpus("huge_header")).unwrap();
    assert_eq!(mail.recipients.len(), MAX_RECIPIENTS);
    assert_eq!(mail.subject.unwrap().chars().count(), MAX_SUBJECT.max);
    assert_eq!(mail.text, "Small body.");
}

#[test]
fn dates_are_read_where_they_are_dates() {
    let at = |file: &str| read(&corpus(file)).unwrap().date;
    assert_eq!(at("plain"), Time::parse("2026-01-05T08:15:00Z").ok());
    assert_eq!(at("iso_2022_jp"), Time::parse("2026-01-05T09:00:00Z").ok());
    assert_eq!(at("bad_dates"), None);
    assert_eq!(at("missing_headers"), None);
}

#[test]
fn our_own_mailbox_is_known_by_where_it_was_delivered() {
    let mail = read(&corpus("uuencoded_and_bcc")).unwrap();
    assert!(mail.delivered_to.iter().all(|address| address.as_str() == "log@in.acme.example"));
    assert!(!mail.delivered_to.is_empty());
}

#[test]
fn what_has_no_header_is_no_mail() {
    assert!(read(b"").is_err());
    assert!(read(b"\r\n\r\n").is_err());
}

/// Bytes of a damaged mail: cut, doubled, overwritten.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let mail = proptest::sample::select(CORPUS.iter().map(|said| corpus(said.file)).collect::<Vec<_>>());
    (mail, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<Vec<u8>>()).prop_map(
        |(mut mail, at, to, noise)| {
            let (at, to) = (at.index(mail.len()), to.index(mail.len()));
            mail.splice(at.min(to)..at.max(to), noise);
            mail
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_header_is_read_or_refused(name in "(From|To|Subject|Content-Type|References|Date|Message-ID)",
                                     value in r#"[ -~\r\n\t<>@;:="?äß]{0,80}"#) {
        let _ = read(format!("{name}: {value}\r\n\r\nbody").as_bytes());
    }

    #[test]
    fn a_damaged_mail_is_read_or_refused(bytes in damaged()) {
        if let Ok(mail) = read(&bytes) {
            prop_assert!(!mail.text.contains('\0') && !mail.text.contains('\r'));
            let _ = (mail.mark(), mail.automatic());
        }
    }
}
