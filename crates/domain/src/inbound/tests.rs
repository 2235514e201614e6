use super::*;

const NOW: Time = Time::from_micros(1_800_000_000_000_000);

fn mailbox(address: &str) -> Mailbox {
    Mailbox { address: Email::parse(address).unwrap(), name: None }
}

fn named(name: &str, address: &str) -> Mailbox {
    Mailbox { name: Some(name.to_owned()), ..mailbox(address) }
}

fn mail(from: &str, to: &[&str]) -> Mail {
    Mail {
        from: Some(mailbox(from)),
        recipients: to.iter().map(|address| mailbox(address)).collect(),
        ..Mail::default()
    }
}

fn colleagues() -> Vec<Colleague> {
    let one = |address: &str, number: u8, active: bool| Colleague {
        person: PersonId::from_bytes([number; 16]),
        email: Email::parse(address).unwrap(),
        name: address.to_owned(),
        active,
    };
    vec![one("ana@acme.test", 1, true), one("bo@acme.test", 2, true), one("gone@acme.test", 3, false)]
}

/// The recipients that a mail is about, or why it is about nobody; `sender` if it is about its sender.
fn shown(mail: &Mail) -> String {
    match about(mail, &colleagues()) {
        About::Sender(_) => "sender".to_owned(),
        About::Recipients(_, theirs) => {
            theirs.iter().map(|mailbox| mailbox.address.as_str()).collect::<Vec<_>>().join(" ")
        }
        About::Nobody(ignored) => ignored.as_str().to_owned(),
    }
}

#[test]
fn a_mail_is_about_the_people_outside_the_company() {
    let table: [(&str, &[&str], &str); 8] = [
        ("client@nordlys.test", &["ana@acme.test"], "sender"),
        ("client@nordlys.test", &[], "sender"),
        ("ana@acme.test", &["client@nordlys.test"], "client@nordlys.test"),
        ("ANA@ACME.TEST", &["Client@Nordlys.test"], "client@nordlys.test"),
        (
            "ana@acme.test",
            &["bo@acme.test", "client@nordlys.test", "x@y.test"],
            "client@nordlys.test x@y.test",
        ),
        ("ana@acme.test", &["bo@acme.test", "gone@acme.test"], "members_only"),
        ("ana@acme.test", &[], "members_only"),
        ("gone@acme.test", &["client@nordlys.test"], "former_member"),
    ];
    for (from, to, expected) in table {
        assert_eq!(shown(&mail(from, to)), expected, "{from} to {to:?}");
    }
    assert_eq!(shown(&Mail::default()), "no_sender");
    let mut forwarded = mail("ana@acme.test", &["log@in.acme.test"]);
    forwarded.delivered_to = vec![Email::parse("log@in.acme.test").unwrap()];
    assert_eq!(shown(&forwarded), "members_only", "our own mailbox never belongs to an account");
}

#[test]
fn automatic_mail_is_recognised() {
    type Change = fn(&mut Mail);
    let with = |change: Change| {
        let mut mail = mail("client@nordlys.test", &["ana@acme.test"]);
        change(&mut mail);
        mail.automatic()
    };
    assert_eq!(with(|_| ()), None);
    let table: [(Change, Option<Automatic>); 19] = [
        (|mail| mail.signs.auto_submitted = Some("auto-replied".into()), Some(Automatic::Answer)),
        (|mail| mail.signs.auto_submitted = Some(" Auto-Generated; x".into()), Some(Automatic::Answer)),
        (|mail| mail.signs.auto_submitted = Some("no".into()), None),
        (|mail| mail.signs.auto_submitted = Some("No ; comment".into()), None),
        (|mail| mail.signs.others = vec![Sign::Autoreply], Some(Automatic::Answer)),
        (|mail| mail.signs.precedence = Some("auto_reply".into()), Some(Automatic::Answer)),
        (|mail| mail.signs.precedence = Some("Bulk".into()), Some(Automatic::List)),
        (|mail| mail.signs.precedence = Some("junk".into()), Some(Automatic::List)),
        (|mail| mail.signs.precedence = Some("first-class".into()), None),
        (|mail| mail.signs.others = vec![Sign::List], Some(Automatic::List)),
        (|mail| mail.signs.others = vec![Sign::Loop], Some(Automatic::Loop)),
        (|mail| mail.signs.others = vec![Sign::NullReturnPath], Some(Automatic::Answer)),
        (|mail| mail.signs.others = vec![Sign::Report], Some(Automatic::Report)),
        (|mail| mail.from = Some(mailbox("MAILER-DAEMON@mx.test")), Some(Automatic::Report)),
        (|mail| mail.subject = Some("Automatic reply: Offer".into()), Some(Automatic::Answer)),
        (|mail| mail.subject = Some("Abwesenheitsnotiz: Angebot".into()), Some(Automatic::Answer)),
        (|mail| mail.subject = Some("  OUT OF OFFICE".into()), Some(Automatic::Answer)),
        (|mail| mail.subject = Some("Re: out of office plans".into()), None),
        (|mail| mail.subject = Some("About your automatic reply".into()), None),
    ];
    for (number, (change, expected)) in table.into_iter().enumerate() {
        assert_eq!(with(change), expected, "row {number}");
    }
}

