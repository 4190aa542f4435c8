//! `application/x-www-form-urlencoded` bodies, with Stripe's brackets: `metadata[order]=42`.
//!
//! Promises: the form and the JSON of one request become equal values, and so have equal
//! fingerprints. The layout tells which fields are numbers, truth values and arrays
//! (`entries[0][amount]=5`). Decoding is strict: bad escapes, bytes that are not UTF-8, repeated
//! names, malformed brackets and gaps in an array are errors, never guesses.

use crate::layout::{Layout, Shape};
use crate::names::printable;
use crate::pointer;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::{ITEMS_MAX, Json, Object};
use std::collections::BTreeMap;

/// Most levels of brackets: `transactions[0][entries][0][account]`.
const DEPTH_MAX: usize = 5;

enum Node {
    Leaf(String),
    Branch(BTreeMap<String, Node>),
}

/// Parses a form body laid out as `layout`. A text that does not fit its shape stays a text, so
/// that the reader of the request can report the problem.
pub fn parse(input: &[u8], layout: &Layout) -> Result<Json, Flaw> {
    let mut root = BTreeMap::new();
    for (name, value) in pairs(input)? {
        let path = segments(&name)?;
        put(&mut root, &path, value)?;
    }
    object(root, "", |name| layout.shape(name))
}

/// Parses a form body or a query string into its decoded pairs, in order; names may repeat.
pub fn pairs(input: &[u8]) -> Result<Vec<(String, String)>, Flaw> {
    let mut pairs = Vec::new();
    for pair in input.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        if pairs.len() >= ITEMS_MAX {
            return Err(Flaw::new("", format!("too many fields; send at most {ITEMS_MAX}")));
        }
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = decode(halves.next().unwrap_or_default(), Plus::Space)?;
        let value = decode(halves.next().unwrap_or_default(), Plus::Space)
            .map_err(|error| Flaw::new(place(&segments(&name).unwrap_or_default()), error.message))?;
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// The meaning of `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// A space, as in forms and queries.
    Space,
    /// A plus sign, as in paths.
    Plus,
}

/// Resolves percent-escapes. Malformed escapes are errors.
pub fn decode(input: &[u8], plus: Plus) -> Result<String, Flaw> {
    let mut bytes = Vec::with_capacity(input.len());
    let mut rest = input;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, plus) {
            (b'%', _) => {
                let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(Flaw::new(
                        "",
                        "a % that is not followed by two hexadecimal digits; write a percent sign as %25",
                    ));
                };
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = &after[2..];
            }
            (b'+', Plus::Space) => bytes.push(b' '),
            (plain, Plus::Space | Plus::Plus) => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| Flaw::new("", "the decoded bytes are not UTF-8; encode the text as UTF-8 first"))
}

/// Splits `a[b][c]` into its three names.
fn segments(name: &str) -> Result<Vec<String>, Flaw> {
    let malformed =
        || Flaw::new("", format!("`{}` is not a field name; write it like metadata[order]", printable(name)));
    let (base, mut rest) = match name.find('[') {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    if base.is_empty() || base.contains(']') {
        return Err(malformed());
    }
    let mut path = vec![base.to_owned()];
    while !rest.is_empty() {
        let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((segment, after)) = inner else {
            return Err(malformed());
        };
        if segment.is_empty() || segment.contains('[') || path.len() >= DEPTH_MAX {
            return Err(malformed());
        }
        path.push(segment.to_owned());
        rest = after;
    }
    Ok(path)
}

/// The JSON pointer to a path of names.
fn place(path: &[String]) -> String {
    path.iter().fold(String::new(), |at, name| pointer::child(&at, name))
}

fn put(root: &mut BTreeMap<String, Node>, path: &[String], value: String) -> Result<(), Flaw> {
    let Some((last, parents)) = path.split_last() else {
        return Ok(());
    };
    let refuse = || {
        Flaw::new(
            place(path),
            "the field stands twice, or once as a text and once with brackets; send each name once",
        )
    };
    let mut branch = root;
    for name in parents {
        let node = branch.entry(name.clone()).or_insert_with(|| Node::Branch(BTreeMap::new()));
        match node {
            Node::Branch(inner) => branch = inner,
            Node::Leaf(_) => return Err(refuse()),
        }
    }
    if branch.contains_key(last) {
        return Err(refuse());
    }
    branch.insert(last.clone(), Node::Leaf(value));
    Ok(())
}

fn json(node: Node, shape: Shape, at: &str) -> Result<Json, Flaw> {
    Ok(match (node, shape) {
        (Node::Leaf(text), Shape::Number) => Decimal::parse(&text).map_or(Json::String(text), Json::Number),
        (Node::Leaf(text), Shape::Truth) => match text.as_str() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ => Json::String(text),
        },
        (Node::Leaf(text), Shape::Text | Shape::List(_) | Shape::Object(_)) => Json::String(text),
        (Node::Branch(members), Shape::List(layout)) => array(members, layout, at)?,
        (Node::Branch(members), Shape::Object(layout)) => object(members, at, |name| layout.shape(name))?,
        (Node::Branch(members), Shape::Text | Shape::Number | Shape::Truth) => {
            object(members, at, |_| Shape::Text)?
        }
    })
}

