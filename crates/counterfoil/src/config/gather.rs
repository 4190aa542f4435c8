//! Combines the layers: reads each, refuses bad values in any, and lets the strongest win.

use std::path::Path;

use super::Settings;
use super::agree;
use super::declare::Section;
use super::environment;
use super::file;
use super::peers::{self, Peers};
use super::problem::{Problem, Problems};
use super::rule::{Raw, Rule};
use super::source::{Source, Sources};
use super::suggest::unknown_setting;
use super::table::catalogue;

/// A setting given by a flag.
pub(crate) struct Override {
    pub(crate) section: &'static str,
    /// The setting's name in its section. For a peer, `value` begins with the peer's name.
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// The flag as typed, such as `--listen`.
    pub(crate) source: &'static str,
}

/// A value from one layer.
pub(super) struct GivenSetting {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) raw: Raw,
    pub(super) source: Source,
}

/// The values of all layers, weakest first.
pub(super) struct Gatherer {
    given: Vec<GivenSetting>,
    peers: Vec<peers::GivenPeer>,
    sources: Sources,
    problems: Vec<Problem>,
    refused: Vec<(&'static str, &'static str)>,
}

impl Gatherer {
    /// The strongest value of a setting. A bad value in a weaker layer is also refused, because it
    /// would take effect once the stronger one is removed.
    pub(super) fn take<R: Rule>(&mut self, section: &'static str, name: &'static str, rule: &R) -> R::Value {
        let (mut value, mut source) = (rule.default(), Source::Default);
        for given in self.given.iter().filter(|given| given.section == section && given.name == name) {
            match rule.read(&given.raw) {
                Ok(read) => (value, source) = (read, given.source.clone()),
                Err(wrong) => {
                    let sentence = format!("`{section}.{name}` {wrong}");
                    self.problems.push(Problem { source: given.source.clone(), sentence });
                    self.refused.push((section, name));
                }
            }
        }
        self.sources.push(section, name, source);
        value
    }

    pub(super) fn take_peers(&mut self) -> Peers {
        peers::settle(std::mem::take(&mut self.peers), &mut self.problems)
    }

    pub(super) fn take_sources(&mut self) -> Sources {
        std::mem::take(&mut self.sources)
    }
}

impl Settings {
    /// Reads all settings: flags win over the environment, the environment over the file, the file
    /// over defaults.
    pub(crate) fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        overrides: Vec<Override>,
    ) -> Result<Settings, Problems> {
        let table = catalogue();
        let mut problems = Vec::new();
        let layer = file.map(|path| file::read(&table, path, &mut problems)).unwrap_or_default();
        let (mut given, mut peers) = (layer.given, layer.peers);
        given.extend(environment::read(&table, env, &mut peers, &mut problems));
        given.extend(flags(&table, overrides, &mut peers, &mut problems));

        let mut gather =
            Gatherer { given, peers, sources: Sources::default(), problems, refused: Vec::new() };
        let mut settings = Settings::take(&mut gather);
        let Gatherer { mut problems, refused, .. } = gather;

        // A refused value stands at its default here, so comparing it could blame the wrong
        // setting.
        let unsure = |setting: &str| {
            layer.broken || refused.iter().any(|(s, n)| setting.split_once('.') == Some((*s, *n)))
        };
        problems.extend(agree::settle(&mut settings, unsure));
        match Problems::of(problems) {
            Some(problems) => Err(problems),
            None => Ok(settings),
        }
    }

    /// The source of `section.name`; `None` if there is no such setting.
    pub(crate) fn source(&self, setting: &str) -> Option<&Source> {
        self.sources.get(setting)
    }
}

fn flags(
    table: &[Section],
    overrides: Vec<Override>,
    peers: &mut Vec<peers::GivenPeer>,
    problems: &mut Vec<Problem>,
) -> Vec<GivenSetting> {
    let mut given = Vec::new();
    for Override { section, name, value, source } in overrides {
        let source = Source::Flag(source.to_owned());
        if section == peers::SECTION {
            match peers::flag(&value, source) {
                Ok(peer) => peers.push(peer),
                Err(problem) => problems.push(problem),
            }
        } else if table.iter().flat_map(|s| &s.entries).any(|e| e.section == section && e.name == name) {
            given.push(GivenSetting { section, name, raw: Raw::Bare(value), source });
        } else {
            let sentence = unknown_setting(table, (section, name), |s, n| format!("{s}.{n}"));
            problems.push(Problem { source, sentence: format!("`{section}.{name}` {sentence}") });
        }
    }
    given
}
