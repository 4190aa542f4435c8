//! `application/x-www-form-urlencoded` bodies, with Stripe's brackets: `metadata[order]=42`.
//!
//! Promises: the form and the JSON of one request become equal values, and so equal fingerprints: the route says
//! which fields are numbers and truth values. Decoding is strict: bad escapes, bytes that are not UTF-8, names
//! that stand twice and malformed brackets are errors, never guesses.

use crate::names::shown;
use crate::pointer;
use crate::problem::FieldError;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::json::{ITEMS_MAX, Json, Object};
use std::collections::BTreeMap;

/// How deep brackets may nest; no field needs more than two.
const DEPTH_MAX: usize = 4;

/// What the text of a field stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Itself.
    Text,
    /// A JSON number, where it is one.
    Number,
    /// `true` or `false`, where it is one of them.
    Truth,
}

enum Node {
    Leaf(String),
    Branch(BTreeMap<String, Node>),
}

/// Reads a form body; `shape` says what the field at a path stands for. A text that does not fit its shape stays
/// a text, so that the reader of the request can say what is wrong with it.
pub fn parse(input: &[u8], shape: fn(&[&str]) -> Shape) -> Result<Json, FieldError> {
    let mut root = BTreeMap::new();
    for (name, value) in pairs(input)? {
        let path = segments(&name)?;
        place(&mut root, &path, value)?;
    }
    Ok(json(Node::Branch(root), shape, &mut Vec::new()))
}

/// The decoded pairs of a form body or a query string, in order; names may repeat.
pub fn pairs(input: &[u8]) -> Result<Vec<(String, String)>, FieldError> {
    let mut pairs = Vec::new();
    for pair in input.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        if pairs.len() >= ITEMS_MAX {
            return Err(FieldError::new("", format!("too many fields; send at most {ITEMS_MAX}")));
        }
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = decode(halves.next().unwrap_or_default(), Plus::Space)?;
        let value = decode(halves.next().unwrap_or_default(), Plus::Space)
            .map_err(|error| FieldError::new(pointer::child("", &name), error.message))?;
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// What a `+` stands for: a space in forms and queries, itself in paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// A space.
    Space,
    /// Itself.
    Plus,
}

/// Resolves percent-escapes, strictly.
pub fn decode(input: &[u8], plus: Plus) -> Result<String, FieldError> {
    let mut bytes = Vec::with_capacity(input.len());
    let mut rest = input;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, plus) {
            (b'%', _) => {
                let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(FieldError::new(
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
        .map_err(|_| FieldError::new("", "the decoded bytes are not UTF-8; encode the text as UTF-8 first"))
}

/// `a[b][c]` as its three names.
fn segments(name: &str) -> Result<Vec<String>, FieldError> {
    let malformed = || {
        FieldError::new("", format!("`{}` is not a field name; write it like metadata[order]", shown(name)))
    };
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

fn place(root: &mut BTreeMap<String, Node>, path: &[String], value: String) -> Result<(), FieldError> {
    let Some((last, parents)) = path.split_last() else {
        return Ok(());
    };
    let refuse = || {
        let at = path.iter().fold(String::new(), |at, name| pointer::child(&at, name));
        FieldError::new(
            at,
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

fn json(node: Node, shape: fn(&[&str]) -> Shape, path: &mut Vec<String>) -> Json {
    match node {
        Node::Leaf(text) => {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match shape(&names) {
                Shape::Text => Json::String(text),
                Shape::Number => Decimal::parse(&text).map_or(Json::String(text), Json::Number),
                Shape::Truth => match text.as_str() {
                    "true" => Json::Bool(true),
                    "false" => Json::Bool(false),
                    _ => Json::String(text),
                },
            }
        }
        Node::Branch(members) => {
            let mut object = Object::new();
            for (name, member) in members {
                path.push(name.clone());
                let value = json(member, shape, path);
                path.pop();
                // A map has no name twice.
                let _ = object.insert(name, value);
            }
            Json::Object(object)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(path: &[&str]) -> Shape {
        match path {
            ["amount"] => Shape::Number,
            ["capture"] => Shape::Truth,
            _ => Shape::Text,
        }
    }

    fn same(form: &str, json: &str) {
        assert_eq!(parse(form.as_bytes(), shape).unwrap(), Json::parse(json.as_bytes()).unwrap(), "{form}");
    }

    #[test]
    fn a_form_is_the_json_it_means() {
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
    }

    #[test]
    fn what_is_not_a_form() {
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
            "a[b][c][d][e]=1",
            "a=1&a=2",
            "m[a]=1&m[a]=2",
            "m=1&m[a]=2",
            "m[a]=2&m=1",
            "a[[b]]=1",
        ] {
            assert!(parse(form.as_bytes(), shape).is_err(), "{form}");
        }
        assert!(parse(b"a=\xff", shape).is_err());
        assert!(parse("a&".repeat(ITEMS_MAX + 1).as_bytes(), shape).is_err());
    }

    #[test]
    fn an_error_points_to_its_field() {
        assert_eq!(parse(b"m[a/b]=1&m[a/b]=2", shape).unwrap_err().pointer, "/m/a~1b");
        assert_eq!(parse(b"amount=%zz", shape).unwrap_err().pointer, "/amount");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, shape);
        }
    }
}