fn object(members: BTreeMap<String, Node>, at: &str, shape: impl Fn(&str) -> Shape) -> Result<Json, Flaw> {
    let mut object = Object::new();
    for (name, member) in members {
        let value = json(member, shape(&name), &pointer::child(at, &name))?;
        // Keys of a map are unique, so `insert` cannot refuse a member.
        let _ = object.insert(name, value);
    }
    Ok(Json::Object(object))
}

fn array(members: BTreeMap<String, Node>, layout: &Layout, at: &str) -> Result<Json, Flaw> {
    let mut elements: Vec<Option<Json>> = Vec::new();
    elements.resize_with(members.len(), || None);
    for (name, member) in members {
        let place = index(&name).and_then(|index| elements.get_mut(index));
        let Some(place) = place else {
            let message = "the numbers in brackets must count up from 0 without a gap, like [0], [1], [2]";
            return Err(Flaw::new(at, message));
        };
        let at = pointer::child(at, &name);
        *place = Some(match member {
            Node::Branch(members) => object(members, &at, |name| layout.shape(name))?,
            leaf @ Node::Leaf(_) => json(leaf, Shape::Text, &at)?,
        });
    }
    // All indexes are distinct and below the length, so they fill every place.
    Ok(Json::Array(elements.into_iter().flatten().collect()))
}

/// Parses an array index. Leading zeros are refused, so that each index has one spelling.
fn index(name: &str) -> Option<usize> {
    let plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    if plain { name.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ITEM: Layout =
        Layout { of: "an item", like: "{}", fields: &[("amount", Shape::Number), ("name", Shape::Text)] };
    const LAYOUT: Layout = Layout {
        of: "a test",
        like: "{}",
        fields: &[
            ("amount", Shape::Number),
            ("capture", Shape::Truth),
            ("metadata", Shape::Text),
            ("items", Shape::List(&ITEM)),
            ("item", Shape::Object(&ITEM)),
        ],
    };

    fn read(form: &[u8]) -> Result<Json, Flaw> {
        parse(form, &LAYOUT)
    }

    fn same(form: &str, json: &str) {
        assert_eq!(read(form.as_bytes()).unwrap(), Json::parse(json.as_bytes()).unwrap(), "{form}");
    }

    #[test]
    fn a_form_equals_the_json_of_the_same_meaning() {
        same("", "{}");
        same("amount=1250&capture=false", r#"{"capture":false,"amount":1250}"#);
        same("amount=1.25e3&capture=true", r#"{"capture":true,"amount":1250}"#);
        same("amount=&capture=no", r#"{"amount":"","capture":"no"}"#);
        same("a", r#"{"a":""}"#);
        same("d=a+b%20c%2B%C3%A9%26", r#"{"d":"a b c+é&"}"#);
        same(
            "metadata[a]=1&metadata%5Bb%5D=x&description=5",
            r#"{"metadata":{"a":"1","b":"x"},"description":"5"}"#,
        );
        same("&&a=1&", r#"{"a":"1"}"#);
        same(
            "items[1][amount]=2&items[0][amount]=1&items[0][name]=3&items[1][other]=4",
            r#"{"items":[{"amount":1,"name":"3"},{"amount":2,"other":"4"}]}"#,
        );
        same("item[amount]=2&item[name]=3&item[other]=4", r#"{"item":{"amount":2,"name":"3","other":"4"}}"#);
        same("item=5&item2[amount]=5", r#"{"item":"5","item2":{"amount":"5"}}"#);
        same("items=x&capture[a]=true", r#"{"items":"x","capture":{"a":"true"}}"#);
        same("items[0]=x", r#"{"items":["x"]}"#);
        let many: Vec<String> = (0..12).map(|n| format!("items[{n}][amount]={n}")).collect();
        let expected: Vec<String> = (0..12).map(|n| format!("{{\"amount\":{n}}}")).collect();
        same(&many.join("&"), &format!("{{\"items\":[{}]}}", expected.join(",")));
    }

    #[test]
    fn malformed_forms_are_refused() {
        for form in [
            "a=%",
            "a=%4",
            "a=%zz",
            "%=1",
            "a=%ff",
            "a=%c3",
            "=1",
            "[a]=1",
            "a]=1",
            "a[=1",
            "a[b=1",
            "a[]=1",
            "a[b]c=1",
            "a[b][c][d][e][f]=1",
            "items[1]=x",
            "items[0]=x&items[2]=y",
            "items[00]=x",
            "items[-1]=x",
            "items[+0]=x",
            "items[a]=x",
            "items[99999999999999999999]=x",
            "a=1&a=2",
            "m[a]=1&m[a]=2",
            "m=1&m[a]=2",
            "m[a]=2&m=1",
            "a[[b]]=1",
        ] {
            assert!(read(form.as_bytes()).is_err(), "{form}");
        }
        assert!(read(b"a=\xff").is_err());
        assert!(read("a&".repeat(ITEMS_MAX + 1).as_bytes()).is_err());
    }

    #[test]
    fn an_error_points_to_its_field() {
        assert_eq!(read(b"m[a/b]=1&m[a/b]=2").unwrap_err().pointer, "/m/a~1b");
        assert_eq!(read(b"amount=%zz").unwrap_err().pointer, "/amount");
        assert_eq!(read(b"items[0][amount]=%zz").unwrap_err().pointer, "/items/0/amount");
        assert_eq!(read(b"items[1][amount]=1").unwrap_err().pointer, "/items");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
