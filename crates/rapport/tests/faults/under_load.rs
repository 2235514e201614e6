//! A service that runs through faults while clients write.

use crate::check::{Clients, compare_attempts, verify, verify_arrivals, wait_until_done};
use crate::load::{Load, Written};
use crate::program::Service;
use crate::report::Run;
use crate::scene::Scene;

/// Causes the faults while clients write, and checks what is left when they have ended and everything is delivered.
pub fn under_load(
    run: &mut Run,
    scene: &Scene,
    serve: impl FnOnce(&Scene) -> Service,
    faults: impl FnOnce(&mut Run),
) {
    let mut service = serve(scene);
    scene.create_webhook(&service);
    let load = Load::start(&scene.credentials, &[&service.address]);
    faults(run);
    let written = load.finish();

    run.open = wait_until_done(&scene.place);
    assert!(service.is_running(), "the service ended unexpectedly");
    drop(service);
    run.acknowledged = written.iter().map(Written::acknowledged).sum();
    run.findings = verify(&scene.place, &written, Clients::Ended);
    run.findings.expect(run.acknowledged > 0, || "nothing was acknowledged".to_owned());
    if run.open == 0 {
        verify_arrivals(&scene.place, &scene.receiver, &mut run.findings);
    }
    run.needless = compare_attempts(&scene.place, &scene.receiver, &mut run.findings);
}
