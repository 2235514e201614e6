//! Checks the layout of the stylesheets and templates, since no formatter does.

use std::collections::HashMap;
use std::fs;
use std::mem;
use std::path::Path;

use super::STYLE_TEXT;

const STYLE_WIDTH: usize = 110;
const TEMPLATE_WIDTH: usize = 120;
const INDENT: usize = 2;
/// Served on its own, so it may repeat the selectors of the pages.
const DOCS: &str = "assets/css/docs.css";
/// Names no element: there is one for each file of a typeface.
const FONT_FACE: &str = "@font-face";

/// A file of this crate, named by its path there.
struct File {
    name: String,
    text: String,
}

/// Reads the files with that extension in a directory and below it.
fn files(directory: &str, extension: &str) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut directories = vec![root.join(directory)];
    let mut paths = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                paths.push(path);
            }
        }
    }
    assert!(!paths.is_empty(), "{directory} has no files that end in {extension}");
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        files.push(File { name, text: fs::read_to_string(&path).unwrap() });
    }
    files
}

/// Finds tabs, spaces at the end of a line, and lines that are too long.
fn line_faults(file: &File, width: usize) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let found = [
            (line.contains('\t'), "contains a tab"),
            (line.trim_end() != line, "ends with a space"),
            (line.chars().count() > width, "is too long"),
        ];
        for (_, fault) in found.into_iter().filter(|(is_found, _)| *is_found) {
            faults.push(format!("{}:{number} {fault}", file.name));
        }
    }
    faults
}

/// Finds rules that are not laid out as one selector or declaration per line, and what is declared twice in files that
/// are served together. A selector belongs to one file. There it may be in a list and also alone, as long as both
/// don't set the same property.
fn rule_faults(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut owners: HashMap<String, &str> = HashMap::new();
    let mut places: HashMap<String, String> = HashMap::new();
    for file in files {
        let mut blocks: Vec<Vec<&str>> = Vec::new();
        let mut selectors: Vec<&str> = Vec::new();
        let mut is_comment = false;
        for (number, line) in (1..).zip(file.text.lines()) {
            let place = format!("{}:{number}", file.name);
            let text = line.trim();
            if text.is_empty() || is_comment {
                is_comment = is_comment && !text.ends_with("*/");
                continue;
            }
            if text == "}" && blocks.pop().is_none() {
                faults.push(format!("{place} closes a block that isn't open"));
            }
            if line.len() - line.trim_start().len() != blocks.len() * INDENT {
                faults.push(format!("{place} isn't indented by {INDENT} spaces for each open block"));
            }
            if text.starts_with("/*") {
                is_comment = !text.contains("*/");
                if !is_comment && !text.ends_with("*/") {
                    faults.push(format!("{place} has something after a comment"));
                }
            } else if let Some(selector) = text.strip_suffix(" {") {
                selectors.push(selector);
                let list = mem::take(&mut selectors);
                if !selector.starts_with('@') {
                    let scope = scope(&blocks);
                    let rule = format!("{scope} {{ {}", list.join(", "));
                    if let Some(first) = places.insert(rule, place.clone()) {
                        faults.push(format!("{place} repeats the rule at {first}"));
                    }
                    for selector in &list {
                        if has_several_selectors(selector) {
                            faults.push(format!("{place} has several selectors on one line"));
                        }
                        let owner = owners.entry(format!("{scope} {{ {selector}")).or_insert(&file.name);
                        if *owner != file.name {
                            faults.push(format!("{place} repeats a selector of {owner}: {selector}"));
                        }
                    }
                }
                blocks.push(list);
            } else if let Some(selector) = text.strip_suffix(',') {
                selectors.push(selector);
            } else if let Some(property) = declared_property(text).filter(|_| selectors.is_empty()) {
                let Some((list, around)) = blocks.split_last() else {
                    faults.push(format!("{place} is a declaration without a selector"));
                    continue;
                };
                for selector in list.iter().filter(|selector| **selector != FONT_FACE) {
                    let declaration = format!("{} {{ {selector} {{ {property}", scope(around));
                    if let Some(first) = places.insert(declaration, place.clone()) {
                        faults.push(format!("{place} sets {property} of {selector} again, after {first}"));
                    }
                }
            } else if text != "}" {
                faults.push(format!("{place} is neither one selector nor one declaration"));
            }
        }
        if is_comment || !blocks.is_empty() || !selectors.is_empty() {
            faults.push(format!("{} ends in the middle of a rule or comment", file.name));
        }
    }
    faults
}

