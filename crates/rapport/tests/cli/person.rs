//! `rapport person`: an owner who cannot log in.

use std::time::SystemTime;

use rapport_domain::time::Time;
use rapport_domain::totp::TotpSecret;

use crate::program::{Place, Service};

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

const PASSWORD: &str = "a good password";

/// A person at a browser: what a test of the command line needs of one.
struct Visitor<'a> {
    service: &'a Service,
    cookie: String,
}

impl Visitor<'_> {
    /// Loads the form of a page and sends it to a path; returns the head and the body of the response.
    fn send(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> (String, String) {
        let cookie = ("Cookie", self.cookie.as_str());
        let (_, shown) = self.service.exchange("GET", page, &[cookie], "").expect("an answer");
        let form = shown.split("name=\"form\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair("form", form.unwrap_or_default()).extend_pairs(fields);
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let headers = [cookie, kind, ("Sec-Fetch-Site", "same-origin")];
        self.service.exchange("POST", path, &headers, &body.finish()).expect("an answer")
    }

    /// Logs in; returns where that leads.
    fn log_in(&mut self) -> String {
        let (head, _) = self.send("/login", "/login", &[("email", "you@acme.test"), ("password", PASSWORD)]);
        let line = |start: &str| head.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
        let session = line("set-cookie: rapport=").split(';').next().unwrap_or_default();
        self.cookie = format!("rapport={session}");
        line("location: ").to_owned()
    }
}

#[test]
fn the_servers_administrator_resets_the_second_factors_of_a_person() {
    Place::each(|place| {
        let service = place.serve();
        let create = ["company", "create", "acme", "--name", "Acme", "--owner", "you@acme.test", "--json"];
        service.accept(&place.json(&create), PASSWORD);
        let reset = |email: &str| place.run(&["person", "reset-factors", email]);
        let ended = reset("you@acme.test");
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains("no second factor"), "{}", ended.stderr);

        let mut you = Visitor { service: &service, cookie: String::new() };
        assert_eq!(you.log_in(), "/");
        let (_, page) = you.send("/profile/app", "/profile/app", &[("password", PASSWORD)]);
        let key = page.split("<code id=\"key\">").nth(1).and_then(|rest| rest.split('<').next());
        let key = key.unwrap_or_else(|| panic!("no key in {page}")).replace(' ', "");
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
        let code = TotpSecret::parse(&key).unwrap().code_at(Time::from_micros(i64::try_from(now).unwrap()));
        let (head, page) = you.send("/profile/app", "/profile/app/confirm", &[("code", &code)]);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{page}");
        let session = you.cookie.clone();
        assert_eq!(you.log_in(), "/login/second");

        let ended = reset("you@acme.test");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("you@acme.test has no second factor any more"), "{}", ended.stdout);
        let (head, _) = service.exchange("GET", "/profile", &[("Cookie", &session)], "").unwrap();
        assert!(head.contains("location: /login"), "{head}");
        assert_eq!(you.log_in(), "/");
        assert_eq!(reset("nobody@acme.test").code, Some(1));
    });
}
