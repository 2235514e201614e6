//! Reads a home page for what it says about its organisation.

use std::borrow::Cow;
use std::collections::VecDeque;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use rapport_domain::destination::Destination;
use rapport_domain::lookup::{Address, MAX_SAME_AS, Organization, Page, kept, link};
use serde_json::{Map, Value};

use crate::reading::html::{Piece, Work, pieces};

/// How far into a page its encoding may be declared.
const PRESCAN_BYTES: usize = 4096;
/// How much of a page's structured data is searched.
const MAX_NODES: usize = 2_000;

/// Reads a page found at `base`. `content_type` is the header it came with.
pub fn read(body: &[u8], content_type: Option<&str>, base: &Destination) -> Page {
    let text = decode(body, content_type);
    let mut reader = Reader::default();
    for piece in pieces(&text, &Work::default()) {
        reader.take(piece);
    }
    reader.finish(base)
}

/// The text of a page, decoded by its byte order mark, its header, its own declaration, else as UTF-8 if
/// valid.
fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    let named = || content_type.and_then(charset_of).and_then(|label| Encoding::for_label(label.as_bytes()));
    let said = || {
        let head = String::from_utf8_lossy(&body[..body.len().min(PRESCAN_BYTES)]).to_ascii_lowercase();
        let label = charset_of(&head).map(str::to_owned)?;
        let encoding = Encoding::for_label(label.as_bytes())?;
        // A declaration that was readable as ASCII can't have been in UTF-16.
        Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
    };
    let guessed = || if str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 };
    let encoding = named().or_else(said).unwrap_or_else(guessed);
    encoding.decode(body).0
}

/// The value after `charset=`.
fn charset_of(text: &str) -> Option<&str> {
    let at = text.to_ascii_lowercase().find("charset")?;
    let rest = text[at + "charset".len()..].trim_start().strip_prefix('=')?.trim_start();
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|char: char| !(char.is_ascii_alphanumeric() || "-_:.".contains(char)));
    let label = &rest[..end.unwrap_or(rest.len())];
    (!label.is_empty()).then_some(label)
}

/// The element being read, if its text is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Title,
    Data,
}

#[derive(Default)]
struct Reader {
    within: Option<Within>,
    /// Text inside a picture isn't part of the page: pictures have titles, too.
    pictures: usize,
    title: Option<String>,
    data: String,
    scripts: Vec<Value>,
    social_title: Option<String>,
    social_site: Option<String>,
    social_description: Option<String>,
    social_image: Option<String>,
    application: Option<String>,
    description: Option<String>,
    icon: Option<String>,
}

impl Reader {
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Open { name, attributes } => {
                let attribute = |wanted: &str| {
                    let found = attributes.iter().find(|(name, _)| name == wanted);
                    found.map_or("", |(_, value)| value.as_str())
                };
                match name.as_str() {
                    "title" if self.title.is_none() && self.pictures == 0 => {
                        self.within = Some(Within::Title);
                    }
                    "svg" => self.pictures += 1,
                    "script" if is_data(attribute("type")) => {
                        self.within = Some(Within::Data);
                        self.data.clear();
                    }
                    "meta" => {
                        let name = [attribute("property"), attribute("name")];
                        name.iter().for_each(|name| self.meta(name, attribute("content")));
                    }
                    "link" => self.link(attribute("rel"), attribute("href")),
                    _ => {}
                }
            }
            Piece::Close(name) => match name.as_str() {
                "title" | "script" => self.leave(),
                "svg" => self.pictures = self.pictures.saturating_sub(1),
                _ => {}
            },
            Piece::Text(text) => match self.within {
                Some(Within::Title) => self.title.get_or_insert_default().push_str(&text),
                Some(Within::Data) => self.data.push_str(&text),
                None => {}
            },
        }
    }

    fn leave(&mut self) {
        if self.within.take() == Some(Within::Data) {
            self.scripts.extend(parse_data(&self.data));
        }
    }

    fn meta(&mut self, name: &str, content: &str) {
        let place = match name.to_ascii_lowercase().as_str() {
            "og:title" => &mut self.social_title,
            "og:site_name" => &mut self.social_site,
            "og:description" | "twitter:description" => &mut self.social_description,
            "og:image" | "og:image:url" | "og:logo" => &mut self.social_image,
            "application-name" | "apple-mobile-web-app-title" => &mut self.application,
            "description" => &mut self.description,
            _ => return,
        };
        if place.is_none() {
            *place = kept(content);
        }
    }

    fn link(&mut self, rel: &str, href: &str) {
        let mut words = rel.split_ascii_whitespace();
        let is_icon = words.any(|word| {
            ["apple-touch-icon", "apple-touch-icon-precomposed", "icon"]
                .iter()
                .any(|icon| word.eq_ignore_ascii_case(icon))
        });
        // The icon for a phone's home screen is the larger one.
        let is_large = rel.to_ascii_lowercase().contains("apple");
        if is_icon && !href.is_empty() && (self.icon.is_none() || is_large) {
            self.icon = Some(href.to_owned());
        }
    }

    fn finish(self, base: &Destination) -> Page {
        let whole = |text: String| link(base, &text);
        Page {
            title: self.title.as_deref().and_then(kept).or(self.social_title),
            site_name: self.social_site.or(self.application),
            description: self.description.or(self.social_description),
            logo: self.icon.and_then(whole).or_else(|| self.social_image.and_then(whole)),
            organization: organization(&self.scripts, base),
        }
    }
}

