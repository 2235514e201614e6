//! Where we connect for single sign-on, and what the test of a connection says. A company's owner enters the address, and
//! must learn nothing about the network that the service runs in.

use std::sync::Arc;
use std::time::Duration;

use rapport_app::sso::provider::{Bond, Provider, ProviderError, Providers as _};
use rapport_domain::sso::Issuer;
use rapport_domain::sso::entry::Reason;
use rapport_testkit::{Behaviour, Engine, OidcProvider, Receiver};
use serde_json::{Value, json};

use crate::harness::{Scene, sso};

fn provider(issuer: &str) -> Provider {
    Provider { issuer: Issuer::parse(issuer).expect("an issuer"), client_id: "rapport".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_not_public_is_dialled() {
    let real = OidcProvider::start();
    let strict = sso(&real, &[]);
    let unreachable = ProviderError::Unreachable(String::new()).to_string();
    let port = real.issuer.rsplit(':').next().expect("a port");
    for issuer in [
        real.issuer.clone(),
        format!("https://localhost:{port}"),
        format!("https://private.test:{port}"),
        "https://10.0.0.1".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "https://[::1]".to_owned(),
    ] {
        let error = strict.test(&provider(&issuer), real.started_at()).await.expect_err("refused");
        assert_eq!(error.to_string(), unreachable, "{issuer}");
        let ProviderError::Unreachable(reason) = error else { panic!("{error:?}") };
        assert!(reason.contains("is not public") && reason.contains("--allow-sso"), "{reason}");
    }
    assert_eq!(real.requests(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_cannot_send_us_elsewhere() {
    let real = Arc::new(OidcProvider::start());
    let inner = Receiver::start();
    let url = format!("https://private.test:{}/", inner.address().port());
    for engine in Engine::BOTH {
        let scene = Scene::on(engine, &real);
        for (name, reason) in [
            ("jwks_uri", Reason::ProviderUnreachable),
            ("token_endpoint", Reason::ProviderUnreachable),
            ("userinfo_endpoint", Reason::ProviderUnreachable),
        ] {
            scene.order(json!({"lean": true, "metadata": {name: url}}));
            scene.app.clock().advance_seconds(600);
            assert_eq!(scene.log_in().await.err(), Some(reason), "{name}");
        }
        for name in ["authorization_endpoint", "token_endpoint", "userinfo_endpoint"] {
            for bad in ["http://127.0.0.1/x", "javascript:alert(1)", "https://user@login.test/"] {
                scene.order(json!({"metadata": {name: bad}}));
                scene.app.clock().advance_seconds(600);
                assert_eq!(scene.start().await.err(), Some(Reason::ProviderFaulty), "{name} {bad}");
            }
        }
        // A redirect is an answer, and not a good one.
        let elsewhere = json!({"status": 302, "headers": {"location": url}, "body": ""});
        for path in ["/.well-known/openid-configuration", "/jwks"] {
            scene.order(json!({"answers": {path: elsewhere}}));
            scene.app.clock().advance_seconds(600);
            assert_eq!(scene.start().await.err(), Some(Reason::ProviderFaulty), "{path}");
        }
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_of_a_connection_says_what_is_wrong() {
    let real = Arc::new(OidcProvider::start());
    for engine in Engine::BOTH {
        let scene = Scene::on(engine, &real);
        assert_eq!(scene.test().await, None);
        let configuration = |answer: Value| json!({"answers": {"/.well-known/openid-configuration": answer}});
        let page = json!({"body": "<html>", "headers": {"content-type": "text/html"}});
        for (orders, part) in [
            (configuration(json!({"status": 404, "body": ""})), "returned status 404"),
            (configuration(page), "isn't what OpenID Connect requires"),
            (configuration(json!({"body": {"issuer": real.issuer}})), "isn't what OpenID Connect requires"),
            (json!({"metadata": {"issuer": "https://login.evil.test"}}), "names another issuer"),
            (json!({"metadata": {"token_endpoint": null}}), "token endpoint"),
            (json!({"metadata": {"authorization_endpoint": "http://login.test/"}}), "must be an https URL"),
            (json!({"published": []}), "publishes no key"),
            (
                json!({"metadata": {"id_token_signing_alg_values_supported": ["HS256", "none"]}}),
                "none of the algorithms",
            ),
        ] {
            scene.order(orders.clone());
            let said = scene.test().await.unwrap_or_else(|| panic!("{orders} passed the test"));
            assert!(said.contains(part), "{orders}: {said}");
        }
        let large = "x".repeat(300 << 10);
        scene.order(configuration(json!({"body": {"issuer": real.issuer, "x": large}})));
        assert!(
            scene.test().await.is_some_and(|said| said.contains("couldn't reach")),
            "a document without an end"
        );
        scene.set_up(json!({"issuer": "https://10.0.0.1/"}));
        assert!(
            scene.test().await.is_some_and(|said| said.contains("couldn't reach") && !said.contains("10.0"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_deadline_is_over_everything_and_a_slow_provider_holds_up_no_other() {
    let (real, slow) = (OidcProvider::start(), Receiver::start());
    slow.answer(Behaviour::Stall);
    let reach = Arc::new(sso(&real, &["127.0.0.0/8"]));
    let (here, there) = (provider(&real.issuer), provider(&slow.url("/")));
    let now = real.started_at();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (reach, there) = (Arc::clone(&reach), there.clone());
            tokio::spawn(async move { reach.test(&there, now).await })
        })
        .collect();
    while slow.connections() < waiting.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(reach.test(&there, now).await, Err(ProviderError::Busy), "eight wait for it, and no ninth");
    let bond = Bond {
        redirect_uri: "https://crm.acme.test/",
        state: "s",
        nonce: "n",
        verifier: &"v".repeat(43),
        asks_again: false,
    };
    reach.login_page(&here, bond, now).await.expect("another provider answers");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    let hasty = sso(&real, &["127.0.0.0/8"]).within(Duration::from_millis(300));
    let late = hasty.test(&there, now).await;
    assert_eq!(late, Err(ProviderError::Unreachable("no answer within 0.3 s".to_owned())));
}
