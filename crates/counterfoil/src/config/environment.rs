//! The environment layer: `COUNTERFOIL_` + section + `__` + name, in upper case.

use super::declare::Section;
use super::gather::GivenSetting;
use super::peers;
use super::problem::Problem;
use super::rule::Raw;
use super::source::Source;
use super::suggest::unknown_setting;

const PREFIX: &str = "COUNTERFOIL_";

/// Variables of this process that may be settings. Bytes outside UTF-8 become U+FFFD, which every
/// rule refuses. `std::env::vars` would panic on them, even in an unrelated variable.
pub(crate) fn process_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}

/// The variable of `section.name`.
pub(super) fn variable(section: &str, name: &str) -> String {
    format!("{PREFIX}{section}__{name}").to_ascii_uppercase()
}

/// Reads the variables that are settings. A variable without `__` belongs to something else, such
/// as a command.
pub(super) fn read(
    table: &[Section],
    variables: impl Iterator<Item = (String, String)>,
    peers: &mut Vec<peers::GivenPeer>,
    problems: &mut Vec<Problem>,
) -> Vec<GivenSetting> {
    let mut given = Vec::new();
    for (name, value) in variables {
        let Some(rest) = name.strip_prefix(PREFIX).filter(|_| name.contains("__")) else {
            continue;
        };
        let source = Source::Environment(name.clone());
        if let Some(peer) = name.strip_prefix(&variable(peers::SECTION, "")) {
            peers.push(peers::GivenPeer { name: peer.to_ascii_lowercase(), raw: Raw::Bare(value), source });
            continue;
        }
        let entry = table.iter().flat_map(|s| &s.entries).find(|e| variable(e.section, e.name) == name);
        if let Some(entry) = entry {
            given.push(GivenSetting {
                section: entry.section,
                name: entry.name,
                raw: Raw::Bare(value),
                source,
            });
        } else {
            let asked = rest.split_once("__").unwrap_or(("", rest.trim_start_matches('_')));
            problems.push(Problem { source, sentence: unknown_setting(table, asked, variable) });
        }
    }
    given
}
