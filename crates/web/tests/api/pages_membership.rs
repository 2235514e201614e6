//! Pages that change who somebody is and where they belong: the company's name, one's own address and data, leaving, and
//! deleting the company.

use rapport_app::mail::take_due;
use rapport_app::{Access, Outside, Parts, password};
use rapport_domain::id::PersonId;
use rapport_domain::member::{Email, Role};
use rapport_testkit::app::Hire;
use rapport_testkit::{Archive, Engine};
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    the_company_is_renamed,
    a_new_address_is_confirmed_by_its_link,
    the_answer_is_the_same_for_an_address_that_has_a_login,
    a_wrong_password_changes_no_address_and_is_limited,
    without_mail_the_page_says_who_can_help,
    a_person_leaves_and_is_logged_out,
    a_person_of_two_companies_goes_on_in_the_other,
    the_last_owner_is_told_why_they_cannot_leave,
    an_owner_deletes_the_company_with_its_name_and_their_password,
    the_banner_is_on_every_page_and_an_owner_cancels,
    only_owners_see_the_deletion_and_the_export,
    everything_is_exported,
    a_person_downloads_their_own_data,
    too_many_mails_are_said_in_words,
);

const PASSWORD: &str = "a password of their own";

/// With mail, over plain http, so that the session's cookie keeps its name.
fn with_mail(parts: &mut Parts) {
    parts.outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: true };
}

async fn server_with_mail(engine: Engine) -> Server {
    Server::with_parts(engine, with_mail).await
}

/// A member with a password and a proven address, logged in.
fn person<'a>(tenant: &'a Tenant, address: &str, role: Role) -> Person<'a> {
    let services = tenant.company.app().services();
    let password_hash = password::hash(services, PASSWORD).unwrap();
    let email = Email::parse(address).unwrap();
    let hire = Hire { email, name: "Ana".to_owned(), role, password_hash, is_proven: true };
    let id = tenant.company.write_as(&Access::System(tenant.company.id()), hire).unwrap().person;
    Person::with_session(tenant, id)
}

/// The secret of the link in the mail to this address.
async fn link(server: &Server, address: &str) -> Option<String> {
    let sent = take_due(server.app.app(), server.company.id(), 100).await.unwrap();
    let mail = sent.into_iter().find(|mail| mail.recipient.as_str() == address).expect("a mail");
    let start = mail.plain.find("rem_")?;
    mail.plain[start..].split_whitespace().next().map(str::to_owned)
}

fn address(server: &Server, person: PersonId) -> String {
    let found = server.company.read(move |snapshot| rapport_store::member::get(snapshot, person));
    found.expect("a member").email.as_str().to_owned()
}

async fn the_company_is_renamed(acme: Tenant) {
    let ana = Person::of(&acme, Role::Admin);
    let fields = |name| [("name", name), ("time_zone", "UTC"), ("default_currency", "USD")];
    ana.send("/settings", &fields(" Acme & Sons ")).await.leads_to("/settings");
    ana.see("/").await.says("Acme &#38; Sons");
    let found = acme.get("/api/settings/").send().await.expect(200);
    assert_eq!((&found["name"], &found["project"]), (&json!("Acme & Sons"), &json!(acme.slug())));
    let refused = ana.send("/settings", &fields("")).await.expect(422);
    refused.says("aria-invalid=\"true\" aria-describedby=\"name-note\"").says("Must not be empty.");
    ana.see("/settings/audit").await.says("Acme &#38; Sons").says("Changed the settings");
}