#[test]
fn a_received_mail_goes_by_what_it_answers_then_by_its_sender() {
    let from = mailbox("client@nordlys.test");
    let (ours, other) = (AccountId::from_bytes([1; 16]), AccountId::from_bytes([2; 16]));
    let conversation = ConversationId::from_bytes([9; 16]);
    let answered = Some((other, conversation));
    let table = [
        (Some(ours), answered, false, Ok(Place::Conversation(other, conversation))),
        (None, answered, true, Ok(Place::Conversation(other, conversation))),
        (Some(ours), None, true, Ok(Place::Account(ours))),
        (None, None, false, Ok(Place::NewAccount(from.clone()))),
        (None, None, true, Err(Ignored::Automatic)),
    ];
    for (known, answered, automatic, expected) in table {
        assert_eq!(place_received(&from, known, answered, automatic), expected);
    }
}

#[test]
fn a_sent_mail_goes_to_every_account_among_its_recipients() {
    let (first, second) = (mailbox("a@nordlys.test"), mailbox("b@other.test"));
    let theirs = [&first, &second];
    let (one, two) = (AccountId::from_bytes([1; 16]), AccountId::from_bytes([2; 16]));
    let conversation = ConversationId::from_bytes([9; 16]);
    let place = |known: &[AccountId], answered: Answered, automatic: bool| {
        place_sent(&theirs, known, answered, automatic)
    };
    assert_eq!(place(&[one, two], None, false), Ok(vec![Place::Account(one), Place::Account(two)]));
    assert_eq!(
        place(&[one, two], Some((two, conversation)), false),
        Ok(vec![Place::Account(one), Place::Conversation(two, conversation)])
    );
    assert_eq!(place(&[one], Some((two, conversation)), false), Ok(vec![Place::Account(one)]));
    assert_eq!(place(&[], Some((two, conversation)), true), Ok(vec![Place::Conversation(two, conversation)]));
    assert_eq!(place(&[], None, false), Ok(vec![Place::NewAccount(first.clone())]));
    assert_eq!(place(&[], None, true), Err(Ignored::Automatic));
}

#[test]
fn an_account_is_named_as_its_person_or_organisation_is() {
    let table = [
        (named("Ana Keller", "ana@nordlys.test"), "Ana Keller"),
        (named("  ", "ana@nordlys.test"), "nordlys.test"),
        (named("\u{200b}\u{3164}", "ana@nordlys.test"), "nordlys.test"),
        (named("ana@nordlys.test", "ana@nordlys.test"), "nordlys.test"),
        (mailbox("Ana@Nordlys.test"), "nordlys.test"),
        (mailbox("ana.keller@gmail.com"), "ana.keller@gmail.com"),
    ];
    for (mailbox, name) in table {
        assert_eq!(account_name(&mailbox), name);
    }
    assert_eq!(account_name(&named(&"x".repeat(999), "a@b.test")).len(), 255);
}

#[test]
fn a_date_counts_while_it_can_be_true() {
    let at = |date: Time| Mail { date: Some(date), ..Mail::default() }.occurred_at(NOW);
    assert_eq!(at(NOW.plus_days(-900)), NOW.plus_days(-900));
    assert_eq!(at(NOW.plus_seconds(300)), NOW.plus_seconds(300));
    assert_eq!(at(NOW.plus_seconds(301)), NOW);
    assert_eq!(at(Time::from_micros(-1)), NOW);
    assert_eq!(Mail::default().occurred_at(NOW), NOW);
}

#[test]
fn a_mail_is_known_by_its_id_or_by_what_it_says() {
    assert_eq!(MailMark::of_id("<a@b>"), MailMark::of_id(" a@b "));
    assert_ne!(MailMark::of_id("a@b"), MailMark::of_id("A@b"), "ids are exact");
    let said = |subject: &str, text: &str| {
        let (subject, text) = (Some(subject.to_owned()), text.to_owned());
        Mail { subject, text, ..mail("a@b.test", &[]) }.mark()
    };
    assert_eq!(said("x", "y"), said("x", "y"));
    assert_ne!(said("x", "y"), said("xy", ""), "parts do not run together");
    let with_id = Mail { message_id: Some("a@b".into()), ..Mail::default() };
    assert_eq!(with_id.mark(), MailMark::of_id("a@b"));
    let account = AccountId::from_bytes([1; 16]);
    assert_ne!(with_id.mark().on(account), with_id.mark());
}

#[test]
fn kept_text_has_plain_lines_and_an_end() {
    let table = [
        ("a\r\nb\rc\n", "a\nb\nc"),
        ("\r\n\n  indented\r\n\r\n", "  indented"),
        ("nul\0 bell\x07 tab\t.", "nul bell tab\t."),
        ("\u{feff}marked", "marked"),
        ("", ""),
    ];
    for (text, kept) in table {
        assert_eq!(kept_text(text), (kept.to_owned(), false), "{text:?}");
    }
    let (kept, cut) = kept_text(&"ä".repeat(MAX_BODY.max + 1));
    assert_eq!((kept.chars().count(), cut), (MAX_BODY.max, true));
    assert_eq!(kept_line(" Re:\r\n  a\tb\0 "), Some("Re: a b".to_owned()));
    assert_eq!(kept_line(" \r\n "), None);
}
