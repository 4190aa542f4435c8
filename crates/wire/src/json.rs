//! A small JSON writer: it appends to one buffer, in one pass, with members in the order of the
//! calls.
//!
//! The core's parser reads JSON. Floats cannot be written, because no answer contains one.

/// Appends an object to `out`; `fill` writes its members.
pub fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    let mut object = Object { out, first: true };
    fill(&mut object);
    out.push(b'}');
}

/// An object being written.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Object<'_> {
    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name);
        string(self.out, value);
        self
    }

    pub fn string_or_null(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.string(name, value),
            None => self.null(name),
        }
    }

    pub fn integer(&mut self, name: &str, value: i64) -> &mut Self {
        self.name(name);
        if value < 0 {
            self.out.push(b'-');
        }
        digits(self.out, value.unsigned_abs());
        self
    }

    pub fn integer_or_null(&mut self, name: &str, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.integer(name, value),
            None => self.null(name),
        }
    }

    /// An integer of any size a sum may have.
    pub fn wide(&mut self, name: &str, value: i128) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(value.to_string().as_bytes());
        self
    }

    pub fn count(&mut self, name: &str, value: u64) -> &mut Self {
        self.name(name);
        digits(self.out, value);
        self
    }

    pub fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(if value { &b"true"[..] } else { &b"false"[..] });
        self
    }

    pub fn null(&mut self, name: &str) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(b"null");
        self
    }

    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.name(name);
        object(self.out, fill);
        self
    }

    /// Adds a value that `write` appends.
    pub fn value(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.name(name);
        write(self.out);
        self
    }

    /// Adds an array; `write` appends an element.
    pub fn array<T>(
        &mut self,
        name: &str,
        elements: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) -> &mut Self {
        self.name(name);
        self.out.push(b'[');
        for (index, element) in elements.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(self.out, element);
        }
        self.out.push(b']');
        self
    }

    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        string(self.out, name);
        self.out.push(b':');
    }
}

/// Appends a JSON string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        match special[0] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hex(control >> 4), hex(control & 15)]);
            }
        }
        rest = &special[1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn digits(out: &mut Vec<u8>, value: u64) {
    let mut text = [b'0'; 20];
    let (mut rest, mut start) = (value, text.len());
    loop {
        start -= 1;
        text[start] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

fn hex(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_keep_their_order() {
        let mut out = Vec::new();
        object(&mut out, |all| {
            all.string("b", "x\"\\\n\u{1}é")
                .integer("a", i64::MIN)
                .count("n", u64::MAX)
                .boolean("t", true)
                .null("z")
                .wide("w", i128::MIN)
                .integer_or_null("p", Some(7))
                .integer_or_null("q", None)
                .object("o", |_| {})
                .value("v", |out| string(out, "x"))
                .array("l", [1, 2], |out, n| {
                    object(out, |o| {
                        o.integer("n", n);
                    });
                });
        });
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"b":"x\"\\\n\u0001é","a":-9223372036854775808,"n":18446744073709551615,"t":true,"z":null,"w":-170141183460469231731687303715884105728,"p":7,"q":null,"o":{},"v":"x","l":[{"n":1},{"n":2}]}"#
        );
    }

    proptest! {
        #[test]
        fn other_parsers_read_the_written_json(name in ".*", text in ".*", number: i64, count: u64) {
            let mut out = Vec::new();
            object(&mut out, |all| {
                all.object("o", |o| { o.string(&name, &text); }).integer("i", number).count("c", count);
            });
            let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(&read["o"][&name], &serde_json::json!(text));
            prop_assert_eq!(&read["i"], &serde_json::json!(number));
            prop_assert_eq!(&read["c"], &serde_json::json!(count));
        }
    }
}
