//! `rapport health`: what it says and how it exits, next to a service that is ready, not ready or not there.

use rapport_testkit::{PostgresProxy, PostgresServer};

use crate::program::{Place, program, run, wait_until};

#[test]
fn a_ready_service_is_ready() {
    Place::each(|place| {
        let service = place.serve();
        let asked = run(&mut program(&["health", "--listen", &service.address]));
        assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), "ready\n"), "{}", asked.stderr);
        // The address comes from any source, as it does for the service.
        let asked = run(program(&["health"]).env("RAPPORT_LISTEN", &service.address));
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    });
}

#[test]
fn an_outage_is_not_ready_until_it_ends() {
    let proxy = PostgresProxy::start(&PostgresServer::shared().fresh_database());
    let place = Place::on(proxy.url().to_owned());
    let service = place.serve();
    let health = || run(&mut program(&["health", "--listen", &service.address]));
    proxy.refuse();
    wait_until("the service to be not ready", || health().code == Some(1));
    let asked = health();
    assert_eq!(asked.stdout, "");
    assert!(asked.stderr.starts_with("rapport: not ready: the database "), "{}", asked.stderr);
    assert_eq!(asked.stderr.lines().count(), 1, "{}", asked.stderr);
    proxy.heal();
    wait_until("the service to be ready", || health().code == Some(0));
}

#[test]
fn nobody_there_is_not_ready() {
    for (address, said) in [("127.0.0.1:1", "127.0.0.1:1"), ("127.0.0.1:0", "--listen")] {
        let asked = run(&mut program(&["health", "--listen", address]));
        assert_eq!((asked.code, asked.stdout.as_str()), (Some(1), ""), "{address}");
        assert!(asked.stderr.contains(said), "{address}: {}", asked.stderr);
        assert_eq!(asked.stderr.lines().count(), 1, "{address}: {}", asked.stderr);
    }
}
