//! The members page: members, invitations and the actions on both.

use rapport_app::Outside;
use rapport_domain::member::Role;
use rapport_testkit::Engine;
use serde_json::{Value, json};

use crate::harness::{Server, Tenant, on_both_engines};
use crate::person::{Person, Seen};

on_both_engines!(
    members_are_listed_with_role_and_state,
    without_mail_an_invitation_is_a_link_shown_once,
    with_mail_an_invitation_is_sent,
    a_refused_invitation_keeps_what_was_typed,
    an_invitation_is_sent_again_or_revoked,
    a_role_is_changed,
    a_member_is_deactivated_and_comes_back,
    a_member_is_removed,
    the_last_owner_cannot_be_removed,
    an_admin_cannot_change_an_owner,
    a_password_reset_link_is_shown_or_sent,
    members_are_paged,
);

const PATH: &str = "/settings/members";

/// An owner in addition to the company's first one.
fn owner(acme: &Tenant) -> Person<'_> {
    Person::of(acme, Role::Owner)
}

async fn member(acme: &Tenant, id: &str) -> Value {
    acme.get(&format!("/api/members/{id}/")).send().await.expect(200)
}

/// The link shown on a page.
fn link(page: &Seen) -> String {
    let text = page.0.text();
    let rest = text.split("<code id=\"link\">").nth(1).expect("a link");
    rest.split('<').next().unwrap().to_owned()
}

async fn members_are_listed_with_role_and_state(acme: Tenant) {
    let eve = acme.company.employ("eve@acme.test", "<b>Eve</b> \u{202e}", Role::Member);
    let ana = owner(&acme);
    let page = ana.see(PATH).await.expect(200).says("&#60;b&#62;Eve&#60;/b&#62;").says_not("<b>Eve");
    let page = page.says("eve@acme.test").says("active").says("<span class=\"badge\">you</span>");
    page.says(&format!("/settings/members/{}/remove", eve.person)).says("No pending invitations");
}

async fn without_mail_an_invitation_is_a_link_shown_once(acme: Tenant) {
    let ana = owner(&acme);
    let form = ana.form();
    let fields = [("email", "Bo@Acme.test"), ("role", "admin")];
    let made = ana.send_form(PATH, form, &fields).await.expect(200).says("data-copy=\"link\"");
    let url = link(&made);
    assert!(url.contains("/invitation/rjn_"), "{url}");
    // A second click shows the same link and creates no second invitation.
    assert_eq!(link(&ana.send_form(PATH, form, &fields).await.expect(200)), url);
    let listed = acme.all_pages("/api/invitations/", 50).await;
    assert_eq!(
        (listed.len(), &listed[0]["email"], &listed[0]["role"]),
        (1, &json!("bo@acme.test"), &json!("admin"))
    );
    ana.see(PATH).await.says("bo@acme.test").says_not("rjn_");
    let path = url.split_once("/invitation/").map(|(_, token)| format!("/invitation/{token}")).unwrap();
    Seen(acme.get(&path).without_credential().send().await).expect(200).says("bo@acme.test");
}

async fn with_mail_an_invitation_is_sent(engine: Engine) {
    let outside = Outside { base_url: "http://crm.acme.test".to_owned(), mail_configured: true };
    let server = Server::with_parts(engine, move |parts| parts.outside = outside.clone()).await;
    let ana = owner(&server);
    let sent = ana.send(PATH, &[("email", "bo@acme.test"), ("role", "member")]).await;
    sent.leads_to(PATH);
    assert!(sent.flash().contains("An invitation to bo@acme.test is on its way."), "{}", sent.flash());
    let mails = server.all_pages("/api/mails/", 50).await;
    assert_eq!((mails.len(), &mails[0]["recipient"]), (1, &json!("bo@acme.test")));
}

async fn a_refused_invitation_keeps_what_was_typed(acme: Tenant) {
    let ana = owner(&acme);
    let page = ana.send(PATH, &[("email", "no \"address"), ("role", "admin")]).await.expect(422);
    let page = page.says("value=\"no &#34;address\"").says("Must be an email address.");
    page.says("<option value=\"admin\" selected>");
    ana.send(PATH, &[("email", "bo@acme.test"), ("role", "king")]).await.expect(422).says("Must be one of");
    ana.send(PATH, &[]).await.expect(422).says("Is required.");
    assert_eq!(acme.all_pages("/api/invitations/", 50).await.len(), 0);
    ana.send(PATH, &[("email", "bo@acme.test"), ("role", "member")]).await.expect(200);
    let again = ana.send(PATH, &[("email", "bo@acme.test"), ("role", "member")]).await.expect(422);
    again
        .says("This address already has an open invitation; resend or revoke it.")
        .says("value=\"bo@acme.test\"");
    let admin = Person::of(&acme, Role::Admin);
    let page = admin.send(PATH, &[("email", "cy@acme.test"), ("role", "owner")]).await.expect(403);
    page.says("Only an owner can invite an owner.");
    assert_eq!(acme.all_pages("/api/invitations/", 50).await.len(), 1);
}

