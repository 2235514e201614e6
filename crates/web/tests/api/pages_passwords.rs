//! The fields for passwords: they hide what is typed, and tell a password manager which password they want.

use std::fs;
use std::path::Path;

use rapport_app::invitation::Invite;
use rapport_app::password_reset::SendReset;
use rapport_app::{Outside, Parts};
use rapport_domain::member::{Email, Role};
use rapport_testkit::Engine;

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    fields_for_a_current_password_hide_it_and_ask_for_it,
    fields_for_a_new_password_hide_it_and_ask_for_a_new_one
);

const CURRENT: &str = "current-password";
const NEW: &str = "new-password";

/// The value of an attribute, with or without quotes.
fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let words = tag.split_ascii_whitespace();
    let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_default().trim_matches('"')
}

/// Asserts that a page has these fields for passwords, each with what it tells a password manager.
#[track_caller]
fn asks_for(page: &Seen, expected: &[(&str, &str)]) {
    let tags = page.0.text().split("<input ").skip(1).filter_map(|rest| rest.split('>').next());
    let is_password = |tag: &&str| {
        let name = attribute(tag, "name");
        name.contains("password") || name == "current" || attribute(tag, "type") == "password"
    };
    let tags: Vec<&str> = tags.filter(is_password).collect();
    for tag in &tags {
        assert_eq!(attribute(tag, "type"), "password", "{tag}");
        assert_eq!(attribute(tag, "value"), "", "{tag}");
    }
    let fields = tags.iter().map(|tag| (attribute(tag, "name"), attribute(tag, "autocomplete")));
    assert_eq!(fields.collect::<Vec<_>>(), expected);
}

fn with_mail(parts: &mut Parts) {
    parts.outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: true };
}

async fn fields_for_a_current_password_hide_it_and_ask_for_it(engine: Engine) {
    let server = Server::with_parts(engine, with_mail).await;
    let login = Seen(server.get("/login").without_credential().send().await).expect(200);
    asks_for(&login, &[("password", CURRENT)]);
    let ana = Person::of(&server, Role::Owner);
    let profile = ana.see("/profile").await.expect(200);
    asks_for(&profile, &[("email_password", CURRENT), ("current", CURRENT), ("password", NEW)]);
    asks_for(&ana.see("/settings/deletion").await.expect(200), &[("current", CURRENT)]);
    server.app.clock().advance_seconds(16 * 60);
    let asked = ana.send("/settings/ingest/key", &[]).await.expect(403).says("Confirm it’s you");
    asks_for(&asked, &[("password", CURRENT)]);
}

async fn fields_for_a_new_password_hide_it_and_ask_for_a_new_one(acme: Tenant) {
    let email = Email::parse("ida.berg@nordlys.test").unwrap();
    let invited = acme.company.write(Invite { email, name: None, role: Role::Member }).unwrap();
    let bo = acme.company.employ("bo@acme.test", "Bo", Role::Member).person;
    let reset = acme.company.write(SendReset(bo)).unwrap().expect("a link");
    let page = async |link: &str, query: &str| {
        let path = link.find("/invitation/").or(link.find("/password-reset/")).expect("a link");
        let path = format!("{}{query}", &link[path..]);
        Seen(acme.get(&path).without_credential().send().await).expect(200)
    };
    let link = invited.link.expect("a link");
    asks_for(&page(&link, "").await, &[("password", NEW)]);
    asks_for(&page(&link, "?login=existing").await, &[("password", CURRENT)]);
    asks_for(&page(&reset, "").await, &[("password", NEW)]);
}

/// The text of every template below a directory.
fn templates(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("templates").map(|entry| entry.expect("a template").path());
    let read = |path: std::path::PathBuf| {
        if path.is_dir() { templates(&path) } else { vec![fs::read_to_string(path).expect("a template")] }
    };
    entries.flat_map(read).collect()
}

/// Pages that aren't opened above, and those that come later.
#[test]
fn every_template_has_such_fields_for_passwords() {
    let mut found = 0;
    for template in templates(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates")) {
        let calls = template.split("call parts::text(").skip(1).filter_map(|call| call.split("%}").next());
        for call in calls {
            let texts: Vec<&str> = call.split('"').skip(1).step_by(2).collect();
            let [_, label, kind, _, attributes] = texts[..] else { continue };
            let is_password = label.to_lowercase().contains("password");
            if !is_password && kind != "password" {
                continue;
            }
            found += 1;
            assert_eq!(kind, "password", "{call}");
            let expected = match (is_password, attributes.contains("minlength=")) {
                (true, true) => NEW,
                (true, false) => CURRENT,
                // A secret of the company, not of the person.
                (false, _) => "off",
            };
            assert_eq!(attribute(attributes, "autocomplete"), expected, "{call}");
        }
    }
    assert!(found >= 9, "{found}");
}
