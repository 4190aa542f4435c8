//! Sources of settings.

use std::fmt;

/// The source of a value, ordered by precedence, weakest first. Problems are listed in the same
/// order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The default.
    Default,
    /// A default adapted to another setting; the text says how.
    Derived(&'static str),
    /// The configuration file.
    File {
        /// The path as given.
        path: String,
        /// Line and column of the value, from 1, if known.
        position: Option<(usize, usize)>,
    },
    /// The name of an environment variable.
    Environment(String),
    /// A flag as typed.
    Flag(String),
}

impl Source {
    pub(super) fn is_given(&self) -> bool {
        match self {
            Source::Default | Source::Derived(_) => false,
            Source::File { .. } | Source::Environment(_) | Source::Flag(_) => true,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Derived(how) => write!(f, "default, {how}"),
            Source::File { path, position: Some((line, column)) } => write!(f, "{path}:{line}:{column}"),
            Source::File { path, position: None } => f.write_str(path),
            Source::Environment(name) | Source::Flag(name) => f.write_str(name),
        }
    }
}

/// The source of every setting.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources(Vec<(&'static str, &'static str, Source)>);

impl Sources {
    pub(super) fn push(&mut self, section: &'static str, name: &'static str, source: Source) {
        self.0.push((section, name, source));
    }

    /// The source of `section.name`; `None` if there is no such setting.
    pub(super) fn get(&self, setting: &str) -> Option<&Source> {
        let (section, name) = setting.split_once('.')?;
        self.0.iter().find(|(s, n, _)| *s == section && *n == name).map(|(_, _, source)| source)
    }

    pub(super) fn derived(&mut self, setting: &str, how: &'static str) {
        let found = self.0.iter_mut().find(|(s, n, _)| setting.split_once('.') == Some((*s, *n)));
        if let Some((_, _, source)) = found {
            *source = Source::Derived(how);
        }
    }
}
