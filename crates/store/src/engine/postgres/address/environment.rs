//! What the process's surroundings say about connections, as libpq reads it.

use std::path::PathBuf;

type Variable = dyn Fn(&str) -> Option<String>;

/// Variables and the home directory; tests bring their own.
pub struct Environment {
    variable: Box<Variable>,
    home: Option<PathBuf>,
}

impl Environment {
    pub fn of_process() -> Self {
        Self { variable: Box::new(|name| std::env::var(name).ok()), home: std::env::home_dir() }
    }

    /// Says nothing.
    pub fn empty() -> Self {
        Self { variable: Box::new(|_| None), home: None }
    }

    #[cfg(test)]
    pub fn of(variables: &[(&str, &str)], home: Option<PathBuf>) -> Self {
        let variables: Vec<_> =
            variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let find = move |wanted: &str| {
            variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
        };
        Self { variable: Box::new(find), home }
    }

    /// An empty variable counts as unset.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// A file below the home directory, if it exists.
    pub fn file_at_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path)).filter(|path| path.exists())
    }
}
