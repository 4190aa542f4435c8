//! Turns records into commands: applies the server's checks, and identifies commands by stable
//! fields.

use super::read::{BadLine, Record};
use clap::ValueEnum;
use counterfoil_core::idempotency::derive::{Bucket, Identity, Stable, Width, member};
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::{self, Json, Object};
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::Time;
use counterfoil_wire::layout::Layout;
use counterfoil_wire::{charge, refund, time, transfer};
use std::collections::{BTreeMap, BTreeSet};

/// Largest command; many times the size of a real one.
const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// The type of object that the commands create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Route {
    Charges,
    Refunds,
    Transfers,
}

impl Route {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Route::Charges => "charges",
            Route::Refunds => "refunds",
            Route::Transfers => "transfers",
        }
    }

    pub(super) const fn layout(self) -> &'static Layout {
        match self {
            Route::Charges => &charge::LAYOUT,
            Route::Refunds => &refund::LAYOUT,
            Route::Transfers => &transfer::LAYOUT,
        }
    }

    /// Checks a body like the server. Only the server can tell whether an id exists.
    fn check(self, body: &Json) -> Result<(), Vec<Flaw>> {
        let references = References::new(MacKey::new(&[0; 32]));
        match self {
            Route::Charges => charge::read(body, &references).map(|_| ()),
            Route::Refunds => refund::read(body, &references).map(|_| ()),
            Route::Transfers => transfer::read(body, &references).map(|_| ()),
        }
    }
}

/// The rules that identify commands.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) route: Route,
    pub(super) stable: Stable,
    /// The field with a command's creation time.
    pub(super) time_field: Option<String>,
    /// Length of a bucket; without one, a command has one key for ever.
    pub(super) width: Option<Width>,
}

/// A command, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: usize,
    pub(super) identity: Identity,
    /// The creation time in the file, if any.
    pub(super) time: Option<Time>,
    pub(super) body: Vec<u8>,
    /// Lines that repeat this command.
    pub(super) repeated_on: Vec<usize>,
}

impl Recipe {
    /// The bucket of a command that is sent at `now`.
    pub(super) fn bucket(&self, command: &Command, now: Time) -> Bucket {
        let number = |width: Width| Bucket::Number(width.number(command.time.unwrap_or(now)));
        self.width.map_or(Bucket::Forever, number)
    }

