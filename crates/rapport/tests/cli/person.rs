//! `rapport person`: an owner who cannot log in.

use crate::program::Place;

#[test]
fn a_locked_out_owner_gets_a_link_for_a_new_password() {
    Place::each(|place| {
        let service = place.serve();
        let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
        service.accept(&place.json(&create), "a good password");
        let base_url = format!("http://{}", service.address);
        let reset = |email: &str| place.run(&["person", "reset-link", email, "--base-url", &base_url]);
        let ended = reset("you@acme.test");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let link = ended.stdout.lines().next().unwrap();
        let path =
            link.strip_prefix(&base_url).unwrap_or_else(|| panic!("not a link of the service: {link}"));
        let (status, page) = service.get(path);
        assert_eq!(status, 200, "{page}");
        assert!(page.contains("you@acme.test") && page.contains("password"), "{page}");
        let unknown = reset("nobody@acme.test");
        assert_eq!(unknown.code, Some(1));
        assert!(unknown.stderr.contains("nobody@acme.test"), "{}", unknown.stderr);
    });
}