fn is_data(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/ld+json")
}

/// JSON as pages really contain it: wrapped in comments, or escaped once too often.
fn parse_data(text: &str) -> Option<Value> {
    let mut bare = text.trim();
    for (open, close) in
        [("<!--", "-->"), ("/*<![CDATA[*/", "/*]]>*/"), ("//<![CDATA[", "//]]>"), ("<![CDATA[", "]]>")]
    {
        bare = bare.strip_prefix(open).unwrap_or(bare);
        bare = bare.strip_suffix(close).unwrap_or(bare).trim();
    }
    let bare = bare.trim_end_matches(';');
    serde_json::from_str(bare).or_else(|_| serde_json::from_str(&bare.replace("&quot;", "\""))).ok()
}

/// Members that lead from a page's data to the organisation behind it.
const LEADS: [&str; 9] = [
    "@graph",
    "publisher",
    "mainEntity",
    "mainEntityOfPage",
    "isPartOf",
    "provider",
    "sourceOrganization",
    "author",
    "brand",
];

/// The first organisation with a name; top-level entries come before those they lead to.
fn organization(scripts: &[Value], base: &Destination) -> Option<Organization> {
    let mut waiting: VecDeque<&Value> = scripts.iter().flat_map(each).collect();
    let mut looked_at = 0;
    while let Some(value) = waiting.pop_front()
        && looked_at < MAX_NODES
    {
        looked_at += 1;
        let Value::Object(node) = value else { continue };
        if is_organization(node)
            && let Some(found) = read_organization(node, base)
        {
            return Some(found);
        }
        waiting.extend(LEADS.iter().filter_map(|lead| node.get(*lead)).flat_map(each));
    }
    None
}

/// A value, or the values of a list.
fn each(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn is_organization(node: &Map<String, Value>) -> bool {
    let is_one = |value: &Value| {
        let name = value.as_str().unwrap_or_default().rsplit(['/', ':']).next().unwrap_or_default();
        name.ends_with("Organization")
            || name.ends_with("Business")
            || matches!(
                name,
                "Corporation" | "NGO" | "Airline" | "Consortium" | "Store" | "Hotel" | "Restaurant"
            )
    };
    match node.get("@type") {
        Some(Value::Array(types)) => types.iter().any(is_one),
        Some(one) => is_one(one),
        None => false,
    }
}

fn read_organization(node: &Map<String, Value>, base: &Destination) -> Option<Organization> {
    let words = |member: &str| node.get(member).and_then(text_of).and_then(kept);
    let address = |value: &Value| link(base, value.as_str().or_else(|| value.get("url")?.as_str())?);
    let name = words("name")?;
    let same_as = match node.get("sameAs") {
        Some(Value::Array(links)) => links.iter().filter_map(address).take(MAX_SAME_AS).collect(),
        Some(one) => address(one).into_iter().collect(),
        None => Vec::new(),
    };
    let logo = node.get("logo").map(|logo| logo.as_array().and_then(|logos| logos.first()).unwrap_or(logo));
    Some(Organization {
        name: Some(name),
        legal_name: words("legalName"),
        description: words("description"),
        url: node.get("url").and_then(address),
        logo: logo.and_then(address),
        email: words("email").map(|email| email.trim_start_matches("mailto:").to_owned()),
        telephone: words("telephone"),
        address: node.get("address").and_then(read_address),
        same_as,
    })
}

fn read_address(value: &Value) -> Option<Address> {
    let value = value.as_array().map_or(Some(value), |all| all.first())?;
    if let Some(text) = value.as_str() {
        return kept(text).map(|street| Address { street: Some(street), ..Address::default() });
    }
    let words = |member: &str| value.get(member).and_then(text_of).and_then(kept);
    let country = value.get("addressCountry").map(|country| country.get("name").unwrap_or(country));
    let address = Address {
        street: words("streetAddress"),
        locality: words("addressLocality"),
        region: words("addressRegion"),
        postal_code: words("postalCode"),
        country: country.and_then(text_of).and_then(kept),
    };
    (address != Address::default()).then_some(address)
}

/// A text, the first of several, or one with its language beside it.
fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(values) => values.first().and_then(Value::as_str),
        Value::Object(members) => members.get("@value").and_then(Value::as_str),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
