//! Profile-guided optimisation (PGO): compiler flags and files of the build with counters and of
//! the build that uses them.

use crate::compile::target_directory;
use crate::failure::{Failure, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cargo's variable for compiler flags.
pub(crate) const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
const FLAG_SEPARATOR: &str = "\x1f";

/// Value profiles cannot live in mapped files, so both builds do without them.
const NO_VALUE_PROFILES: &str = "-Cllvm-args=-disable-vp";
const TOOL: &str = "llvm-profdata";
/// The Debian package of an LLVM that reads this compiler's profiles.
const PACKAGE: &str = "llvm-19";

/// Directory of builds and profiles. The two builds have separate directories, because cargo does
/// not notice a changed profile.
pub(crate) fn directory() -> PathBuf {
    target_directory().join("pgo")
}

/// The counters of the latest run of the loads.
pub(crate) fn counters() -> PathBuf {
    directory().join("counters")
}

/// The merged profile that a guided build reads.
pub(crate) fn profile() -> PathBuf {
    directory().join("merged.profdata")
}

/// The build directory of guided builds. They fit one profile only: delete the directory when the
/// profile changes.
pub(crate) fn guided_directory() -> PathBuf {
    directory().join("guided")
}

/// Environment of a build with counters. Counters live in a mapped file, so killed processes keep
/// theirs.
pub(crate) fn counting() -> Result<Environment> {
    let relocated = "-Cllvm-args=-runtime-counter-relocation".to_owned();
    let flags = ["-Cprofile-generate".to_owned(), NO_VALUE_PROFILES.to_owned(), relocated];
    environment(&flags, directory().join("counting"))
}

/// Environment of a build that uses the merged profile.
pub(crate) fn guided() -> Result<Environment> {
    let profile = profile();
    if !profile.is_file() {
        return Err(Failure::new("there is no profile yet: run `cargo xtask dist` first"));
    }
    // A function that has changed since is compiled without its counters; that needs no warning.
    let tolerant = "-Cllvm-args=-no-pgo-warn-mismatch".to_owned();
    let flags = [format!("-Cprofile-use={}", profile.display()), NO_VALUE_PROFILES.to_owned(), tolerant];
    environment(&flags, guided_directory())
}

/// Variables for a cargo command.
pub(crate) type Environment = [(&'static str, OsString); 3];

/// A named target keeps the flags away from build scripts and procedural macros.
fn environment(flags: &[String], directory: PathBuf) -> Result<Environment> {
    let own = std::env::var("RUSTFLAGS").unwrap_or_default();
    let all: Vec<&str> = own.split_whitespace().chain(flags.iter().map(String::as_str)).collect();
    Ok([
        (FLAGS, all.join(FLAG_SEPARATOR).into()),
        ("CARGO_BUILD_TARGET", rustc(&["--print", "host-tuple"])?.into()),
        ("CARGO_TARGET_DIR", directory.into()),
    ])
}

/// Finds `llvm-profdata`: the compiler's own, or Debian's.
pub(crate) fn merge_tool() -> Result<PathBuf> {
    let libraries = rustc(&["--print", "target-libdir"])?;
    let own = Path::new(&libraries).with_file_name("bin").join(TOOL);
    let debians = Path::new("/usr/lib").join(PACKAGE).join("bin").join(TOOL);
    [own, debians].into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::new(format!(
            "{TOOL} is needed to merge the counters: install Debian's package {PACKAGE} \
             (as root: apt-get install {PACKAGE}), or rustup's component llvm-tools; \
             --no-profile builds without it"
        ))
    })
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc").args(arguments).output();
    let output = output.map_err(Failure::while_("starting rustc"))?;
    if !output.status.success() {
        return Err(Failure::new(format!("rustc {} ended with {}", arguments.join(" "), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_with_counters_have_a_separate_directory() {
        let [(_, flags), (_, target), (_, directory)] = counting().unwrap();
        assert!(flags.to_string_lossy().contains("-Cprofile-generate\x1f"), "{flags:?}");
        assert!(target.to_string_lossy().contains('-'), "{target:?}");
        assert!(Path::new(&directory).ends_with("pgo/counting"), "{directory:?}");
    }
}
