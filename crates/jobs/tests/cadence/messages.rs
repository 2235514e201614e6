//! Messages: an outbound one is contact, an inbound reply is not.

use rapport_app::conversation::{LogMessage, StartConversation};
use rapport_domain::conversation::{Log, Start};
use rapport_domain::id::AccountId;
use serde_json::json;

use crate::harness::Sweeping;

/// Logs a message dated today on a new conversation of the account.
fn log(app: &Sweeping, account: AccountId, direction: &str) {
    let body = json!({"subject": "Hello"});
    let request = Start::parse(body.as_object().unwrap()).unwrap();
    let conversation = app.write(StartConversation { account, request }).expect("a conversation").id;
    let body = json!({"direction": direction, "body": "How are you?"});
    let log = Log::parse(body.as_object().unwrap(), app.clock().now()).expect("a message");
    app.write(LogMessage { conversation, log }).expect("logged");
}

#[test]
fn an_inbound_reply_does_not_reset_the_clock() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(41);
        log(app, id, "inbound");
        app.pass(1, 0);
        app.expect(id, 1, "they wrote, but nobody wrote to them");
        log(app, id, "inbound");
        app.pass(50, 0);
        app.expect(id, 1, "nor does it re-arm");
    });
}

#[test]
fn an_outbound_message_on_any_conversation_resets_the_clock_and_re_arms() {
    Sweeping::on_both(|app| {
        let id = app.customer("crm-1");
        app.clock().advance_days(41);
        log(app, id, "outbound");
        app.pass(41, 0);
        app.expect(id, 0, "41 days after the message");
        app.pass(1, 0);
        app.expect(id, 1, "42 days after the message");
        log(app, id, "outbound");
        app.pass(42, 0);
        app.expect(id, 2, "a message on another conversation began another episode");
    });
}
