//! Lookup by domain: the request, the information on an organisation's home page, and the account made from
//! it. Fetching the page and parsing its HTML happen elsewhere.

use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

use crate::account::{MAX_NAME, as_name};
use crate::custom_fields::FieldChange;
use crate::destination::{Destination, Host};
use crate::invalid::{Fault, Invalid, Members, as_bool, as_object, as_str};
use crate::pipeline::Status;
use crate::text::{is_visible, refuse_nul};

/// How many redirects are followed.
pub const MAX_REDIRECTS: usize = 3;
/// The relevant metadata is near the top of a page.
pub const MAX_PAGE_BYTES: usize = 512 << 10;
pub const MAX_SECONDS: u64 = 10;
/// How much of a page's text is kept.
const MAX_TEXT_CHARS: usize = 2_000;
const MAX_LINK_CHARS: usize = 2_048;
pub const MAX_SAME_AS: usize = 20;

/// A site to look up: the page at the root of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    pub page: Destination,
    /// Identifies a site: the host without `www.`, and the port if it isn't the default.
    pub name: String,
}

impl Site {
    /// Reads `acme.com`, or the URL of one of its pages.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        refuse_nul(text)?;
        let bare = text.trim();
        let lower = bare.to_ascii_lowercase();
        let scheme = ["https://", "http://"].into_iter().find(|scheme| lower.starts_with(scheme));
        let bare = &bare[scheme.map_or(0, str::len)..];
        let authority = bare.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(Fault::new("empty", "must not be empty"));
        }
        let page = Destination::parse(&format!("https://{authority}/"))
            .map_err(|refusal| Fault::new(refusal.code(), refusal.to_string()))?;
        if let Host::Name(name) = page.host()
            && !name.contains('.')
        {
            return Err(Fault::new("bad_host", "must be a domain such as acme.com"));
        }
        let authority = page.authority();
        let name = authority.strip_prefix("www.").unwrap_or(authority).to_owned();
        Ok(Self { page, name })
    }
}

/// A request for a preview, or to create an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub site: Site,
    pub create: Option<Create>,
}

/// Values for an account created by lookup, in addition to those from the page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Create {
    /// Replaces the name found on the page.
    pub name: Option<String>,
    pub status: Option<Status>,
    pub custom_fields: FieldChange,
}

impl Request {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let site = members.required("domain", |value| Site::parse(as_str(value)?));
        let create = members.optional("create", as_bool).unwrap_or(false);
        let name = members.optional("name", as_name);
        let status = members.optional("status", Status::from_json);
        let fields = members.optional("custom_fields", as_object).map(FieldChange::parse);
        let custom_fields = match fields {
            Some(Err(invalid)) => {
                members.absorb(invalid);
                FieldChange::default()
            }
            Some(Ok(fields)) => fields,
            None => FieldChange::default(),
        };
        members.refuse_unknown();
        if !create {
            for member in ["name", "status", "custom_fields"] {
                if body.get(member).is_some_and(|value| !value.is_null()) {
                    members.fault(
                        member,
                        Fault::new("only_with_create", "can only be sent with \"create\": true"),
                    );
                }
            }
        }
        let create = create.then_some(Create { name, status, custom_fields });
        members.build(|| Some(Self { site: site?, create }))
    }
}

/// The information on a page, as written there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub title: Option<String>,
    pub site_name: Option<String>,
    pub description: Option<String>,
    pub logo: Option<String>,
    pub organization: Option<Organization>,
}

/// A schema.org Organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LookupOrganization)]
pub struct Organization {
    #[schema(required = true)]
    pub name: Option<String>,
    #[schema(required = true)]
    pub legal_name: Option<String>,
    #[schema(required = true)]
    pub description: Option<String>,
    #[schema(required = true)]
    pub url: Option<String>,
    #[schema(required = true)]
    pub logo: Option<String>,
    #[schema(required = true)]
    pub email: Option<String>,
    #[schema(required = true)]
    pub telephone: Option<String>,
    #[schema(required = true)]
    pub address: Option<Address>,
    pub same_as: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LookupAddress)]
pub struct Address {
    #[schema(required = true)]
    pub street: Option<String>,
    #[schema(required = true)]
    pub locality: Option<String>,
    #[schema(required = true)]
    pub region: Option<String>,
    #[schema(required = true)]
    pub postal_code: Option<String>,
    #[schema(required = true)]
    pub country: Option<String>,
}

