//! The position of a JSON reader after a prefix of a valid text, which an error there must name.

/// The pointer that an error must name if `text` is damaged after `length` bytes: a value that has
/// begun, or else the object or array that expects an item.
pub(crate) fn at(text: &[u8], length: usize) -> String {
    let mut reader = Reader::default();
    for &byte in &text[..length] {
        reader.take(byte);
    }
    reader.pointer()
}

#[derive(Default)]
struct Reader {
    /// The enclosing containers, each with the name or number of its item.
    around: Vec<Item>,
    text: Option<String>,
    escaped: bool,
    /// The letters of a bare word so far.
    word: String,
}

struct Item {
    is_array: bool,
    number: usize,
    name: String,
    /// Whether the item's value is due or has begun.
    within: bool,
}

impl Reader {
    fn take(&mut self, byte: u8) {
        if let Some(text) = &mut self.text {
            match byte {
                b'"' if !self.escaped => self.end_of_text(),
                _ => {
                    self.escaped = byte == b'\\' && !self.escaped;
                    text.push(char::from(byte));
                }
            }
            return;
        }
        match byte {
            b'"' => self.text = Some(String::new()),
            b'{' | b'[' => {
                let is_array = byte == b'[';
                self.around.push(Item { is_array, number: 0, name: String::new(), within: is_array });
            }
            b'}' | b']' => {
                self.around.pop();
                self.ended();
            }
            b',' => {
                if let Some(item) = self.around.last_mut() {
                    item.number += 1;
                    item.within = item.is_array;
                }
            }
            // The digits read so far form a complete number.
            b'0'..=b'9' => self.ended(),
            // A decimal point needs a digit after it.
            b'.' => self.within(true),
            b'a'..=b'z' => {
                self.word.push(char::from(byte));
                if ["true", "false", "null"].contains(&self.word.as_str()) {
                    self.word.clear();
                    self.ended();
                }
            }
            _ => {}
        }
    }

    fn end_of_text(&mut self) {
        let text = self.text.take().unwrap();
        match self.around.last_mut() {
            Some(item) if !item.is_array && !item.within => {
                item.name = text;
                // From its name on, the member is the item being read.
                item.within = true;
            }
            _ => self.ended(),
        }
    }

    fn ended(&mut self) {
        self.within(false);
    }

    fn within(&mut self, within: bool) {
        if let Some(item) = self.around.last_mut() {
            item.within = within;
        }
    }

    fn pointer(&self) -> String {
        let known = self.around.iter().take_while(|item| item.within);
        let tokens =
            known.map(|item| if item.is_array { item.number.to_string() } else { item.name.clone() });
        let escaped = tokens.map(|token| token.replace('~', "~0").replace('/', "~1"));
        escaped.flat_map(|token| ["/".to_owned(), token]).collect()
    }
}

#[test]
fn every_prefix_has_its_pointer() {
    let text = br#"{"a":"b","c":[{"d":true},2]}"#;
    for (length, place) in [
        (0, ""),
        (1, ""),
        (3, ""),
        (4, "/a"),
        (5, "/a"),
        (7, "/a"),
        (8, ""),
        (13, "/c"),
        (14, "/c/0"),
        (15, "/c/0"),
        (19, "/c/0/d"),
        (22, "/c/0/d"),
        (23, "/c/0"),
        (24, "/c"),
        (25, "/c/1"),
        (26, "/c"),
        (27, ""),
        (28, ""),
    ] {
        assert_eq!(at(text, length), place, "{length}");
    }
}