async fn a_new_address_is_confirmed_by_its_link(engine: Engine) {
    let server = server_with_mail(engine).await;
    let ana = person(&server, "ana@old.test", Role::Member);
    let elsewhere = Person::with_session(&server, ana.id);
    let fields = [("email", "Ana@New.test"), ("email_password", PASSWORD)];
    let asked = ana.send("/profile/email", &fields).await;
    asked.leads_to("/profile");
    assert!(asked.flash().contains("is on its way to your new address"), "{}", asked.flash());
    let path = format!("/email-change/{}", link(&server, "ana@new.test").await.expect("a link"));
    ana.see("/profile").await.says("ana@old.test").says_not("ana@new.test");

    // The link alone leads to the login, and back.
    let stranger = Seen(server.get(&path).without_credential().send().await);
    assert!(stranger.leads_to("/login").contains("email-change"));
    let bo = person(&server, "bo@acme.test", Role::Member);
    bo.see(&path).await.expect(404).says("This link is for another login");
    ana.see(&path).await.expect(200).says("ana@old.test").says("ana@new.test");
    let done = ana.send(&path, &[]).await;
    done.leads_to("/profile");
    assert!(done.flash().contains("Your email address is now ana@new.test."), "{}", done.flash());
    assert_eq!(address(&server, ana.id), "ana@new.test");
    ana.see("/profile").await.expect(200).says("ana@new.test").says_not("Confirm your address");
    elsewhere.see("/profile").await.leads_to("/login");
    ana.see(&path).await.expect(404).says("was already used");
    ana.send(&path, &[]).await.expect(404);
    ana.see("/email-change/nonsense").await.expect(404);
}

async fn the_answer_is_the_same_for_an_address_that_has_a_login(engine: Engine) {
    let server = server_with_mail(engine).await;
    let globex = server.app.company("globex");
    let hire = Hire {
        email: Email::parse("known@beta.test").unwrap(),
        name: "Somebody".to_owned(),
        role: Role::Member,
        password_hash: "none".to_owned(),
        is_proven: true,
    };
    globex.write_as(&Access::System(globex.id()), hire).unwrap();
    let ana = person(&server, "ana@old.test", Role::Admin);
    let mut answers = Vec::new();
    for address in ["known@beta.test", "free@beta.test"] {
        let asked = ana.send("/profile/email", &[("email", address), ("email_password", PASSWORD)]).await;
        let listed = ana.see("/settings/mail").await.0.text().matches("Confirm your email address").count();
        answers.push((asked.0.status, asked.flash(), listed));
    }
    assert_eq!((answers[0].0, &answers[0].1), (answers[1].0, &answers[1].1));
    assert_eq!((answers[0].2, answers[1].2), (1, 2), "the list of mails shows the same for both");
}

async fn a_wrong_password_changes_no_address_and_is_limited(engine: Engine) {
    let server = server_with_mail(engine).await;
    let ana = person(&server, "ana@old.test", Role::Member);
    let guess = || ana.send("/profile/email", &[("email", "ana@new.test"), ("email_password", "wrong")]);
    let page = guess().await.expect(422);
    page.says("Incorrect password.").says("value=\"ana@new.test\"");
    for _ in 0..9 {
        guess().await.expect(422).says("Incorrect password.");
    }
    guess().await.expect(422).says("Too many incorrect passwords; wait a minute.");
    ana.send("/profile/email", &[("email", "no address"), ("email_password", PASSWORD)])
        .await
        .expect(422)
        .says("Must be an email address.");
    assert_eq!(server.app.rows("mail"), 0);
}

async fn without_mail_the_page_says_who_can_help(acme: Tenant) {
    let ana = Person::of(&acme, Role::Member);
    ana.see("/profile")
        .await
        .says("Ask an admin of your company to invite you with")
        .says_not("New email address");
}

async fn a_person_leaves_and_is_logged_out(server: Server) {
    let ana = person(&server, "ana@acme.test", Role::Member);
    ana.see("/profile").await.says("your login is deleted after 30 days");
    let left = ana.send("/profile/leave", &[]).await;
    left.leads_to("/login");
    assert!(left.flash().contains("You left the company."), "{}", left.flash());
    let cookies: Vec<&str> =
        left.0.headers.get_all("set-cookie").iter().map(|it| it.to_str().unwrap()).collect();
    assert!(cookies.iter().any(|cookie| cookie.starts_with("rapport=;")), "{cookies:?}");
    ana.see("/").await.leads_to("/login");
    let log = server.all_pages("/api/audit/?action=member.left", 10).await;
    assert_eq!(log[0]["actor"]["name"], json!("Ana"));
}