/// What a home page says about its organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LookupPage)]
pub struct Preview {
    /// The domain without `www.`.
    #[schema(example = "nordlys.example")]
    pub domain: String,
    /// The final URL of the page, after redirects.
    #[schema(example = "https://www.nordlys.example/")]
    pub url: String,
    /// The name for an account created from it.
    #[schema(example = "Nordlys AS")]
    pub name: String,
    #[schema(required = true)]
    pub title: Option<String>,
    #[schema(required = true)]
    pub site_name: Option<String>,
    #[schema(required = true)]
    pub description: Option<String>,
    #[schema(required = true)]
    pub logo: Option<String>,
    #[schema(required = true)]
    pub organization: Option<Organization>,
}

impl Preview {
    pub fn new(site: &Site, url: String, page: Page) -> Self {
        let name = account_name(site, &page);
        let Page { title, site_name, description, logo, organization } = page;
        let said = |of: fn(&Organization) -> Option<&String>| organization.as_ref().and_then(of).cloned();
        let logo = said(|it| it.logo.as_ref()).or(logo);
        let description = description.or_else(|| said(|it| it.description.as_ref()));
        Self { domain: site.name.clone(), url, name, title, site_name, description, logo, organization }
    }

    /// The custom fields of an account created from it; fields in the request take precedence.
    pub fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("website".to_owned(), self.url.clone().into());
        if let Some(description) = &self.description {
            fields.insert("description".to_owned(), description.clone().into());
        }
        fields
    }
}

/// The name an organisation uses on its page: from the structured data, the site name, or the part of the
/// title that resembles its domain; otherwise the domain.
fn account_name(site: &Site, page: &Page) -> String {
    let organization = page.organization.as_ref().and_then(|organization| organization.name.as_deref());
    let from_title = page.title.as_deref().and_then(|title| title_part(site, title));
    let told = [organization, page.site_name.as_deref(), from_title].into_iter().flatten();
    let mut names = told.map(|name| clip(name, MAX_NAME.max));
    names.find(|name| is_visible(name)).unwrap_or_else(|| clip(&site.name, MAX_NAME.max))
}

/// The part of a title that names the site: for "Pumps and filters | Nordlys" at nordlys.example, it is
/// "Nordlys".
fn title_part<'a>(site: &Site, title: &'a str) -> Option<&'a str> {
    let host = letters(site.name.split('.').next().unwrap_or_default());
    let parts = title.split(['|', '–', '—', '·', '•', ':', '»']).flat_map(|part| part.split(" - "));
    let parts: Vec<&str> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
    let names_host = |part: &&&str| {
        let part = letters(part);
        !host.is_empty() && !part.is_empty() && (part.starts_with(&host) || host.starts_with(&part))
    };
    parts.iter().find(names_host).copied()
}

