use super::*;
use serde_json::json;

const NOW: Time = Time::from_micros(1_800_000_000_000_000);

fn faults(invalid: Invalid) -> Vec<(String, &'static str)> {
    invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
}

#[test]
fn subjects_match_without_reply_prefixes() {
    let table = [
        ("Offer for Nordlys", "offer for nordlys"),
        ("Re: Offer for Nordlys", "offer for nordlys"),
        ("RE: re:  Fwd: Offer   for Nordlys ", "offer for nordlys"),
        ("AW: WG: Offer for Nordlys", "offer for nordlys"),
        ("Re[2]: Offer for Nordlys", "offer for nordlys"),
        ("AW (3): Offer for Nordlys", "offer for nordlys"),
        ("SV: Offer", "offer"),
        ("Report: the year", "report: the year"),
        ("Re: Report: the year", "report: the year"),
        ("Re2: Offer", "re2: offer"),
        ("Re:", ""),
        ("", ""),
        ("Angebot: Ölfilter", "angebot: ölfilter"),
    ];
    for (subject, plain) in table {
        assert_eq!(plain_subject(subject), plain, "{subject:?}");
    }
    assert_eq!(ThreadMark::of("Re: Offer"), ThreadMark::of("OFFER"));
    assert_ne!(ThreadMark::of("Offer"), ThreadMark::of("Offers"));
}

#[test]
fn a_message_says_its_direction_and_its_body() {
    let parse = |body: Value| Log::parse(body.as_object().unwrap(), NOW);
    let plain = parse(json!({"direction": "outbound", "body": "Hello"})).unwrap();
    assert_eq!((plain.direction, plain.occurred_at, plain.channel), (Direction::Outbound, None, None));
    let wrong = json!({"direction": "sideways", "body": "", "channel": 7, "occurred_at": "soon", "to": 1});
    let expected = [
        ("/direction", "unknown_direction"),
        ("/body", "empty"),
        ("/channel", "wrong_type"),
        ("/occurred_at", "malformed"),
        ("/to", "unknown_member"),
    ];
    assert_eq!(faults(parse(wrong).unwrap_err()), expected.map(|(at, code)| (at.to_owned(), code)));
    let missing = [("/direction".to_owned(), "required"), ("/body".to_owned(), "required")];
    assert_eq!(faults(parse(json!({})).unwrap_err()), missing);
}

#[test]
fn a_message_may_be_five_minutes_ahead_and_no_more() {
    let at = |seconds: i64| {
        let at = NOW.plus_seconds(seconds).to_string();
        let body = json!({"direction": "inbound", "body": "x", "occurred_at": at});
        Log::parse(body.as_object().unwrap(), NOW).map(|log| log.occurred_at)
    };
    assert_eq!(at(300), Ok(Some(NOW.plus_seconds(300))));
    assert_eq!(at(-86_400 * 900), Ok(Some(NOW.plus_seconds(-86_400 * 900))));
    assert_eq!(faults(at(301).unwrap_err()), [("/occurred_at".to_owned(), "in_the_future")]);
}

#[test]
fn a_conversation_knows_its_latest_message_whatever_their_order() {
    let start = Start::parse(json!({"subject": ""}).as_object().unwrap()).unwrap();
    assert_eq!(start, Start { subject: None, channel: EMAIL.to_owned() });
    let id = ConversationId::from_bytes([1; 16]);
    let mut conversation = Conversation::new(id, AccountId::from_bytes([2; 16]), start, NOW);
    let shown = serde_json::to_value(conversation.view()).unwrap();
    assert_eq!(shown["last_message_at"], Value::Null);
    for days in [-3, -1, -2] {
        conversation.extend(NOW.plus_days(days));
    }
    assert_eq!((conversation.message_count, conversation.last_message_at), (3, NOW.plus_days(-1)));
}

#[test]
fn a_payload_carries_the_beginning_of_a_long_body() {
    let id = ConversationId::from_bytes([1; 16]);
    let start = Start { subject: None, channel: "phone".to_owned() };
    let conversation = Conversation::new(id, AccountId::from_bytes([2; 16]), start, NOW);
    assert_eq!(conversation.thread(), None, "only mails are threaded by subject");
    let body = "ä".repeat(MAX_PAYLOAD_BODY_CHARS + 1);
    let log = Log { direction: Direction::Inbound, body, channel: None, subject: None, occurred_at: None };
    let message = Message::new(MessageId::from_bytes([3; 16]), &conversation, &log, &Actor::System, NOW);
    assert_eq!(message.channel, "phone");
    let (whole, cut) = (serde_json::to_value(message.view()), serde_json::to_value(message.payload_view()));
    let (whole, cut) = (whole.unwrap(), cut.unwrap());
    assert_eq!((whole["body"].as_str(), &whole["body_truncated"]), (Some(log.body.as_str()), &json!(false)));
    assert_eq!(cut["body"].as_str().unwrap().chars().count(), MAX_PAYLOAD_BODY_CHARS);
    assert_eq!((&cut["body_truncated"], &cut["attachments"]), (&json!(true), &json!([])));
}

#[test]
fn an_account_is_given_an_address_in_lower_case() {
    let parse = |body: Value| parse_address(body.as_object().unwrap()).map_err(faults);
    let address = Email::parse("ana@acme.test").unwrap();
    assert_eq!(parse(json!({"address": "Ana@Acme.test"})), Ok(address));
    let table = [
        (json!({}), ("/address", "required")),
        (json!({"address": "ana"}), ("/address", "malformed")),
        (json!({"address": 1}), ("/address", "wrong_type")),
        (json!({"address": "ana@acme.test", "name": "Ana"}), ("/name", "unknown_member")),
    ];
    for (body, (pointer, code)) in table {
        assert_eq!(parse(body.clone()), Err(vec![(pointer.to_owned(), code)]), "{body}");
    }
}
