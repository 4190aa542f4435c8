//! The strings of the parser: UTF-8 checked, escapes resolved, surrogates only in pairs.

use super::{ParseError, Parser};

impl Parser<'_> {
    /// Reads a string after its opening quote. A string without escapes takes one allocation.
    pub(super) fn string(&mut self) -> Result<String, ParseError> {
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let length =
                rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
            match std::str::from_utf8(rest.get(..length).unwrap_or_default()) {
                Ok(plain) => text.push_str(plain),
                Err(error) => {
                    let offset = self.at.saturating_add(error.valid_up_to());
                    return Err(self.fail(offset, "the string is not valid UTF-8; encode the body as UTF-8"));
                }
            }
            self.advance(length);
            match self.byte() {
                Some(b'"') => {
                    self.advance(1);
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(byte) => {
                    let message = format!("a control character in a string; write it as \\u{byte:04x}");
                    return Err(self.fail(self.at, message));
                }
                None => {
                    return Err(
                        self.fail(self.at, "the body ended inside a string; close it with a double quote")
                    );
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let start = self.at;
        self.advance(1);
        let byte = self.byte();
        self.advance(1);
        match byte {
            Some(same @ (b'"' | b'\\' | b'/')) => Ok(char::from(same)),
            Some(b'b') => Ok('\u{8}'),
            Some(b'f') => Ok('\u{c}'),
            Some(b'n') => Ok('\n'),
            Some(b'r') => Ok('\r'),
            Some(b't') => Ok('\t'),
            Some(b'u') => self.unicode(start),
            Some(_) | None => Err(self
                .fail(start, "an unknown escape; after a backslash use one of \" \\ / b f n r t or uXXXX")),
        }
    }

    /// Reads the digits of a `\u` escape, and the second escape of a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, ParseError> {
        let first = self.unit(start)?;
        let code = match first {
            0xd800..=0xdbff if self.rest().starts_with(b"\\u") => {
                self.advance(2);
                let second = self.unit(start)?;
                match second {
                    // The ten low bits of each half, above the first plane.
                    0xdc00..=0xdfff => ((first & 0x3ff) << 10 | (second & 0x3ff)).saturating_add(0x1_0000),
                    _ => first,
                }
            }
            _ => first,
        };
        // Only a surrogate is not a character.
        char::from_u32(code).ok_or_else(|| {
            self.fail(
                start,
                "half of a surrogate pair; send both halves, \\ud800-\\udbff then \\udc00-\\udfff",
            )
        })
    }

    /// Reads the four hexadecimal digits of one UTF-16 code unit.
    fn unit(&mut self, start: usize) -> Result<u32, ParseError> {
        let digits = self.rest().first_chunk::<4>();
        let unit = digits.and_then(|digits| {
            digits.iter().try_fold(0_u32, |sum, byte| Some(sum << 4 | char::from(*byte).to_digit(16)?))
        });
        match unit {
            Some(unit) => {
                self.advance(4);
                Ok(unit)
            }
            None => {
                Err(self.fail(start, "a \\u escape without four hexadecimal digits; write it like \\u00e9"))
            }
        }
    }
}