fn letters(text: &str) -> String {
    text.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Text from a page as stored: one line, no control characters, limited length, not empty.
pub fn kept(text: &str) -> Option<String> {
    let words: Vec<&str> = text
        .split(|char: char| char.is_whitespace() || char.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = clip(&words.join(" "), MAX_TEXT_CHARS);
    (!line.is_empty()).then_some(line)
}

/// A link from a page as an absolute URL; http and https only.
pub fn link(base: &Destination, text: &str) -> Option<String> {
    let link = Url::parse(base.as_str()).ok()?.join(text.trim()).ok()?;
    let is_web = matches!(link.scheme(), "http" | "https");
    (is_web && link.as_str().len() <= MAX_LINK_CHARS).then(|| link.to_string())
}

/// Where a redirect leads, which must be https too.
pub fn redirected(from: &Destination, location: &str) -> Result<Destination, Fault> {
    let malformed = || Fault::new("bad_redirect", "the page redirects to an invalid address");
    let mut to = Url::parse(from.as_str())
        .ok()
        .and_then(|base| base.join(location.trim()).ok())
        .ok_or_else(malformed)?;
    to.set_fragment(None);
    Destination::parse(to.as_str()).map_err(|refusal| {
        Fault::new("bad_redirect", format!("the page redirects to an address that is not allowed: {refusal}"))
    })
}

fn clip(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn site(text: &str) -> Site {
        Site::parse(text).unwrap()
    }

    #[test]
    fn a_site_is_its_host_however_it_is_written() {
        let table = [
            ("acme.com", "acme.com", "https://acme.com/"),
            (" Acme.COM. ", "acme.com", "https://acme.com/"),
            ("www.acme.com", "acme.com", "https://www.acme.com/"),
            ("http://www.acme.com/about?x=1#y", "acme.com", "https://www.acme.com/"),
            ("HTTPS://acme.com", "acme.com", "https://acme.com/"),
            ("bücher.example", "xn--bcher-kva.example", "https://xn--bcher-kva.example/"),
            ("127.0.0.1:8443", "127.0.0.1:8443", "https://127.0.0.1:8443/"),
        ];
        for (text, name, page) in table {
            let found = site(text);
            assert_eq!((found.name.as_str(), found.page.as_str()), (name, page), "{text}");
        }
        for (text, code) in [
            ("", "empty"),
            ("https://", "empty"),
            ("acme", "bad_host"),
            ("ana@acme.com", "userinfo"),
            ("acme .com", "bad_character"),
            ("ftp://acme.com", "bad_host"),
            ("acme.com:0", "bad_port"),
            ("a\0.com", "nul_character"),
        ] {
            let fault = Site::parse(text).unwrap_err();
            assert!(fault.code == code || text.starts_with("ftp"), "{text}: {fault:?}");
        }
    }

    #[test]
    fn fields_of_a_new_account_need_create() {
        let parse = |body: Value| Request::parse(body.as_object().unwrap());
        assert_eq!(parse(json!({"domain": "acme.com"})).unwrap().create, None);
        let all = json!({"domain": "acme.com", "create": true, "name": "Acme", "status": "contacted",
                         "custom_fields": {"a": 1}});
        let create = parse(all).unwrap().create.unwrap();
        assert_eq!((create.name.as_deref(), create.status), (Some("Acme"), Some(Status::Contacted)));
        let wrong = parse(json!({"domain": 5, "name": "x", "status": "y", "more": 1})).unwrap_err();
        let mut found: Vec<(&str, &str)> =
            wrong.0.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        found.sort_unstable();
        let expected = [
            ("/domain", "wrong_type"),
            ("/more", "unknown_member"),
            ("/name", "only_with_create"),
            ("/status", "only_with_create"),
            ("/status", "unknown_status"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_organisation_is_called_what_it_calls_itself() {
        let words = |text: &str| Some(text.to_owned());
        let organization = Organization { name: words("Nordlys AS"), ..Organization::default() };
        let table = [
            (
                Page { organization: Some(organization), site_name: words("x"), ..Page::default() },
                "Nordlys AS",
            ),
            (Page { site_name: words("Nordlys"), title: words("Home"), ..Page::default() }, "Nordlys"),
            (Page { title: words("Pumps and filters | Nordlys Pumps"), ..Page::default() }, "Nordlys Pumps"),
            (Page { title: words("Nordlys - Home"), ..Page::default() }, "Nordlys"),
            (Page { title: words("Welcome"), ..Page::default() }, "nordlys.example"),
            (Page { site_name: words("\u{3164}\u{200b}"), ..Page::default() }, "nordlys.example"),
            (Page::default(), "nordlys.example"),
        ];
        for (page, name) in table {
            assert_eq!(account_name(&site("www.nordlys.example"), &page), name, "{page:?}");
        }
    }

    #[test]
    fn links_are_made_whole_and_redirects_stay_with_https() {
        let base = site("acme.com").page;
        assert_eq!(link(&base, "/logo.svg"), Some("https://acme.com/logo.svg".to_owned()));
        assert_eq!(link(&base, "//cdn.test/l.png"), Some("https://cdn.test/l.png".to_owned()));
        assert_eq!(link(&base, "data:image/png;base64,AAAA"), None);
        assert_eq!(link(&base, "javascript:alert(1)"), None);
        assert_eq!(redirected(&base, "/de#top").unwrap().as_str(), "https://acme.com/de");
        assert_eq!(redirected(&base, "https://www.acme.com").unwrap().as_str(), "https://www.acme.com/");
        for location in ["http://acme.com/", "https://u:p@acme.com/", "mailto:a@b.test", "https://"] {
            assert_eq!(redirected(&base, location).unwrap_err().code, "bad_redirect", "{location}");
        }
    }
}
