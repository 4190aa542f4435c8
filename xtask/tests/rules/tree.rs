//! The files of the repository, for the rules.

use std::path::{Path, PathBuf};

/// A text file and its path from the root.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The lines before the tests, numbered from 1.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        numbered.take_while(|(_, line)| line.trim() != "#[cfg(test)]")
    }

    /// The lines before the tests without comments.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.product_lines().filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }
}

pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask is in the workspace").to_owned()
}

/// All text files below `folder`, except build output and git's directory.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    walk(&root(), &root().join(folder), &mut found);
    assert!(!found.is_empty(), "nothing to look at in {folder:?}");
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be read").path();
        let hidden = ["target", ".git", "counterfoil-data"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !hidden {
            walk(root, &path, found);
        } else if path.is_file()
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let path = path.strip_prefix(root).expect("below the root").to_owned();
            found.push(Source { path, text });
        }
    }
}

/// Fails with all complaints at once.
pub(crate) fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
