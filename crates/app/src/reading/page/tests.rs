use super::*;
use proptest::prelude::*;

fn base() -> Destination {
    Destination::parse("https://www.nordlys.example/").unwrap()
}

fn page(html: &str) -> Page {
    read(html.as_bytes(), Some("text/html; charset=utf-8"), &base())
}

#[expect(clippy::unnecessary_wraps, reason = "it matches the type of a page's fields, which may be missing")]
fn words(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_whole_page_is_read() {
    let found = page(
        r#"<!doctype html><html lang=no><head>
        <meta charset="utf-8"><title>
            Nordlys &ndash; pumper &amp; filtre
        </title>
        <meta name="description" content="Pumper siden 1987.">
        <meta property="og:site_name" content="Nordlys">
        <meta property="og:title" content="not this one">
        <meta property="og:image" content="/share.jpg">
        <link rel="shortcut icon" href="/favicon.ico">
        <link rel="apple-touch-icon" sizes="180x180" href="/touch.png">
        <script>var title = "<title>no</title>";</script>
        <script type="application/ld+json">
        {"@context": "https://schema.org", "@type": "Organization", "name": "Nordlys AS", "legalName": "Nordlys Pumper AS",
         "url": "https://www.nordlys.example", "logo": "/logo.svg", "email": "mailto:post@nordlys.example",
         "telephone": "+47 22 00 00 00",
         "address": {"@type": "PostalAddress", "streetAddress": "Havnegata 1", "postalCode": "0150",
                     "addressLocality": "Oslo", "addressCountry": {"@type": "Country", "name": "Norge"}},
         "sameAs": ["https://social.example/nordlys", 7, "javascript:alert(1)"]}
        </script></head><body><svg><title>A picture</title></svg><h1>Hei</h1></body></html>"#,
    );
    assert_eq!(found.title, words("Nordlys – pumper & filtre"));
    assert_eq!(found.site_name, words("Nordlys"));
    assert_eq!(found.description, words("Pumper siden 1987."));
    assert_eq!(found.logo, words("https://www.nordlys.example/touch.png"));
    let expected = Organization {
        name: words("Nordlys AS"),
        legal_name: words("Nordlys Pumper AS"),
        description: None,
        url: words("https://www.nordlys.example/"),
        logo: words("https://www.nordlys.example/logo.svg"),
        email: words("post@nordlys.example"),
        telephone: words("+47 22 00 00 00"),
        address: Some(Address {
            street: words("Havnegata 1"),
            locality: words("Oslo"),
            region: None,
            postal_code: words("0150"),
            country: words("Norge"),
        }),
        same_as: vec!["https://social.example/nordlys".to_owned()],
    };
    assert_eq!(found.organization, Some(expected));
}

#[test]
fn odd_pages_have_the_titles_they_seem_to_have() {
    let table = [
        ("<title>One</title><title>Two</title>", words("One")),
        ("<TITLE>Loud</TITLE>", words("Loud")),
        ("<title>never closed", words("never closed")),
        ("<title>a <b>tag</b></title>", words("a <b>tag</b>")),
        ("<title> \n </title><meta property=og:title content='Social'>", words("Social")),
        ("<svg><title>Icon</title></svg><title>Page</title>", words("Page")),
        ("<!-- <title>No</title> --><title>Yes</title>", words("Yes")),
        ("<title>&eacute;&#233;&#xe9;&bogus;</title>", words("ééé&bogus;")),
        ("<title>x\0y\u{7}z</title>", words("x\u{fffd}y z")),
        ("no html at all", None),
        ("", None),
    ];
    for (html, title) in table {
        assert_eq!(page(html).title, title, "{html:?}");
    }
}

#[test]
fn descriptions_and_names_have_their_order() {
    let table = [
        ("<meta name=description content=A><meta property=og:description content=B>", (words("A"), None)),
        ("<meta property=og:description content=B>", (words("B"), None)),
        ("<meta name=og:description content=B><meta name=twitter:description content=C>", (words("B"), None)),
        (
            "<meta name=DESCRIPTION content='  '><meta name=description content=Second>",
            (words("Second"), None),
        ),
        (
            "<meta name=application-name content=App><meta property=og:site_name content=Site>",
            (None, words("Site")),
        ),
        ("<meta name=application-name content=App>", (None, words("App"))),
        ("<meta content=A>", (None, None)),
    ];
    for (html, expected) in table {
        let found = page(html);
        assert_eq!((found.description, found.site_name), expected, "{html}");
    }
}

fn organization_named(data: &str) -> Option<String> {
    page(&format!("<script type='application/ld+json'>{data}</script>")).organization?.name
}

#[test]
fn an_organisation_is_found_wherever_it_hides() {
    let table = [
        (r#"{"@type": "Organization", "name": "A"}"#, Some("A")),
        (r#"{"@type": ["Thing", "Corporation"], "name": "A"}"#, Some("A")),
        (r#"{"@type": "http://schema.org/LocalBusiness", "name": "A"}"#, Some("A")),
        (r#"[{"@type": "WebSite", "name": "No"}, {"@type": "Organization", "name": "A"}]"#, Some("A")),
        (r#"{"@graph": [{"@type": "WebPage"}, {"@type": "NewsMediaOrganization", "name": "A"}]}"#, Some("A")),
        (r#"{"@type": "WebSite", "publisher": {"@type": "Organization", "name": "A"}}"#, Some("A")),
        (
            r##"{"@graph": [{"@type": "WebPage", "publisher": {"@id": "#o", "@type": "Organization"}},
               {"@type": "Organization", "@id": "#o", "name": "A"}]}"##,
            Some("A"),
        ),
        (
            r#"{"@type": "Article", "publisher": {"@type": "Organization", "name": "Nested"},
               "@graph": [{"@type": "Organization", "name": "Near"}]}"#,
            Some("Near"),
        ),
        (r#"{"@type": "Organization", "name": {"@value": "A", "@language": "no"}}"#, Some("A")),
        (r#"<!-- {"@type": "Organization", "name": "A"} -->"#, Some("A")),
        ("//<![CDATA[\n{\"@type\": \"Organization\", \"name\": \"A\"}\n//]]>", Some("A")),
        (r"{&quot;@type&quot;: &quot;Organization&quot;, &quot;name&quot;: &quot;A&quot;}", Some("A")),
        (r#"{"@type": "Organization", "name": "A"};"#, Some("A")),
        (r#"{"@type": "Organization", "name": "  "}"#, None),
        (r#"{"@type": "Person", "name": "P"}"#, None),
        (r#"{"@type": "Organization", "name": "A""#, None),
        ("[[[[[[", None),
        ("null", None),
    ];
    for (data, name) in table {
        assert_eq!(organization_named(data).as_deref(), name, "{data}");
    }
    let broken_first = "<script type='application/ld+json'>{oops</script>\
                        <script type='Application/LD+JSON; charset=utf-8'>{\"@type\":\"NGO\",\"name\":\"B\"}</script>";
    assert_eq!(page(broken_first).organization.unwrap().name, words("B"));
}

#[test]
fn a_page_is_decoded_by_what_it_says_of_itself() {
    let latin = b"<title>Caf\xe9</title>";
    let with = |body: &[u8], content_type: Option<&str>| read(body, content_type, &base()).title;
    assert_eq!(with(latin, Some("text/html; charset=ISO-8859-1")), words("Café"));
    assert_eq!(with(latin, Some("text/html")), words("Café"), "not UTF-8, so the web's old default");
    assert_eq!(with("<title>Café</title>".as_bytes(), None), words("Café"));
    assert_eq!(
        with("\u{feff}<title>Café</title>".as_bytes(), Some("text/html; charset=latin1")),
        words("Café")
    );
    let said =
        [b"<meta charset='windows-1251'>".as_slice(), b"<title>\xcf\xf0\xe8\xe2\xe5\xf2</title>"].concat();
    assert_eq!(with(&said, None), words("Привет"));
    let http_equiv = "<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'>";
    let japanese = [http_equiv.as_bytes(), b"<title>\x93\xfa\x96{</title>"].concat();
    assert_eq!(with(&japanese, None), words("日本"));
    let wide: Vec<u8> = "\u{feff}<title>wide</title>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(with(&wide, Some("text/html")), words("wide"));
    assert_eq!(with(b"<title>x</title>", Some("text/html; charset=klingon")), words("x"));
}

proptest! {
    #[test]
    fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..400), content_type in ".{0,30}") {
        let _ = read(&body, Some(&content_type), &base());
    }

    #[test]
    fn any_data_is_read(data in r#"([\[\]{}":,]|@type|Organization|name|@graph|[a-z ]){0,40}"#) {
        let _ = organization_named(&data);
    }
}