async fn a_person_of_two_companies_goes_on_in_the_other(server: Server) {
    let ana = person(&server, "ana@acme.test", Role::Member);
    let globex = server.app.company("globex");
    let hire = Hire {
        email: Email::parse("ana@acme.test").unwrap(),
        name: "Ana".to_owned(),
        role: Role::Member,
        password_hash: "none".to_owned(),
        is_proven: true,
    };
    globex.write_as(&Access::System(globex.id()), hire).unwrap();
    ana.see("/profile").await.says_not("your login is deleted");
    let left = ana.send("/profile/leave", &[]).await;
    left.leads_to("/");
    assert!(left.flash().contains("You left acme. You’re in globex now."), "{}", left.flash());
    let cookie = left.0.headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
    let cookie =
        cookie.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with("rapport="));
    let there = Person { cookie: cookie.expect("a session").to_owned(), ..ana };
    there.see("/").await.expect(200).says("globex");
}

async fn the_last_owner_is_told_why_they_cannot_leave(server: Server) {
    let first = server.company.read(rapport_store::member::list).remove(0).person;
    let owner = Person::with_session(&server, first);
    let refused = owner.send("/profile/leave", &[]).await.expect(422);
    refused.says("You are the last owner; make somebody else an owner first, or delete the company.");
    owner.see("/").await.expect(200);
}

async fn an_owner_deletes_the_company_with_its_name_and_their_password(engine: Engine) {
    let server = server_with_mail(engine).await;
    let ana = person(&server, "ana@acme.test", Role::Owner);
    let path = "/settings/deletion";
    ana.see("/settings").await.says("href=\"/settings/deletion\"").says("href=\"/settings/export\"");
    let page = ana.see(path).await.expect(200).says("href=\"/settings/export\"");
    page.says("deleted after 14 days").says_not("will be deleted on");
    let wrong = ana.send(path, &[("project", "acme"), ("current", "wrong")]).await.expect(422);
    wrong.says("Incorrect password.").says("value=\"acme\"");
    let wrong = ana.send(path, &[("project", "Acme"), ("current", PASSWORD)]).await.expect(422);
    wrong.says("Must be acme, the company&#39;s short name.");
    assert_eq!(server.app.rows("company_deletion"), 0);
    ana.send(path, &[("project", "acme"), ("current", PASSWORD)]).await.leads_to(path);
    ana.see(path).await.says("Cancel deletion").says("19 January 2026");
    let found = server.get("/api/settings/").send().await.expect(200);
    let deletion = &found["deletion"];
    assert_eq!((&deletion["at"], &deletion["requested_by"]), (&json!("2026-01-19T09:00:00Z"), &json!("Ana")));
    let mails = server.all_pages("/api/mails/", 50).await;
    assert_eq!((mails.len(), &mails[0]["kind"]), (2, &json!("company_deletion")));
    let again = ana.send(path, &[("project", "acme"), ("current", PASSWORD)]).await.expect(422);
    again.says("The company is waiting to be deleted already.");
}

async fn the_banner_is_on_every_page_and_an_owner_cancels(server: Server) {
    let (ana, bo) = (person(&server, "ana@acme.test", Role::Owner), Person::of(&server, Role::Member));
    ana.send("/settings/deletion", &[("project", "acme"), ("current", PASSWORD)]).await.leads_to("/");
    for path in ["/", "/accounts", "/profile"] {
        bo.see(path)
            .await
            .expect(200)
            .says("will be deleted on 19 January 2026")
            .says_not("/settings/deletion");
        ana.see(path).await.says("will be deleted on 19 January 2026").says("href=\"/settings/deletion\"");
    }
    bo.send("/settings/deletion/cancel", &[]).await.expect(403);
    let cancelled = ana.send("/settings/deletion/cancel", &[]).await;
    cancelled.leads_to("/settings/deletion");
    assert!(cancelled.flash().contains("Nothing was deleted"), "{}", cancelled.flash());
    bo.see("/").await.says_not("will be deleted on");
    assert_eq!(server.get("/api/settings/").send().await.expect(200)["deletion"], json!(null));
    ana.send("/settings/deletion/cancel", &[]).await.expect(404);
}

async fn only_owners_see_the_deletion_and_the_export(server: Server) {
    for role in [Role::Member, Role::Admin] {
        let other = Person::of(&server, role);
        for path in ["/settings/deletion", "/settings/export"] {
            other.see(path).await.expect(403).says("Your role doesn’t allow this");
        }
        let fields = [("project", "acme"), ("current", PASSWORD)];
        other.send("/settings/deletion", &fields).await.expect(403);
    }
    let admin = Person::of(&server, Role::Admin);
    admin.see("/settings").await.expect(200).says_not("/settings/deletion").says_not("/settings/export");
    assert_eq!(server.app.rows("company_deletion"), 0);
    let token = server.token_of(Role::Admin);
    server.get("/api/company/export/").token(&token).expect_refused(403, "role_required").await;
}

