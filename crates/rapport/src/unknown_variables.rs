//! Names environment variables that look like our settings but aren't: a misspelled one would silently do
//! nothing.

use crate::cli;

const PREFIX: &str = "RAPPORT_";
/// How alike two names must be for one to be a misspelling of the other, from 0 to 1.
const ALIKE: f64 = 0.8;

pub fn warn() {
    let known = cli::variables();
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if known.iter().any(|known| known == name) {
            continue;
        }
        let hint =
            nearest(name, &known).map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
        tracing::warn!("the environment variable {name} is unknown and ignored{hint}");
    }
}

fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    // Without the prefix, which would make all of them alike.
    let rest = |name: &'_ str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let alike = |known: &String| strsim::normalized_damerau_levenshtein(&rest(known), &rest(name));
    let best = known.iter().map(|known| (alike(known), known)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(alike, _)| *alike >= ALIKE).map(|(_, known)| known.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_variable_suggests_the_right_one() {
        let known = cli::variables();
        let table = [
            ("RAPPORT_LISTN", Some("RAPPORT_LISTEN")),
            ("RAPPORT_DATABSE", Some("RAPPORT_DATABASE")),
            ("RAPPORT_SMTP_URI", Some("RAPPORT_SMTP_URL")),
            ("RAPPORT_DATADIR", Some("RAPPORT_DATA_DIR")),
            ("RAPPORT_listen", None),
            ("RAPPORT_HOME", None),
        ];
        for (name, expected) in table {
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
        for name in ["RAPPORT_LISTEN", "RAPPORT_CONFIG", "RAPPORT_LISTEN_SECRET"] {
            assert!(known.iter().any(|known| known == name), "{name}");
        }
    }
}
