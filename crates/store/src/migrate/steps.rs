//! The notation of the migration files, which `migrations/README.md` describes.

const MARKER: &str = "--- ";
/// Stands in the condition of a fill.
const ROWS: &str = "{rows}";
const ALL_ROWS: &str = "1 = 1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub kind: Kind,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Change,
    Fill(Fill),
    Index(Index),
}

/// A statement for all rows of a table, which can run for some of them at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    pub table: String,
    /// The column that orders the rows of a company.
    pub key: String,
    pub rows_at_a_time: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    pub table: String,
    is_unique: bool,
    /// The columns and the condition.
    definition: String,
}

impl Step {
    /// The statements for all rows, as any engine takes them.
    pub fn whole(&self) -> String {
        self.text.replace(ROWS, ALL_ROWS)
    }

    /// The statements of a fill for the rows that this condition selects.
    pub fn for_rows(&self, condition: &str) -> String {
        self.text.replace(ROWS, condition)
    }
}

impl Index {
    /// The statement that builds it under another name while others use the table.
    pub fn concurrently(&self, name: &str) -> String {
        let unique = if self.is_unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX CONCURRENTLY {name} ON {} {}", self.table, self.definition)
    }
}

/// Reads a file, or says what is wrong with it.
pub fn read(text: &str) -> Result<Vec<Step>, String> {
    let mut parts: Vec<(&str, String)> = vec![("change", String::new())];
    for line in text.lines() {
        if let Some(marker) = line.strip_prefix(MARKER) {
            parts.push((marker, String::new()));
        } else {
            let (_, part) = parts.last_mut().expect("the first part");
            part.push_str(line);
            part.push('\n');
        }
    }
    let parts = parts.into_iter().filter(|(_, text)| !statements(text).is_empty());
    let steps: Result<Vec<Vec<Step>>, String> = parts.map(|(marker, text)| steps(marker, text)).collect();
    Ok(steps?.into_iter().flatten().collect())
}

/// The steps of one part: an index is a step of its own.
fn steps(marker: &str, text: String) -> Result<Vec<Step>, String> {
    match marker.split_once(' ') {
        None if marker == "change" => Ok(vec![Step { kind: Kind::Change, text }]),
        None if marker == "index" => indexes(&text),
        Some(("fill", of)) => {
            let fill = fill(of).ok_or_else(|| format!("cannot read {marker:?}"))?;
            if statements(&text).len() != 1 || !text.contains(ROWS) {
                return Err(format!("{marker:?} needs one statement with {ROWS}"));
            }
            Ok(vec![Step { kind: Kind::Fill(fill), text }])
        }
        _ => Err(format!("unknown step {marker:?}")),
    }
}

/// `account by id, 5000 rows at a time`
fn fill(text: &str) -> Option<Fill> {
    let (table, rest) = text.split_once(" by ")?;
    let (key, rest) = rest.split_once(", ")?;
    let rows_at_a_time = rest.strip_suffix(" rows at a time")?.parse().ok().filter(|rows| *rows > 0)?;
    Some(Fill { table: table.to_owned(), key: key.to_owned(), rows_at_a_time })
}

fn indexes(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut dropped: Option<String> = None;
    for statement in statements(text) {
        if let Some(name) = statement.strip_prefix("DROP INDEX ") {
            dropped = Some(name.to_owned());
            continue;
        }
        let index = index(&statement).ok_or_else(|| format!("not an index: {statement}"))?;
        let drop = match dropped.take() {
            None => String::new(),
            Some(name) if name == index.name => format!("DROP INDEX {name};\n"),
            Some(name) => return Err(format!("{name} is dropped before another index, {}", index.name)),
        };
        steps.push(Step { kind: Kind::Index(index), text: format!("{drop}{statement};\n") });
    }
    dropped.map_or(Ok(steps), |name| Err(format!("{name} is dropped and not created again")))
}

fn index(statement: &str) -> Option<Index> {
    let rest = statement.strip_prefix("CREATE ")?;
    let (is_unique, rest) = rest.strip_prefix("UNIQUE ").map_or((false, rest), |rest| (true, rest));
    let (name, rest) = rest.strip_prefix("INDEX ")?.split_once(" ON ")?;
    let (table, definition) = rest.split_once(' ')?;
    Some(Index {
        name: name.to_owned(),
        table: table.to_owned(),
        is_unique,
        definition: definition.to_owned(),
    })
}

/// The statements without comments and line breaks. Good enough for our own files, where no text holds a semicolon.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("--"));
    let joined = lines.collect::<Vec<_>>().join(" ");
    joined.split(';').map(|statement| statement.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_into_its_steps() {
        let text = "-- A title.\n\nCREATE TABLE a (b {int});\n\n--- fill a by d, 20 rows at a time\n-- Why.\n\
                    UPDATE a SET b = 1\nWHERE {rows} AND c = 2;\n--- index\nDROP INDEX a_by_b;\n\
                    CREATE INDEX a_by_b ON a (b,\n    c) WHERE c > 1;\nCREATE UNIQUE INDEX a_by_d ON a (d);\n";
        let steps = read(text).expect("read");
        let fill = Fill { table: "a".to_owned(), key: "d".to_owned(), rows_at_a_time: 20 };
        assert_eq!(steps.len(), 4);
        assert_eq!((&steps[0].kind, &steps[1].kind), (&Kind::Change, &Kind::Fill(fill)));
        assert!(steps[1].for_rows("c < 7").contains("WHERE c < 7 AND c = 2"));
        for (step, expected) in [
            (&steps[2], "CREATE INDEX CONCURRENTLY x ON a (b, c) WHERE c > 1"),
            (&steps[3], "CREATE UNIQUE INDEX CONCURRENTLY x ON a (d)"),
        ] {
            let Kind::Index(index) = &step.kind else { panic!("{step:?}") };
            assert_eq!(index.concurrently("x"), expected);
        }
        let whole: String = steps.iter().map(Step::whole).collect();
        assert!(whole.contains("WHERE 1 = 1 AND c = 2") && whole.contains("DROP INDEX a_by_b;"), "{whole}");
    }

    #[test]
    fn a_file_of_comments_has_no_steps() {
        assert_eq!(read("-- Nothing of its own.\n"), Ok(Vec::new()));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("--- later\nSELECT 1;", "unknown step \"later\""),
            ("--- fill a, 5 rows\nUPDATE a SET b = 1 WHERE {rows};", "cannot read"),
            ("--- fill a by b, 0 rows at a time\nUPDATE a SET b = 1 WHERE {rows};", "cannot read"),
            ("--- fill a by b, 5 rows at a time\nUPDATE a SET b = 1;", "needs one statement"),
            ("--- index\nUPDATE a SET b = 1;", "not an index"),
            ("--- index\nDROP INDEX a;\nCREATE INDEX b ON c (d);", "another index"),
            ("--- index\nDROP INDEX a;", "not created again"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}
