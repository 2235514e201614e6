//! The layout of a JSON text: blanks added or taken away between its parts, each part kept letter by letter. Unlike
//! parsing and writing again it changes no number and no order.

/// Indented for reading.
pub fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut parts = parts(json).peekable();
    while let Some(part) = parts.next() {
        match part {
            "{" | "[" => {
                out.push_str(part);
                if matches!(parts.peek(), Some(&("}" | "]"))) {
                    out.push_str(parts.next().unwrap_or_default());
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push_str(part);
            }
            "," => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            other => out.push_str(other),
        }
    }
    out
}

/// Without any blanks between its parts.
pub fn compact(json: &str) -> String {
    parts(json).collect()
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// Punctuation, strings, and everything else up to the next of them or a blank.
fn parts(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = match first {
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            '"' => string_length(rest),
            _ => rest
                .find(|letter: char| letter.is_whitespace() || "{}[],:\"".contains(letter))
                .unwrap_or(rest.len()),
        };
        let (part, after) = rest.split_at(length);
        rest = after;
        Some(part)
    })
}

/// Of the string at the beginning, with its quotes; of everything where it does not end.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"b":1.50,"a":["x, \"y\": {",{}],"n":[],"z":null}"#;

    #[test]
    fn only_blanks_between_parts_change() {
        let expected = "{\n  \"b\": 1.50,\n  \"a\": [\n    \"x, \\\"y\\\": {\",\n    {}\n  ],\n  \"n\": [],\n  \"z\": null\n}";
        assert_eq!(indented(TEXT), expected);
        assert_eq!(compact(expected), TEXT);
        assert_eq!(indented(&indented(TEXT)), expected);
    }

    #[test]
    fn what_is_no_json_is_gone_through_as_well() {
        for text in ["", "}}]", "\"open", "a b", "{\"a\":\"\\"] {
            assert_eq!(compact(text).replace(' ', ""), text.replace(' ', ""));
            indented(text);
        }
    }
}
