//! A provider that breaks the rules, and people who do. Nobody comes in, and the audit log has the reason.

use std::sync::Arc;

use rapport_domain::sso::entry::Reason;
use rapport_testkit::{Engine, OidcProvider};
use serde_json::{Value, json};

use crate::harness::{Scene, on_both};

/// With these orders, nobody who logs in comes in.
async fn refuses(scene: &Scene, orders: Value, reason: Reason) {
    scene.order(orders.clone());
    // Refusals for the same reason are recorded once a minute.
    scene.app.clock().advance_seconds(61);
    let before = scene.members();
    assert_eq!(scene.log_in().await.err(), Some(reason), "{orders}");
    assert_eq!(scene.reasons()[0], reason.as_str(), "{orders}");
    assert_eq!(scene.members(), before, "{orders}");
    assert_eq!(scene.app.rows("session"), 0, "{orders}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_for_this_login_is_refused() {
    on_both(async |scene| {
        let now = scene.provider.started_at().as_micros() / 1_000_000;
        let token = |claims: Value| json!({ "token": claims });
        for (orders, reason) in [
            (token(json!({"iss": "https://login.evil.test"})), Reason::WrongIssuer),
            (token(json!({"iss": format!("{}/", scene.provider.issuer)})), Reason::WrongIssuer),
            (token(json!({"aud": "another"})), Reason::WrongAudience),
            (token(json!({"aud": ["rapport", "another"]})), Reason::WrongAudience),
            (token(json!({"aud": null})), Reason::WrongAudience),
            (token(json!({"nonce": "n".repeat(52)})), Reason::WrongNonce),
            (token(json!({"nonce": null})), Reason::WrongNonce),
            (token(json!({"exp": now - 1})), Reason::ExpiredToken),
            (token(json!({"exp": null})), Reason::BadToken),
            (token(json!({"sub": null})), Reason::BadToken),
            (token(json!({"email_verified": false})), Reason::UnverifiedEmail),
            (token(json!({"email_verified": null})), Reason::UnverifiedEmail),
            (token(json!({"email": "ana@evil.test"})), Reason::ForeignDomain),
            (token(json!({"email": "nobody"})), Reason::NoEmail),
            (json!({"silent": "eve"}), Reason::ForeignDomain),
        ] {
            refuses(scene, orders, reason).await;
        }
        scene.order(json!({}));
        scene.log_in().await.expect("a session, once all is well");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_providers_signature_is_refused() {
    on_both(async |scene| {
        for (orders, reason) in [
            (json!({"key": "unpublished"}), Reason::UnknownKey),
            (json!({"algorithm": "none"}), Reason::BadSignature),
            // The client secret is no key, though the provider knows it too.
            (json!({"algorithm": "HS256"}), Reason::BadSignature),
            (json!({"algorithm": "HS256", "metadata": {"id_token_signing_alg_values_supported": ["HS256", "RS256"]}}),
             Reason::BadSignature),
        ] {
            refuses(scene, orders, reason).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_looked_up_again_when_they_change() {
    on_both(async |scene| {
        // Tokens must outlive what the clock is moved by.
        let exp = scene.provider.started_at().plus_days(1).as_micros() / 1_000_000;
        let order = |more: Value| {
            let mut orders = json!({"token": {"exp": exp}});
            orders.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            scene.order(orders);
        };
        let asked =
            || scene.provider.requests().iter().filter(|request| request.as_str() == "GET /jwks").count();
        order(json!({}));
        scene.log_in().await.expect("a session");
        let before = asked();
        // A new key is found at once, unless we have asked a moment ago.
        order(json!({"key": "second", "published": ["first", "second"]}));
        assert_eq!(scene.log_in().await.err(), Some(Reason::UnknownKey));
        scene.app.clock().advance_seconds(60);
        scene.log_in().await.expect("a session");
        assert_eq!(asked(), before + 1);
        // Tokens with unknown keys don't make us ask all the time.
        order(json!({"key": "unpublished", "published": ["second"]}));
        for _ in 0..3 {
            assert_eq!(scene.log_in().await.err(), Some(Reason::UnknownKey));
        }
        assert_eq!(asked(), before + 1);
        // A key that is no longer published is worth nothing after ten minutes.
        order(json!({"key": "first", "published": ["second"]}));
        scene.app.clock().advance_seconds(600);
        assert_eq!(scene.log_in().await.err(), Some(Reason::UnknownKey));
        order(json!({"key": "second", "published": ["second"]}));
        scene.log_in().await.expect("a session");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_used_once() {
    on_both(async |scene| {
        // Even a provider that accepts a code twice lets nobody in twice.
        for orders in [json!({}), json!({"code": "reusable"})] {
            scene.order(orders);
            let started = scene.start().await.expect("started");
            let query = scene.visit(&started).await;
            scene.finish(&started.cookie, &query).await.expect("a session");
            let sent = scene.provider.requests().len();
            assert_eq!(scene.finish(&started.cookie, &query).await.err(), Some(Reason::Replayed));
            assert_eq!(scene.provider.requests().len(), sent, "the provider isn't even asked");
        }
        // The code alone, in a login of one's own, doesn't fit the challenge.
        scene.order(json!({}));
        let (hers, mine) = (scene.start().await.expect("started"), scene.start().await.expect("started"));
        let stolen = scene.visit(&hers).await;
        let mut query = scene.visit(&mine).await;
        let code =
            |query: &[(String, String)]| query.iter().find(|(name, _)| name == "code").unwrap().1.clone();
        for (name, value) in &mut query {
            if name == "code" {
                *value = code(&stolen);
            }
        }
        assert_eq!(scene.finish(&mine.cookie, &query).await.err(), Some(Reason::CodeRefused));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_another_browser_is_refused() {
    on_both(async |scene| {
        let (hers, mine) = (scene.start().await.expect("started"), scene.start().await.expect("started"));
        let query = scene.visit(&hers).await;
        assert_eq!(scene.finish(&mine.cookie, &query).await.err(), Some(Reason::WrongState));
        assert_eq!(scene.finish("", &query).await.err(), Some(Reason::WrongState));
        scene.finish(&hers.cookie, &query).await.expect("her own browser");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_names_another_provider_is_refused() {
    on_both(async |scene| {
        let started = scene.start().await.expect("started");
        let mut query = scene.visit(&started).await;
        query.retain(|(name, _)| name != "iss");
        query.push(("iss".to_owned(), "https://login.evil.test".to_owned()));
        let sent = scene.provider.requests().len();
        assert_eq!(scene.finish(&started.cookie, &query).await.err(), Some(Reason::WrongIssuer));
        assert_eq!(scene.provider.requests().len(), sent, "no code leaves us");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_client_secret_is_told_apart_from_a_wrong_code() {
    on_both(async |scene| {
        scene.set_up(json!({"client_secret": "not the one"}));
        refuses(scene, json!({}), Reason::ClientRefused).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_one_provider_opens_no_company_of_another() {
    let (ours, theirs) = (Arc::new(OidcProvider::start()), Arc::new(OidcProvider::start()));
    for engine in Engine::BOTH {
        let scene = Scene::on(engine, &ours);
        // The other provider confirms a login with the same state and nonce, for the same client id.
        let started = scene.start().await.expect("started");
        let redirect = "https://crm.acme.test/sso/acme/callback";
        let people = json!({"ana": {"email": "ana@acme.test", "email_verified": true}});
        theirs.order(&json!({"people": people, "silent": "ana", "redirects": [redirect]}));
        let page = started.url.replace(&ours.issuer, &theirs.issuer);
        let back = theirs.log_in(&page).await;
        let query = back.split_once('?').expect("an answer").1;
        let mut query: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        query.retain(|(name, _)| name != "iss");
        assert_eq!(scene.finish(&started.cookie, &query).await.err(), Some(Reason::CodeRefused));
    }
}
