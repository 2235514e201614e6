//! Channels and promo codes: unique per company, archived or deleted, and independent of each other.

use rapport_app::channel::{AddCode, ArchiveCode, CreateChannel, DeleteChannel, DeleteCode, RenameChannel};
use rapport_domain::channel::{ChannelCode, PromoCode};
use rapport_domain::id::ChannelId;
use rapport_testkit::{TestApp, TestCompany};
use serde_json::json;

use crate::refusal;

fn code(text: &str) -> PromoCode {
    PromoCode::parse(text).unwrap()
}

fn add(channel: ChannelId, text: &str) -> AddCode {
    AddCode { channel, code: code(text), archived: false }
}

fn archive(channel: ChannelId, text: &str, archived: bool) -> ArchiveCode {
    ArchiveCode { channel, code: code(text), archived }
}

fn delete(channel: ChannelId, text: &str) -> DeleteCode {
    DeleteCode { channel, code: code(text) }
}

fn codes(company: &TestCompany, channel: ChannelId) -> Vec<ChannelCode> {
    company.read(move |snapshot| rapport_store::channel::codes(snapshot, channel))
}

fn names(company: &TestCompany) -> Vec<String> {
    let channels = company.read(rapport_store::channel::list);
    channels.into_iter().map(|channel| channel.name).collect()
}

#[test]
fn a_code_is_unique_per_company_whatever_its_case_and_channel() {
    TestApp::on_both(|app| {
        let one = app.channel("One", &["Spring"]);
        let two = app.channel("Two", &[]);
        for (channel, text) in [(one.id, "Spring"), (one.id, "SPRING"), (two.id, "spring")] {
            assert_eq!(refusal(app.write(add(channel, text))), "conflict code_taken", "{text}");
        }
        let globex = app.company("globex");
        assert_eq!(codes(&globex, globex.channel("One", &["spring"]).id).len(), 1);
        assert_eq!(codes(app, one.id).len(), 1);
    });
}

#[test]
fn an_archived_codes_name_stays_taken_and_a_deleted_ones_is_free() {
    TestApp::on_both(|app| {
        let channel = app.channel("One", &["OLD", "GONE"]);
        let archived = app.write(archive(channel.id, "old", true)).unwrap();
        assert_eq!((archived.code.as_str(), archived.archived_at), ("OLD", Some(app.clock().now())));
        let since = app.clock().now();
        app.clock().advance_days(1);
        assert_eq!(
            app.write(archive(channel.id, "OLD", true)).unwrap().archived_at,
            Some(since),
            "it keeps the first time"
        );
        assert_eq!(refusal(app.write(add(channel.id, "Old"))), "conflict code_taken");
        app.write(delete(channel.id, "gone")).unwrap();
        assert_eq!(app.write(add(channel.id, "Gone")).unwrap().code.as_str(), "Gone");
        assert_eq!(app.write(archive(channel.id, "OLD", false)).unwrap().archived_at, None);
        let kept: Vec<(String, bool)> = codes(app, channel.id)
            .into_iter()
            .map(|kept| (kept.code.as_str().to_owned(), kept.archived_at.is_some()))
            .collect();
        assert_eq!(kept, [("Gone".to_owned(), false), ("OLD".to_owned(), false)]);
    });
}

#[test]
fn channel_names_are_unique_whatever_their_case() {
    TestApp::on_both(|app| {
        let one = app.channel("Spring fair", &[]);
        let two = app.channel("Autumn", &[]);
        assert_eq!(
            refusal(app.write(CreateChannel { name: "SPRING FAIR".to_owned() })),
            "conflict name_taken"
        );
        let taken = RenameChannel { id: two.id, name: "spring Fair".to_owned() };
        assert_eq!(refusal(app.write(taken)), "conflict name_taken");
        let own = app.write(RenameChannel { id: one.id, name: "SPRING Fair".to_owned() }).unwrap();
        assert_eq!((own.id, own.name.as_str()), (one.id, "SPRING Fair"));
        assert_eq!(names(app), ["Autumn", "SPRING Fair"]);
    });
}

#[test]
fn a_renamed_channel_shows_its_new_name_on_its_accounts() {
    TestApp::on_both(|app| {
        let channel = app.channel("Fair", &["FAIR"]);
        app.upsert(json!({"imported_id": "crm-1", "promo_code": "fair"}));
        app.write(RenameChannel { id: channel.id, name: "Trade fair".to_owned() }).unwrap();
        assert_eq!(app.account("crm-1").channel.unwrap().name, "Trade fair");
    });
}

#[test]
fn a_channel_with_accounts_cannot_be_deleted_and_one_without_takes_its_codes() {
    TestApp::on_both(|app| {
        let used = app.channel("Used", &["USED"]);
        let free = app.channel("Free", &["ONE", "TWO"]);
        app.upsert(json!({"imported_id": "crm-1", "promo_code": "used"}));
        assert_eq!(refusal(app.write(DeleteChannel(used.id))), "conflict channel_in_use");
        app.write(DeleteChannel(free.id)).unwrap();
        assert_eq!((names(app), app.rows("promo_code")), (vec!["Used".to_owned()], 1));
        assert!(!app.upsert(json!({"imported_id": "crm-2", "promo_code": "ONE"})).promo_code_matched);
        assert_eq!(app.write(add(used.id, "one")).unwrap().code.as_str(), "one", "the codes are free again");
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    TestApp::on_both(|app| {
        let channel = app.channel("One", &["ONE"]);
        let other = app.channel("Two", &[]);
        let gone = ChannelId::from_bytes([9; 16]);
        assert_eq!(refusal(app.write(DeleteChannel(gone))), "no such channel");
        assert_eq!(refusal(app.write(RenameChannel { id: gone, name: "x".to_owned() })), "no such channel");
        assert_eq!(refusal(app.write(add(gone, "NEW"))), "no such channel");
        assert_eq!(refusal(app.write(archive(gone, "ONE", true))), "no such channel");
        assert_eq!(refusal(app.write(archive(channel.id, "TWO", true))), "no such promo code");
        assert_eq!(refusal(app.write(delete(channel.id, "TWO"))), "no such promo code");
        // A code can be addressed only under its own channel.
        assert_eq!(refusal(app.write(archive(other.id, "ONE", true))), "no such promo code");
        assert_eq!(refusal(app.write(delete(other.id, "ONE"))), "no such promo code");
        assert_eq!(codes(app, channel.id)[0].archived_at, None);
    });
}
