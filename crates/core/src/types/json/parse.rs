//! The parser: bytes to a [`Json`] value, in one pass.
//!
//! The parser accepts RFC 8259 and nothing more. Open containers are on an explicit stack, so no
//! input recurses. An error names its byte, its place as an RFC 6901 pointer, and the remedy.
//! `parse/string.rs` reads strings.

use super::{Json, Object};
use crate::types::decimal::{Decimal, DecimalError};
use std::fmt;

mod string;

/// Nesting depth of arrays and objects: requests need 4, and dropping a value recurses this deep.
pub const DEPTH_MAX: usize = 64;
/// Members and elements of a body in total, so a small body cannot become a large tree. A thousand
/// transactions of a few entries each fit.
pub const ITEMS_MAX: usize = 100_000;
/// Members of one object: no request needs a hundred, and lookup slows down with the size.
pub const MEMBERS_MAX: usize = 1_000;
/// Bytes of an error's pointer: keys are the client's, and the pointer is sent back.
pub const POINTER_BYTES_MAX: usize = 512;

/// Why bytes are not an acceptable JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The byte at which the error was noticed.
    pub offset: usize,
    /// The RFC 6901 pointer of the value at that byte. If it exceeds [`POINTER_BYTES_MAX`], the
    /// pointer of an enclosing value.
    pub pointer: String,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}, at {:?}: {}", self.offset, self.pointer, self.message)
    }
}

impl std::error::Error for ParseError {}

pub(super) fn parse(input: &[u8]) -> Result<Json, ParseError> {
    let mut parser = Parser { input, at: 0, items: 0, stack: Vec::new(), in_item: false };
    if input.starts_with(b"\xef\xbb\xbf") {
        return Err(parser.fail(0, "the body starts with a byte order mark; send UTF-8 without one"));
    }
    parser.document()
}

struct Parser<'a> {
    input: &'a [u8],
    at: usize,
    items: usize,
    stack: Vec<Container>,
    /// Whether the parser is inside an item of the innermost container, or between items.
    in_item: bool,
}

/// An open container. An object's last member is the one being read.
enum Container {
    Array(Vec<Json>),
    Object(Object),
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Json, ParseError> {
        loop {
            let Some(mut value) = self.value()? else { continue };
            // Each closing bracket completes one more value.
            loop {
                match self.stack.last_mut() {
                    Some(Container::Array(elements)) => elements.push(value),
                    Some(Container::Object(object)) => object.set_last(value),
                    None => return self.end(value),
                }
                self.in_item = false;
                match self.after_item()? {
                    Some(closed) => value = closed,
                    None => break,
                }
            }
        }
    }

    /// Reads a value; `None` for a container whose first item comes next.
    fn value(&mut self) -> Result<Option<Json>, ParseError> {
        self.skip_space();
        match self.byte() {
            Some(b'"') => {
                self.advance(1);
                Ok(Some(Json::String(self.string()?)))
            }
            Some(b'{') => self.open(Container::Object(Object::new())),
            Some(b'[') => self.open(Container::Array(Vec::new())),
            Some(b'-' | b'0'..=b'9') => self.number().map(Some),
            Some(b't') => self.literal("true", Json::Bool(true)),
            Some(b'f') => self.literal("false", Json::Bool(false)),
            Some(b'n') => self.literal("null", Json::Null),
            Some(_) | None => Err(self.unexpected("a value")),
        }
    }

    fn number(&mut self) -> Result<Json, ParseError> {
        match Decimal::scan(self.rest()) {
            Ok((number, used)) => {
                self.advance(used);
                Ok(Json::Number(number))
            }
            Err(error) => {
                let into = match error {
                    DecimalError::Grammar { offset, .. } => offset,
                    DecimalError::Digits | DecimalError::Exponent => 0,
                };
                Err(self.fail(self.at.saturating_add(into), error.to_string()))
            }
        }
    }

    fn literal(&mut self, word: &str, value: Json) -> Result<Option<Json>, ParseError> {
        if self.rest().starts_with(word.as_bytes()) {
            self.advance(word.len());
            Ok(Some(value))
        } else {
            Err(self
                .fail(self.at, format!("not a JSON value; did you mean {word}? Texts need double quotes")))
        }
    }