/// Names the blocks around a rule, to tell rules in different media queries apart.
fn scope(blocks: &[Vec<&str>]) -> String {
    blocks.concat().join(", ")
}

/// Returns the property if the line is one whole declaration.
fn declared_property(line: &str) -> Option<&str> {
    let unquoted: String = line.split('"').step_by(2).collect();
    let is_whole =
        unquoted.find(';').is_some_and(|at| at + 1 == unquoted.len()) && !unquoted.contains(['{', '}']);
    line.split_once(": ").map(|(property, _)| property).filter(|_| is_whole)
}

/// Tells a comma between selectors from one between the arguments of `:is()` or `:not()`.
fn has_several_selectors(line: &str) -> bool {
    let mut open_brackets = 0;
    line.chars().any(|character| {
        match character {
            '(' => open_brackets += 1,
            ')' => open_brackets -= 1,
            _ => {}
        }
        character == ',' && open_brackets == 0
    })
}

fn style_faults(files: &[File]) -> Vec<String> {
    let lines = files.iter().flat_map(|file| line_faults(file, STYLE_WIDTH));
    lines.chain(rule_faults(files)).collect()
}

#[track_caller]
fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn stylesheets_are_laid_out_alike_and_declare_things_once() {
    let (docs, pages): (Vec<File>, Vec<File>) =
        files("assets/css", "css").into_iter().partition(|file| file.name == DOCS);
    assert_none(&style_faults(&docs));
    assert_none(&style_faults(&pages));
    for file in pages {
        assert!(STYLE_TEXT.contains(&file.text), "{} is not part of the stylesheet", file.name);
    }
}

#[test]
fn templates_have_short_lines_without_tabs() {
    let templates = files("templates", "html");
    let faults: Vec<String> = templates.iter().flat_map(|file| line_faults(file, TEMPLATE_WIDTH)).collect();
    assert_none(&faults);
}

#[test]
fn faults_in_stylesheets_are_found() {
    let faults = |texts: &[&str]| {
        let file =
            |(number, text): (usize, &&str)| File { name: number.to_string(), text: (*text).to_owned() };
        style_faults(&texts.iter().enumerate().map(file).collect::<Vec<_>>())
    };
    let good = [
        "/* A comment. */\n\na,\nb:not(.c, .d) {\n  top: 0;\n  content: \"; {\";\n}\n\na {\n  left: 0;\n}\n",
        "@media print {\n  a {\n    top: 1px;\n  }\n}\n\n/* Two\n   lines. */\ni {\n  top: 0;\n}\n",
    ];
    assert_none(&faults(&good));
    let bad = [
        "a { top: 0; }\n",
        "a {\n  top: 0; left: 0;\n}\n",
        "a {\n  top: 0\n}\n",
        "a {\n   top: 0;\n}\n",
        "a {\n\ttop: 0;\n}\n",
        "a {\n  top: 0; \n}\n",
        "a, b {\n  top: 0;\n}\n",
        "top: 0;\n",
        "a {\n  top: 0;\n",
        "a {\n  top: 0;\n}\n}\n",
        "/* A comment. */ a {\n  top: 0;\n}\n",
        "a {\n  top: 0;\n  top: 1px;\n}\n",
        "a {\n  top: 0;\n}\n\na {\n  left: 0;\n}\n",
        "a,\nb {\n  top: 0;\n}\n\nb {\n  top: 1px;\n}\n",
        "@media print {\n  a {\n    top: 0;\n  }\n\n  a {\n    left: 0;\n  }\n}\n",
    ];
    for text in bad {
        assert!(!faults(&[text]).is_empty(), "{text}");
    }
    let long = format!("a {{\n  font-family: \"{}\";\n}}\n", "x".repeat(STYLE_WIDTH));
    assert_eq!(faults(&[long.as_str()]), ["0:2 is too long"]);
    let twice = faults(&["a,\nb {\n  top: 0;\n}\n", "b {\n  left: 0;\n}\n"]);
    assert_eq!(twice, ["1:1 repeats a selector of 0: b"]);
}
