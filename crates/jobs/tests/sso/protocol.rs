//! Logins that go well, and what we ask of the provider.

use rapport_app::sso::domain::ReleaseDomain;
use rapport_app::sso::login::SignedIn;
use rapport_app::{Access, Needs, session};
use rapport_domain::credential::Presented;
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::member::Role;
use rapport_domain::right::Right;
use rapport_domain::sso::entry::Reason;
use serde_json::json;

use crate::harness::on_both;

fn presented(signed_in: &SignedIn) -> Presented {
    let text = signed_in.session.as_deref().expect("a new session");
    session::read_cookie(text).expect("a session")
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_logs_in_and_becomes_a_member() {
    on_both(async |scene| {
        let signed_in = scene.log_in().await.expect("a session");
        assert_eq!(signed_in.next, "/clients");
        let session = Access::Credential(presented(&signed_in));
        let found = scene.app.app().find(&session, Needs::Right(Right::Read), |_, _| Ok(()));
        let found = found.await.expect("alive");
        assert!(found.viewer.caller.by_sso);
        let members = scene.members();
        let ana = members.iter().find(|member| member.email.as_str() == "ana@acme.test").expect("a member");
        assert_eq!((ana.name.as_str(), ana.role), ("Ana Ruiz", Role::Member));
        scene.log_in().await.expect("again");
        assert_eq!(scene.members(), members);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_page_gets_state_nonce_and_a_challenge() {
    on_both(async |scene| {
        let (one, other) = (scene.start().await.expect("started"), scene.start().await.expect("started"));
        let read = |url: &str| -> Vec<(String, String)> {
            let (page, query) = url.split_once('?').expect("a query");
            assert_eq!(page, format!("{}/auth", scene.provider.issuer));
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
        };
        let value = |query: &[(String, String)], name: &str| {
            let found = query.iter().find(|(key, _)| key == name);
            found.unwrap_or_else(|| panic!("{name} is missing")).1.clone()
        };
        let (first, second) = (read(&one.url), read(&other.url));
        for (name, expected) in [
            ("response_type", "code"),
            ("client_id", scene.provider.client_id.as_str()),
            ("scope", "openid email profile"),
            ("code_challenge_method", "S256"),
            ("redirect_uri", "https://crm.acme.test/sso/acme/callback"),
        ] {
            assert_eq!(value(&first, name), expected);
        }
        for name in ["state", "nonce", "code_challenge"] {
            assert!(value(&first, name).len() >= 43, "{name}");
            assert_ne!(value(&first, name), value(&second, name), "{name}");
        }
        assert!(!one.url.contains(&scene.provider.client_secret));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_may_be_in_the_user_info_only() {
    on_both(async |scene| {
        scene.order(json!({"lean": true}));
        scene.log_in().await.expect("a session");
        assert!(scene.members().iter().any(|member| member.email.as_str() == "ana@acme.test"));
        // It must be about the same person.
        scene.order(json!({"lean": true, "userinfo": {"sub": "eve"}}));
        assert_eq!(scene.log_in().await.err(), Some(Reason::BadToken));
        scene.order(json!({"lean": true, "userinfo": {"email_verified": false}}));
        assert_eq!(scene.log_in().await.err(), Some(Reason::UnverifiedEmail));
        // Some providers write it as text.
        scene.order(json!({"token": {"email_verified": "true", "updated_at": "2026-01-05T09:00:00Z"}}));
        scene.log_in().await.expect("a session");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_want_the_secret_in_the_body() {
    on_both(async |scene| {
        scene.order(json!({"metadata": {"token_endpoint_auth_methods_supported": ["client_secret_post"]}}));
        scene.log_in().await.expect("a session");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_says_about_itself_is_kept_for_a_while() {
    on_both(async |scene| {
        let asked = || {
            let requests = scene.provider.requests();
            requests.iter().filter(|request| request.ends_with("openid-configuration")).count()
        };
        let before = asked();
        scene.log_in().await.expect("a session");
        scene.log_in().await.expect("a session");
        assert_eq!(asked(), before + 1);
        scene.app.clock().advance_seconds(600);
        scene.log_in().await.expect("a session");
        assert_eq!(asked(), before + 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_login_is_no_login() {
    on_both(async |scene| {
        scene.order(json!({"silent": "somebody unknown"}));
        assert_eq!(scene.log_in().await.err(), Some(Reason::Cancelled));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_domain_lets_nobody_in() {
    on_both(async |scene| {
        let started = scene.start().await.expect("started");
        let query = scene.visit(&started).await;
        let release = ReleaseDomain(EmailDomain::parse("acme.test").expect("a domain"));
        scene.app.write_as(&Access::CommandLine(scene.app.id()), release).expect("released");
        assert_eq!(scene.finish(&started.cookie, &query).await.err(), Some(Reason::Off));
        assert_eq!(scene.start().await.err(), Some(Reason::Off));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_asks_again_and_says_when_it_did() {
    on_both(async |scene| {
        let session = presented(&scene.log_in().await.expect("a session"));
        let started = scene.start_proof(session).await.expect("started");
        let query: Vec<(String, String)> =
            url::Url::parse(&started.url).expect("an address").query_pairs().into_owned().collect();
        for (name, value) in [("prompt", "login"), ("max_age", "0")] {
            assert!(query.contains(&(name.to_owned(), value.to_owned())), "{}", started.url);
        }
        let query = scene.visit(&started).await;
        let proved = scene.finish_in(Some(session), &started.cookie, &query).await.expect("proved");
        assert_eq!((proved.session, proved.next.as_str()), (None, "/clients"));

        // A provider that ignores the question says so, or nothing.
        let long_ago = scene.provider.started_at().plus_seconds(-3_600).as_micros() / 1_000_000;
        for auth_time in [json!(null), json!(long_ago)] {
            scene.order(json!({"token": {"auth_time": auth_time}}));
            let started = scene.start_proof(session).await.expect("started");
            let query = scene.visit(&started).await;
            let refused = scene.finish_in(Some(session), &started.cookie, &query).await.err();
            assert_eq!(refused, Some(Reason::NotAskedAgain), "{auth_time}");
        }
        // Somebody else logs in there.
        let people = json!({
            "ana": {"email": "ana@acme.test", "email_verified": true},
            "bo": {"email": "bo@acme.test", "email_verified": true},
        });
        scene.order(json!({"people": people, "silent": "bo"}));
        let started = scene.start_proof(session).await.expect("started");
        let query = scene.visit(&started).await;
        let refused = scene.finish_in(Some(session), &started.cookie, &query).await.err();
        assert_eq!(refused, Some(Reason::OtherPerson));
        scene.order(json!({}));
    })
    .await;
}
