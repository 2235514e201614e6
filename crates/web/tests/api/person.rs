//! A person who uses the pages without a browser: cookies, forms and page contents.
//!
//! ```ignore
//! let ana = Person::of(&acme, Role::Admin);
//! ana.see("/webhooks").await.expect(200).says("No webhooks yet");
//! ana.send("/webhooks", &[("url", "https://a.test/")]).await.leads_to("/webhooks/");
//! ```

use rapport_app::session::Proven;
use rapport_app::{Access, password};
use rapport_domain::id::{FormId, PersonId};
use rapport_domain::member::{Email, Role};
use rapport_testkit::app::Hire;
use rapport_testkit::block_on;

use crate::harness::{Answer, Call, Tenant};

/// A logged-in member of a tenant's company.
pub struct Person<'a> {
    pub tenant: &'a Tenant,
    pub id: PersonId,
    pub cookie: String,
}

impl<'a> Person<'a> {
    /// A new member with a role, logged in.
    pub fn of(tenant: &'a Tenant, role: Role) -> Self {
        let number = tenant.company.app().services().random::<8>();
        let email = format!("{}@acme.test", u64::from_be_bytes(number));
        let id = tenant.company.employ(&email, &format!("A {}", role.as_str()), role).person;
        Self::with_session(tenant, id)
    }

    /// A new member with this address and a password that can be typed, logged in.
    pub fn with_password(tenant: &'a Tenant, email: &str, role: Role, password: &str) -> Self {
        let (company, email) = (&tenant.company, Email::parse(email).expect("an address"));
        let password_hash = password::hash(company.app().services(), password).expect("a hash");
        let hire = Hire { email, name: "Ana Ruiz".to_owned(), role, password_hash, is_proven: false };
        let hired = block_on(company.app().write(&Access::System(company.id()), hire));
        Self::with_session(tenant, hired.expect("a member").person)
    }

    /// A person with another session.
    pub fn with_session(tenant: &'a Tenant, id: PersonId) -> Self {
        let proven = Proven { person: id, company: tenant.company.id() };
        let begun = block_on(tenant.company.app().write(&proven.access(), proven.begin(Some("A test"))));
        Self { tenant, id, cookie: format!("rapport={}", begun.expect("a session")) }
    }

    pub async fn see(&self, path: &str) -> Seen {
        let call = self.tenant.get(path).without_credential().header("cookie", &self.cookie);
        Seen(call.send().await)
    }

    /// The beginning of the response to a page or to a form without fields.
    pub async fn try_out(&self, method: &str, path: &str) -> Answer {
        let call = match method {
            "GET" => self.tenant.get(path).without_credential().header("cookie", &self.cookie),
            _ => self.filled_in(path, self.form(), &[]),
        };
        call.begin().await
    }

    /// Sends a form that was just loaded.
    pub async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        self.send_form(path, self.form(), fields).await
    }

    /// The id of a newly loaded form.
    pub fn form(&self) -> FormId {
        let services = self.tenant.company.app().services();
        services.id(services.now())
    }

    /// Sends the form with this id.
    pub async fn send_form(&self, path: &str, form: FormId, fields: &[(&str, &str)]) -> Seen {
        Seen(self.filled_in(path, form, fields).send().await)
    }

    /// Answers the question on a page that asks who is there with a password.
    pub async fn confirm(&self, path: &str, asked: &Seen, password: &str) -> Seen {
        let (waiting, back) = (asked.hidden("waiting_form"), asked.hidden("back"));
        self.send(path, &[("waiting_form", &waiting), ("back", &back), ("password", password)]).await
    }

    fn filled_in(&self, path: &str, form: FormId, fields: &[(&str, &str)]) -> Call<'a> {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair("form", &form.to_string()).extend_pairs(fields);
        let call = self.tenant.post(path).without_credential().header("cookie", &self.cookie);
        let call = call.text(&body.finish()).header("content-type", "application/x-www-form-urlencoded");
        call.header("sec-fetch-site", "same-origin")
    }
}

/// A page or a redirect.
#[derive(Debug)]
pub struct Seen(pub Answer);

impl Seen {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.0.status, status, "{}", self.0.text());
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let said = squeezed(self.0.text()).contains(&squeezed(text));
        assert!(said, "the page does not say {text:?}:\n{}", self.0.text());
        self
    }

    #[track_caller]
    pub fn says_not(self, text: &str) -> Self {
        let said = squeezed(self.0.text()).contains(&squeezed(text));
        assert!(!said, "the page says {text:?}:\n{}", self.0.text());
        self
    }

    /// The value of a hidden field.
    #[track_caller]
    pub fn hidden(&self, name: &str) -> String {
        let text = self.0.text();
        let rest = text.split(&format!("name=\"{name}\" value=\"")).nth(1);
        let rest = rest.unwrap_or_else(|| panic!("no {name} in {text}"));
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    /// Asserts that the response redirects to a path with this prefix, and returns the location.
    #[track_caller]
    pub fn leads_to(&self, path: &str) -> String {
        assert_eq!(self.0.status, 303, "{}", self.0.text());
        let location = self.0.header("location").unwrap_or_default().to_owned();
        assert!(location.starts_with(path), "redirected to {location}");
        location
    }

    /// The text of the flash that the next page will show.
    #[track_caller]
    pub fn flash(&self) -> String {
        let mut cookies = self.0.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
        let flash = cookies.find_map(|cookie| cookie.strip_prefix("flash=")).unwrap_or_default();
        let value = flash.split(['.', ';']).next().unwrap_or_default();
        percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned()
    }
}

/// Collapses whitespace and drops it beside tags, so that tests don't depend on how a template is laid out.
fn squeezed(html: &str) -> String {
    let words: Vec<&str> = html.split_ascii_whitespace().collect();
    words.join(" ").replace("> ", ">").replace(" <", "<")
}
