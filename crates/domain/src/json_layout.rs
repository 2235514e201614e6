//! Changes the whitespace in JSON text while keeping every token exactly as it is. Unlike parsing and
//! serialising again, this preserves the spelling of numbers and the order of members.

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

/// Without whitespace between tokens.
pub fn compact(json: &str) -> String {
    parts(json).collect()
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// Punctuation, strings, and runs of other characters up to the next of them or whitespace.
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

/// The length of the string at the beginning, including its quotes; of all the text if the string doesn't
/// end.
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
    fn invalid_json_is_laid_out_too() {
        for text in ["", "}}]", "\"open", "a b", "{\"a\":\"\\"] {
            assert_eq!(compact(text).replace(' ', ""), text.replace(' ', ""));
            indented(text);
        }
    }
}