async fn an_invitation_is_sent_again_or_revoked(acme: Tenant) {
    let ana = owner(&acme);
    let first = link(&ana.send(PATH, &[("email", "bo@acme.test"), ("role", "member")]).await.expect(200));
    let id = acme.all_pages("/api/invitations/", 50).await[0]["id"].as_str().unwrap().to_owned();
    let second = link(&ana.send(&format!("/settings/invitations/{id}/resend"), &[]).await.expect(200));
    assert_ne!(first, second);
    ana.see(&format!("/settings/invitations/{id}/resend")).await.leads_to(PATH);
    ana.send(&format!("/settings/invitations/{id}/revoke"), &[]).await.leads_to(PATH);
    assert_eq!(acme.all_pages("/api/invitations/", 50).await.len(), 0);
    let token = second.rsplit('/').next().unwrap();
    Seen(acme.get(&format!("/invitation/{token}")).without_credential().send().await).expect(404);
    for act in ["resend", "revoke"] {
        ana.send(&format!("/settings/invitations/{id}/{act}"), &[]).await.expect(404);
        ana.send(&format!("/settings/invitations/x/{act}"), &[]).await.expect(404);
    }
}

async fn a_role_is_changed(acme: Tenant) {
    let (ana, bo) = (owner(&acme), Person::of(&acme, Role::Member));
    let path = format!("/settings/members/{}/role", bo.id);
    ana.send(&path, &[("role", "admin")]).await.leads_to(PATH);
    assert_eq!(member(&acme, &bo.id.to_string()).await["role"], json!("admin"));
    ana.send(&path, &[("role", "king")]).await.expect(422).says("Role must be one of");
    ana.send(&path, &[]).await.expect(422);
    assert_eq!(member(&acme, &bo.id.to_string()).await["role"], json!("admin"));
    // A member can't change anyone.
    let cy = Person::of(&acme, Role::Member);
    cy.send(&path, &[("role", "member")]).await.expect(403);
}

async fn a_member_is_deactivated_and_comes_back(acme: Tenant) {
    let (ana, bo) = (owner(&acme), Person::of(&acme, Role::Member));
    let done = ana.send(&format!("/settings/members/{}/deactivate", bo.id), &[]).await;
    done.leads_to(PATH);
    let undo = format!("/settings/members/{}/reactivate", bo.id);
    assert!(done.flash().contains(&undo), "{}", done.flash());
    assert_eq!(member(&acme, &bo.id.to_string()).await["active"], json!(false));
    ana.see(PATH).await.says("deactivated").says(&undo);
    bo.see("/").await.leads_to("/login");
    ana.send(&undo, &[]).await.leads_to(PATH);
    assert_eq!(member(&acme, &bo.id.to_string()).await["active"], json!(true));
    // Their old session stays ended.
    bo.see("/").await.leads_to("/login");
}

async fn a_member_is_removed(acme: Tenant) {
    let (ana, bo) = (owner(&acme), Person::of(&acme, Role::Member));
    let path = format!("/settings/members/{}/remove", bo.id);
    ana.send(&path, &[]).await.leads_to(PATH);
    acme.get(&format!("/api/members/{}/", bo.id)).send().await.expect_problem(404, "not_found");
    ana.send(&path, &[]).await.expect(404);
    ana.send("/settings/members/x/remove", &[]).await.expect(404);
}

async fn the_last_owner_cannot_be_removed(acme: Tenant) {
    let ana = owner(&acme);
    // The company's first owner is removed first.
    for found in acme.all_pages("/api/members/", 50).await {
        let id = found["id"].as_str().unwrap();
        if id != ana.id.to_string() {
            ana.send(&format!("/settings/members/{id}/remove"), &[]).await.leads_to(PATH);
        }
    }
    for (act, fields) in [("remove", [("x", "")]), ("deactivate", [("x", "")]), ("role", [("role", "admin")])]
    {
        let page = ana.send(&format!("/settings/members/{}/{act}", ana.id), &fields).await.expect(422);
        page.says("A company needs at least one owner.").says("role=\"alert\"");
    }
    let found = member(&acme, &ana.id.to_string()).await;
    assert_eq!((&found["role"], &found["active"]), (&json!("owner"), &json!(true)));
}

async fn an_admin_cannot_change_an_owner(acme: Tenant) {
    let (ana, bo) = (owner(&acme), Person::of(&acme, Role::Admin));
    bo.see(PATH).await.says_not(&format!("/settings/members/{}/remove", ana.id)).says_not("value=\"owner\"");
    let page = bo.send(&format!("/settings/members/{}/remove", ana.id), &[]).await.expect(403);
    page.says("Only an owner can change or remove an owner.");
    member(&acme, &ana.id.to_string()).await;
}

async fn a_password_reset_link_is_shown_or_sent(acme: Tenant) {
    let (ana, bo) = (owner(&acme), Person::of(&acme, Role::Member));
    let path = format!("/settings/members/{}/password-reset", bo.id);
    let url = link(&ana.send(&path, &[]).await.expect(200));
    assert!(url.contains("/password-reset/rpw_"), "{url}");
    ana.see(PATH).await.says_not("rpw_");
    ana.send(&format!("/settings/members/{}/deactivate", bo.id), &[]).await.leads_to(PATH);
    ana.send(&path, &[]).await.expect(422).says("role=\"alert\"");
}

async fn members_are_paged(acme: Tenant) {
    let ana = owner(&acme);
    for number in 0..60 {
        let email = format!("m{number:02}@acme.test");
        acme.company.employ(&email, &format!("M {number:02}"), Role::Member);
    }
    let first = ana.see(PATH).await.expect(200).says("M 10").says_not("M 59");
    let text = first.0.text().to_owned();
    assert!(text.len() < 100_000, "{} bytes", text.len());
    let next = text.split("href=\"/settings/members?after=").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("{PATH}?after={}", next.expect("a next page"));
    ana.see(&path).await.expect(200).says("M 59").says_not("M 10<");
}
