//! Reads the `Forwarded` header (RFC 7239): a list of elements, one for each proxy that a request passed, the nearest
//! proxy last.

/// One proxy's word about the request that it received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Who sent the request to the proxy: an address with or without port, `unknown` or an obfuscated name.
    pub sender: Option<String>,
    pub proto: Option<String>,
}

/// The elements of one header line. None if the line is malformed: a quotation mark that a client left open could
/// otherwise hide what a proxy appended.
pub fn elements(line: &str) -> Option<Vec<Element>> {
    let mut rest = line;
    let mut elements = vec![Element::default()];
    let mut pairs = 0;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if !rest.starts_with([',', ';']) && !rest.is_empty() {
            let (name, value) = rest.split_once('=')?;
            let (value, after) = value_of(value)?;
            elements.last_mut()?.set(name, value)?;
            pairs += 1;
            rest = after.trim_start_matches([' ', '\t']);
        }
        let mut letters = rest.chars();
        match letters.next() {
            None => return (pairs > 0).then_some(elements),
            Some(';') => {}
            Some(',') => elements.push(Element::default()),
            Some(_) => return None,
        }
        rest = letters.as_str();
    }
}

impl Element {
    fn set(&mut self, name: &str, value: String) -> Option<()> {
        let known = match name.to_ascii_lowercase().as_str() {
            "for" => &mut self.sender,
            "proto" => &mut self.proto,
            name => return is_token(name).then_some(()),
        };
        known.replace(value).is_none().then_some(())
    }
}

/// A token or a quoted string at the beginning of the text, and what follows it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ';', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (!value.is_empty() && !value.contains('"')).then(|| (value.to_owned(), after));
    };
    let mut value = String::new();
    let mut letters = quoted.chars();
    loop {
        match letters.next()? {
            '"' => return Some((value, letters.as_str())),
            '\\' => value.push(letters.next()?),
            letter => value.push(letter),
        }
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Vec<(Option<String>, Option<String>)>> {
        Some(elements(line)?.into_iter().map(|element| (element.sender, element.proto)).collect())
    }

    #[test]
    fn elements_are_read_in_their_order() {
        type Expected<'a> = &'a [(Option<&'a str>, Option<&'a str>)];
        let table: [(&str, Expected); 10] = [
            ("for=192.0.2.60", &[(Some("192.0.2.60"), None)]),
            ("For=192.0.2.60;Proto=http;by=203.0.113.43", &[(Some("192.0.2.60"), Some("http"))]),
            (r#"for="[2001:db8:cafe::17]:4711""#, &[(Some("[2001:db8:cafe::17]:4711"), None)]),
            (
                "for=192.0.2.43, for=198.51.100.17",
                &[(Some("192.0.2.43"), None), (Some("198.51.100.17"), None)],
            ),
            (r#"for="_gazonk""#, &[(Some("_gazonk"), None)]),
            ("for=unknown ; proto=https", &[(Some("unknown"), Some("https"))]),
            (r#"for="a\"b,c;d";proto=https"#, &[(Some("a\"b,c;d"), Some("https"))]),
            ("proto=https", &[(None, Some("https"))]),
            ("for=a,,for=b", &[(Some("a"), None), (None, None), (Some("b"), None)]),
            (";for=a;", &[(Some("a"), None)]),
        ];
        for (line, expected) in table {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let expected = expected.iter().map(|(sender, proto)| (owned(*sender), owned(*proto))).collect();
            assert_eq!(read(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_malformed_line_is_refused_as_a_whole() {
        let table = [
            "",
            " , ",
            "192.0.2.60",
            "for=",
            "for=a b",
            "for=a;for=b",
            "fo r=a",
            "=a",
            r#"for="a"b"#,
            r#"for="open, for=192.0.2.60"#,
            r#"for="open, for="[2001:db8::1]:80""#,
            r#"for=", for="_secret""#,
            r#"for="a\"#,
        ];
        for line in table {
            assert_eq!(elements(line), None, "{line}");
        }
    }
}