    /// The commands of `records`, each once, in file order. Problems are added to `bad`.
    pub(super) fn commands(&self, records: Vec<Record>, bad: &mut Vec<BadLine>) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::with_capacity(records.len());
        let mut known: BTreeMap<Identity, Vec<usize>> = BTreeMap::new();
        let mut conflicting = BTreeSet::new();
        for record in records {
            let line = record.line;
            let command = match self.command(record) {
                Ok(command) => command,
                Err(reason) => {
                    bad.push(BadLine::new(line, reason));
                    continue;
                }
            };
            let alike = known.entry(command.identity.clone()).or_default();
            match self.compare(&command, alike.iter().filter_map(|at| Some((*at, commands.get(*at)?)))) {
                Comparison::New => {
                    alike.push(commands.len());
                    commands.push(command);
                }
                Comparison::Repeat(at) => {
                    if let Some(first) = commands.get_mut(at) {
                        first.repeated_on.push(line);
                    }
                }
                Comparison::Conflict(at, first, why) => {
                    bad.push(BadLine::new(line, format!("it has the stable fields of line {first}, {why}")));
                    conflicting.insert(at);
                }
            }
        }
        // Only the author knows which of the lines is right, so the first one is not sent either.
        for first in conflicting.iter().filter_map(|at| commands.get(*at)) {
            let lines = std::iter::once(&first.line).chain(&first.repeated_on);
            bad.extend(
                lines
                    .map(|line| BadLine::new(*line, "other lines have its stable fields and differ from it")),
            );
        }
        (0..).zip(commands).filter(|(at, _)| !conflicting.contains(at)).map(|(_, command)| command).collect()
    }

    fn compare<'a>(
        &self,
        command: &Command,
        alike: impl Iterator<Item = (usize, &'a Command)>,
    ) -> Comparison {
        const DIFFERS: &str =
            "but differs from it in others; correct one, or declare a field that tells them apart";
        const NEAR: &str = "and a time in the neighbouring bucket: is it one command or two? Remove one, or declare a field that tells them apart";
        for (at, first) in alike {
            let distance = match (self.bucket(command, Time::EPOCH), self.bucket(first, Time::EPOCH)) {
                (Bucket::Number(one), Bucket::Number(other)) => one.abs_diff(other),
                (Bucket::Forever, _) | (_, Bucket::Forever) => 0,
            };
            match distance {
                0 if first.body == command.body => return Comparison::Repeat(at),
                0 => return Comparison::Conflict(at, first.line, DIFFERS),
                1 => return Comparison::Conflict(at, first.line, NEAR),
                2.. => {}
            }
        }
        Comparison::New
    }

    fn command(&self, record: Record) -> Result<Command, String> {
        let identity = self.stable.identify(&record.object).map_err(|error| error.to_string())?;
        let time = self.time(&record.object)?;
        let json = Json::Object(self.sent(record.object)?);
        self.route.check(&json).map_err(|flaws| sentence(&flaws))?;
        let mut body = Vec::with_capacity(256);
        json::canonical(&json, &mut body);
        if body.len() > COMMAND_BYTES_MAX {
            return Err(format!("it has more than {COMMAND_BYTES_MAX} bytes; no command is that long"));
        }
        Ok(Command { line: record.line, identity, time, body, repeated_on: Vec::new() })
    }

    fn time(&self, object: &Object) -> Result<Option<Time>, String> {
        let Some(field) = &self.time_field else { return Ok(None) };
        let Some(Json::String(text)) = member(object, field) else {
            return Err(format!("the time `{field}` is missing or not text"));
        };
        let bad = || format!("`{field}` is not an RFC 3339 time; write it like 2026-01-31T12:00:00Z");
        time::parse(text).map(Some).ok_or_else(bad)
    }

    /// The body to send. Declared fields unknown to the server become metadata if the route has
    /// metadata; otherwise they are left out. The time field is left out, so that a later file may
    /// state the time more precisely.
    fn sent(&self, object: Object) -> Result<Object, String> {
        let layout = self.route.layout();
        let (mut sent, mut moved, mut metadata) = (Object::new(), Vec::new(), None);
        for (name, value) in object {
            if name == "metadata" {
                metadata = Some(value);
            } else if layout.knows(&name) {
                sent.insert(name, value).map_err(|error| error.to_string())?;
            } else if self.stable.fields().any(|field| field == name) {
                moved.push((name, text_of(&value)));
            } else if self.time_field.as_deref() != Some(name.as_str()) {
                // The server's reader reports the field with a suggestion.
                sent.insert(name, value).map_err(|error| error.to_string())?;
            }
        }
        let metadata = if layout.knows("metadata") && !moved.is_empty() {
            Some(with(metadata, moved)?)
        } else {
            metadata
        };
        if let Some(metadata) = metadata {
            sent.insert("metadata".into(), metadata).map_err(|error| error.to_string())?;
        }
        Ok(sent)
    }
}

enum Comparison {
    New,
    /// Repeats the command at this index.
    Repeat(usize),
    /// Equal stable fields but a contradiction: index and line of the first command, and the
    /// difference.
    Conflict(usize, usize, &'static str),
}

/// Adds the pairs `moved` to `metadata`.
fn with(metadata: Option<Json>, moved: Vec<(String, String)>) -> Result<Json, String> {
    let mut pairs = match metadata {
        None | Some(Json::Null) => Object::new(),
        Some(Json::Object(pairs)) => pairs,
        // The server's reader reports malformed metadata.
        Some(other) => return Ok(other),
    };
    for (name, text) in moved {
        let twice = format!("`{name}` is a field and a name in `metadata`; keep one of the two");
        pairs.insert(name, Json::String(text)).map_err(|_| twice)?;
    }
    Ok(Json::Object(pairs))
}

fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            let mut bytes = Vec::new();
            json::canonical(value, &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }
}

fn sentence(flaws: &[Flaw]) -> String {
    flaws.iter().map(|flaw| flaw.message.as_str()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
