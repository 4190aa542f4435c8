//! The configuration from outside: a file, variables and flags in, settings or problems out.

mod agreement;
mod page;
mod peers;
mod precedence;
mod refusals;
mod secrets;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Override, Settings};

/// The layers of one test.
#[derive(Default)]
struct Given {
    file: Option<File>,
    variables: Vec<(String, String)>,
    flags: Vec<Override>,
}

fn nothing() -> Given {
    Given::default()
}

fn file(text: &str) -> Given {
    Given { file: Some(File::with(text.as_bytes())), ..Given::default() }
}

impl Given {
    fn env(mut self, name: &str, value: &str) -> Given {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn flag(mut self, source: &'static str, section: &'static str, name: &'static str, value: &str) -> Given {
        self.flags.push(Override { section, name, value: value.to_owned(), source });
        self
    }

    fn load(self) -> Settings {
        self.try_load().unwrap_or_else(|problems| panic!("refused:\n{problems}"))
    }

    /// The problems as printed, with the file's name shortened to `FILE`.
    fn problems(self) -> Vec<String> {
        let path =
            self.file.as_ref().map_or_else(|| "no file".to_owned(), |file| file.0.display().to_string());
        let problems = self.try_load().expect_err("these settings should be refused");
        problems.to_string().lines().map(|line| line.replace(&path, "FILE")).collect()
    }

    #[track_caller]
    fn refused(self, expected: &[&str]) {
        assert_eq!(self.problems(), expected);
    }

    fn try_load(self) -> Result<Settings, super::problem::Problems> {
        let path: Option<&Path> = self.file.as_ref().map(|file| file.0.as_path());
        Settings::load(path, self.variables.into_iter(), self.flags)
    }
}

/// A temporary file, removed when dropped.
struct File(PathBuf);

impl File {
    fn with(bytes: &[u8]) -> File {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("counterfoil-config-{}-{count}.toml", std::process::id()));
        std::fs::write(&path, bytes).expect("the temporary folder is writable");
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A file left in the temporary folder does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}