async fn everything_is_exported(server: Server) {
    for number in 0..120 {
        server.account(json!({"imported_id": format!("crm-{number}"), "name": "Nordlys"})).await;
    }
    let ana = person(&server, "ana@acme.test", Role::Owner);
    let by_page = ana.see("/settings/export").await.expect(200).0;
    let by_token = server.get("/api/company/export/").send().await;
    assert_eq!(by_token.status, 200);
    for file in [&by_page, &by_token] {
        assert_eq!(file.header("content-type"), Some("application/jsonl"));
        assert_eq!(
            file.header("content-disposition"),
            Some("attachment; filename=\"acme-2026-01-05.jsonl\"")
        );
        let lines: Vec<Value> = file.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let accounts = lines.iter().filter(|line| line["table"] == "account").count();
        assert_eq!((accounts, &lines[0]["project"]), (120, &json!("acme")));
        let end = lines.last().unwrap();
        assert_eq!((&end["end"], &end["rows"]), (&json!(true), &json!(lines.len() - 2)));
        assert_eq!(end["tables"]["account"], json!(120));
    }
    let by_page = ana.see("/settings/export?format=csv").await.expect(200).0;
    let by_token = server.get("/api/company/export/?format=csv").send().await;
    for file in [&by_page, &by_token] {
        assert_eq!(file.header("content-type"), Some("application/zip"));
        assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"acme-2026-01-05.zip\""));
        let archive = Archive::read(&file.body);
        assert_eq!(
            (archive.rows("account").len(), &archive.json("about.json")["project"]),
            (120, &json!("acme"))
        );
        assert_eq!(archive.json("manifest.json")["tables"]["account"], json!(120));
    }
    let log = server.all_pages("/api/audit/?action=company.exported", 10).await;
    let formats: Vec<&Value> = log.iter().map(|entry| &entry["detail"]["format"]).collect();
    assert_eq!(formats, ["csv", "csv", "jsonl", "jsonl"], "each is recorded");
    let wrong = server.get("/api/company/export/?format=xml").send().await.faults();
    assert_eq!(wrong, [("format".to_owned(), "unknown_format".to_owned())]);
    ana.see("/settings/export?format=xml").await.expect(422);
}

async fn a_person_downloads_their_own_data(server: Server) {
    let ana = person(&server, "ana@acme.test", Role::Member);
    Person::of(&server, Role::Admin);
    ana.see("/profile").await.says("href=\"/profile/data\" download");
    let file = ana.see("/profile/data").await.expect(200).0;
    assert_eq!(file.header("content-type"), Some("application/json"));
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"my-data-2026-01-05.json\""));
    let data = file.json();
    assert_eq!(data["login"]["email"], json!("ana@acme.test"));
    assert_eq!(data["sessions"].as_array().map(Vec::len), Some(1));
    let actions: Vec<&Value> =
        data["records"].as_array().unwrap().iter().map(|one| &one["row"]["action"]).collect();
    assert!(actions.contains(&&json!("person.exported")), "it is recorded: {actions:?}");
    assert!(!file.text().contains("A admin"));
}

async fn too_many_mails_are_said_in_words(engine: Engine) {
    let server = server_with_mail(engine).await;
    let ana = Person::of(&server, Role::Admin);
    ana.send("/settings/members", &[("email", "bo@beta.test"), ("role", "member")]).await.leads_to("/");
    let id = server.all_pages("/api/invitations/", 50).await[0]["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        ana.send(&format!("/settings/invitations/{id}/resend"), &[]).await.leads_to("/");
    }
    let refused = ana.send(&format!("/settings/invitations/{id}/resend"), &[]).await.expect(422);
    refused.says("The limit on mail for this address is reached; try again in 60 min.");
    let answer =
        server.post(&format!("/api/invitations/{id}/resend/")).expect_refused(429, "too_many_mails").await;
    assert_eq!(answer.header("retry-after"), Some("3600"));
}
