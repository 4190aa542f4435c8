//! Writing JSON straight into bytes: no tree, no formatting machinery, one buffer per answer.

use bytes::Bytes;

use crate::id;

/// A growing JSON text. Handles numbers and escaping; the caller handles the structure.
pub(crate) struct Json(Vec<u8>);

impl Json {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Json(Vec::with_capacity(bytes))
    }

    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub(crate) fn number(&mut self, mut value: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            // A remainder by ten is one digit.
            digits[first] = b'0' + u8::try_from(value % 10).unwrap_or_default();
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[first..]);
        self
    }

    pub(crate) fn quoted(&mut self, text: &str) -> &mut Self {
        self.0.push(b'"');
        if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            self.escaped(text);
        } else {
            self.raw(text);
        }
        self.0.push(b'"');
        self
    }

    /// Writes a string, or null.
    pub(crate) fn quoted_or_null(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.quoted(text),
            None => self.raw("null"),
        }
    }

    /// Writes a quoted id.
    pub(crate) fn id(&mut self, prefix: &str, run: u64, number: u32) -> &mut Self {
        self.0.push(b'"');
        id::push(&mut self.0, prefix, run, number);
        self.0.push(b'"');
        self
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from(self.0)
    }

    pub(crate) fn into_text(self) -> Box<str> {
        // Only text was ever written, so nothing is replaced.
        String::from_utf8_lossy(&self.0).into()
    }

    fn escaped(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '"' => self.raw("\\\""),
                '\\' => self.raw("\\\\"),
                '\n' => self.raw("\\n"),
                '\r' => self.raw("\\r"),
                '\t' => self.raw("\\t"),
                '\u{0}'..='\u{1f}' => self.raw(&format!("\\u{:04x}", u32::from(character))),
                plain => self.raw(plain.encode_utf8(&mut [0; 4])),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn strings_read_back_as_they_were() {
        for text in ["", "plain", "a\"b\\c", "\n\r\t\u{0}\u{1f}\u{7f}", "é 漢 🎟 \u{2028}"] {
            let mut json = Json::with_capacity(0);
            json.quoted(text);
            assert_eq!(serde_json::from_slice::<String>(&json.into_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn numbers_read_back_as_they_were() {
        for value in [0, 9, 10, 1250, u64::MAX] {
            let mut json = Json::with_capacity(0);
            json.number(value);
            assert_eq!(&*json.into_text(), value.to_string());
        }
    }
}
