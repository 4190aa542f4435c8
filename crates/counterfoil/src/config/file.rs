//! The file layer: TOML, with the line and column of every value.
//!
//! For broken TOML only syntax errors are reported: section boundaries are unreliable then, so
//! other reports could blame correct settings. A duplicate key does not make the rest unreadable.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declare::Section;
use super::gather::GivenSetting;
use super::peers;
use super::problem::{Problem, quoted};
use super::rule::Raw;
use super::source::Source;
use super::suggest::{unknown_section, unknown_setting};

/// Configurations are small; a file this large was named by mistake.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The values of a file. `broken` means that part of the file could not be read, so settings may be
/// missing.
#[derive(Default)]
pub(super) struct Layer {
    pub(super) given: Vec<GivenSetting>,
    pub(super) peers: Vec<peers::GivenPeer>,
    pub(super) broken: bool,
}

pub(super) fn read(table: &[Section], path: &Path, problems: &mut Vec<Problem>) -> Layer {
    match contents(path) {
        Ok(text) => Reader { table, path, text: &text, problems }.read(),
        Err(sentence) => {
            let source = Source::File { path: path.display().to_string(), position: None };
            problems.push(Problem { source, sentence });
            Layer { broken: true, ..Layer::default() }
        }
    }
}

fn contents(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("the configuration file cannot be read ({error})"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("the configuration file is larger than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "the configuration file is not UTF-8 text".to_owned())
}

struct Reader<'a> {
    table: &'a [Section],
    path: &'a Path,
    text: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn read(mut self) -> Layer {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        let mut readable = true;
        for error in &errors {
            // Not the error's own `Display`, which repeats the line and with it perhaps a
            // credential.
            let span = error.span().unwrap_or(0..0);
            let sentence = match (error.message(), self.text.get(span.clone())) {
                ("duplicate key", Some(key)) => format!("{} is given twice; remove one", quoted(key.trim())),
                (message, _) => {
                    readable = false;
                    format!("this is not valid TOML ({message})")
                }
            };
            self.refuse(span.start, sentence);
        }
        let mut layer = Layer { broken: !errors.is_empty(), ..Layer::default() };
        if readable {
            self.root(document.get_ref(), &mut layer);
        }
        layer
    }

    fn root(&mut self, document: &DeTable<'_>, layer: &mut Layer) {
        for (key, value) in document {
            let (key, at) = (key.get_ref().as_ref(), key.span().start);
            let known = self.table.iter().find(|section| section.name == key);
            match (known, value.get_ref()) {
                (Some(section), DeValue::Table(entries)) if section.name == peers::SECTION => {
                    layer.peers.extend(entries.iter().map(|(name, value)| peers::GivenPeer {
                        name: name.get_ref().as_ref().to_owned(),
                        raw: raw(value),
                        source: self.source(value.span().start),
                    }));
                }
                (Some(section), DeValue::Table(entries)) => self.section(section, entries, &mut layer.given),
                (Some(section), other) => {
                    let name = section.name;
                    let sentence = format!("`{name}` must be a section `[{name}]`, not {}", kind(other));
                    self.refuse(at, sentence);
                }
                (None, DeValue::Table(_)) => self.refuse(at, unknown_section(self.table, key)),
                (None, _) => {
                    let sentence = unknown_setting(self.table, ("", key), |s, n| format!("{s}.{n}"));
                    self.refuse(at, format!("{} outside any section {sentence}", quoted(key)));
                }
            }
        }
    }

    fn section(&mut self, section: &Section, entries: &DeTable<'_>, given: &mut Vec<GivenSetting>) {
        for (key, value) in entries {
            let (key, at) = (key.get_ref().as_ref(), key.span().start);
            if let Some(entry) = section.entries.iter().find(|entry| entry.name == key) {
                let source = self.source(value.span().start);
                given.push(GivenSetting { section: section.name, name: entry.name, raw: raw(value), source });
            } else {
                let written = |s: &str, n: &str| {
                    if s == section.name { n.to_owned() } else { format!("{s}.{n}") }
                };
                let sentence = unknown_setting(self.table, (section.name, key), written);
                self.refuse(at, format!("{} {sentence}", quoted(&format!("{}.{key}", section.name))));
            }
        }
    }

    fn refuse(&mut self, at: usize, sentence: String) {
        let source = self.source(at);
        self.problems.push(Problem { source, sentence });
    }

    fn source(&self, at: usize) -> Source {
        Source::File { path: self.path.display().to_string(), position: Some(self.position(at)) }
    }

    /// Line and column, both from 1; columns count characters.
    fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

fn raw(value: &Spanned<DeValue<'_>>) -> Raw {
    match value.get_ref() {
        DeValue::String(text) => Raw::Quoted(text.clone().into_owned()),
        DeValue::Integer(integer) => {
            let decimal = i128::from_str_radix(integer.as_str(), integer.radix()).map(|n| n.to_string());
            Raw::Integer(decimal.unwrap_or_else(|_| integer.to_string()))
        }
        DeValue::Array(elements) => list(elements).unwrap_or(Raw::Other("an array")),
        other => Raw::Other(kind(other)),
    }
}

fn list(elements: &[Spanned<DeValue<'_>>]) -> Option<Raw> {
    let text = |element: &Spanned<DeValue<'_>>| match element.get_ref() {
        DeValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    };
    elements.iter().map(text).collect::<Option<_>>().map(Raw::List)
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