    fn open(&mut self, container: Container) -> Result<Option<Json>, ParseError> {
        if self.stack.len() >= DEPTH_MAX {
            return Err(self.fail(self.at, format!("nested too deep; keep within {DEPTH_MAX} levels")));
        }
        self.advance(1);
        self.skip_space();
        match (container, self.byte()) {
            (Container::Array(elements), Some(b']')) => {
                self.advance(1);
                Ok(Some(Json::Array(elements)))
            }
            (Container::Object(object), Some(b'}')) => {
                self.advance(1);
                Ok(Some(Json::Object(object)))
            }
            (container @ (Container::Array(_) | Container::Object(_)), Some(_) | None) => {
                self.stack.push(container);
                self.in_item = false;
                self.begin_item()?;
                Ok(None)
            }
        }
    }

    /// Counts an item of the innermost container and, in an object, reads its name and colon.
    fn begin_item(&mut self) -> Result<(), ParseError> {
        self.items = self.items.saturating_add(1);
        if self.items > ITEMS_MAX {
            let message = format!("too many members and elements; send at most {ITEMS_MAX} in one body");
            return Err(self.fail(self.at, message));
        }
        if let Some(Container::Object(_)) = self.stack.last() {
            self.skip_space();
            let key_at = self.at;
            if self.byte() != Some(b'"') {
                return Err(self.unexpected("a member name in double quotes"));
            }
            self.advance(1);
            let key = self.string()?;
            if let Some(Container::Object(object)) = self.stack.last()
                && object.len() >= MEMBERS_MAX
            {
                let message = format!("too many members; send at most {MEMBERS_MAX} in one object");
                return Err(self.fail(key_at, message));
            }
            if let Some(Container::Object(object)) = self.stack.last_mut()
                && let Err(duplicate) = object.insert(key, Json::Null)
            {
                let mut error = self.fail(key_at, "the object has this member twice; send each name once");
                extend(&mut error.pointer, &duplicate.key);
                return Err(error);
            }
            self.in_item = true;
            self.skip_space();
            if self.byte() != Some(b':') {
                return Err(self.unexpected("a colon after the member name"));
            }
            self.advance(1);
        }
        self.in_item = true;
        Ok(())
    }

    /// Reads the end of an item: a comma and the start of the next one, or the container's closing
    /// bracket.
    fn after_item(&mut self) -> Result<Option<Json>, ParseError> {
        self.skip_space();
        let byte = self.byte();
        if byte == Some(b',') {
            self.advance(1);
            self.begin_item()?;
            return Ok(None);
        }
        let closed = match (self.stack.last(), byte) {
            (Some(Container::Array(_)), Some(b']')) | (Some(Container::Object(_)), Some(b'}')) => {
                self.stack.pop()
            }
            (Some(Container::Array(_)), Some(_) | None) => return Err(self.unexpected("a comma or ']'")),
            (Some(Container::Object(_)), Some(_) | None) => return Err(self.unexpected("a comma or '}'")),
            (None, Some(_) | None) => None,
        };
        self.advance(1);
        // The container was itself an item of the enclosing container.
        self.in_item = true;
        Ok(closed.map(|container| match container {
            Container::Array(elements) => Json::Array(elements),
            Container::Object(object) => Json::Object(object),
        }))
    }

    fn end(&mut self, value: Json) -> Result<Json, ParseError> {
        self.skip_space();
        match self.byte() {
            None => Ok(value),
            Some(_) => {
                Err(self.fail(self.at, "bytes after the end of the value; send exactly one JSON value"))
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.advance(1);
        }
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = match self.byte() {
            None => "the body ended".to_owned(),
            Some(byte @ b'!'..=b'~') => format!("found '{}'", char::from(byte)),
            Some(byte) => format!("found byte 0x{byte:02x}"),
        };
        self.fail(self.at, format!("expected {expected} but {found}; send valid JSON (RFC 8259)"))
    }

    fn fail(&self, offset: usize, message: impl Into<String>) -> ParseError {
        let mut pointer = String::new();
        let done = usize::from(!self.in_item);
        for container in self.stack.iter().take(self.stack.len().saturating_sub(done)) {
            let fits = match container {
                Container::Array(elements) => extend(&mut pointer, &elements.len().to_string()),
                Container::Object(object) => extend(&mut pointer, object.last_key().unwrap_or_default()),
            };
            if !fits {
                break;
            }
        }
        ParseError { offset, pointer, message: message.into() }
    }
}

/// Appends one RFC 6901 reference token, if the pointer stays within its bound.
fn extend(pointer: &mut String, token: &str) -> bool {
    let escapes = token.bytes().filter(|byte| matches!(byte, b'~' | b'/')).count();
    let length = pointer.len().saturating_add(token.len()).saturating_add(escapes).saturating_add(1);
    if length > POINTER_BYTES_MAX {
        return false;
    }
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
    true
}
