//! Form bodies with the same damage: duplicate names, bad escapes, malformed brackets, texts that
//! fields refuse.

use crate::bad::{BadRequest, Expected};
use crate::bodies::Target;
use crate::fields;
use crate::table::Kind;
use crate::world::World;
use serde_json::Value;

/// Deepest nesting of brackets that the server reads.
const DEPTH_MAX: usize = 5;

/// The form equivalent to a JSON body: names, values and pointers.
pub(crate) fn pairs(value: &Value) -> Vec<(String, String, String)> {
    let mut pairs = Vec::new();
    flatten(value, String::new(), String::new(), &mut pairs);
    pairs
}

fn flatten(value: &Value, name: String, place: String, pairs: &mut Vec<(String, String, String)>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}[{key}]") };
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                flatten(member, inner(key), format!("{place}/{key}"), pairs);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                let key = index.to_string();
                flatten(element, inner(&key), format!("{place}/{key}"), pairs);
            }
        }
        Value::String(text) => pairs.push((name, text.clone(), place)),
        Value::Null | Value::Bool(_) | Value::Number(_) => pairs.push((name, value.to_string(), place)),
    }
}

/// Pairs as a body, with every byte escaped that is not plain.
pub(crate) fn encoded<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let all: Vec<String> =
        pairs.into_iter().map(|(name, text)| format!("{}={}", escaped(name), escaped(text))).collect();
    all.join("&")
}

pub(crate) fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

impl Target<'_> {
    fn form(&self, what: &str, group: &str, body: impl Into<Vec<u8>>, expected: Expected) -> BadRequest {
        let rule = format!("POST {} as a form: {what}", self.write.path);
        BadRequest::new(rule, self.request().form(&self.key(group), body), expected)
    }

    /// The good form as pairs.
    fn good_pairs(&self) -> Vec<(String, String, String)> {
        pairs(&self.good)
    }

    /// The good form without the pairs at or below a place.
    fn form_without(&self, place: &str) -> Vec<(String, String)> {
        let below = format!("{place}/");
        let kept = self.good_pairs().into_iter().filter(|(_, _, at)| at != place && !at.starts_with(&below));
        kept.map(|(name, text, _)| (name, text)).collect()
    }
}

fn written(pairs: &[(String, String)]) -> String {
    encoded(pairs.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// The form name of a pointer such as `/a/0/b`.
fn name_of(place: &str) -> String {
    let mut parts = place.split('/').skip(1);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| format!("{name}[{part}]"))
}

pub(crate) fn make(world: &World, bad: &mut Vec<BadRequest>) {
    for target in Target::all(world) {
        for hole in target.holes() {
            let (name, group) = (name_of(&hole.place), hole.field.name);
            let here = || Expected::invalid(&[&hole.place]);
            for text in fields::form_texts(&hole.field, world) {
                let mut pairs = target.form_without(&hole.place);
                pairs.push((name.clone(), text.clone()));
                let shown: String = text.chars().take(40).collect();
                bad.push(target.form(&format!("{name} is {shown:?}"), group, written(&pairs), here()));
            }
            let mut rest = written(&target.form_without(&hole.place));
            if !rest.is_empty() {
                rest.push('&');
            }
            // A decoding error names the field itself, however deep it is nested.
            for damage in ["%", "%4", "%zz", "%ff", "%c3", "%c0%af", "%ed%a0%80", "1%"] {
                bad.push(target.form(
                    &format!("{name} is {damage}"),
                    group,
                    format!("{rest}{name}={damage}"),
                    here(),
                ));
            }
            bad.push(target.form(
                "bytes that are not UTF-8",
                group,
                [rest.as_bytes(), name.as_bytes(), b"=\xff"].concat(),
                here(),
            ));
            twice(&target, &hole.place, &hole.field.kind, &rest, bad);
        }
        shapes(&target, bad);
    }
}

/// A field given twice, also in two styles.
fn twice(target: &Target<'_>, place: &str, kind: &Kind, rest: &str, bad: &mut Vec<BadRequest>) {
    let name = name_of(place);
    let group = name.split('[').next().unwrap();
    let here = || Expected::invalid(&[place]);
    // Brackets deeper than any field are not a name.
    let depth = place.matches('/').count();
    let fits = |more: usize, expected: Expected| {
        if depth + more > DEPTH_MAX { Expected::invalid(&[""]) } else { expected }
    };
    let member = |member: &str| fits(1, Expected::invalid(&[&format!("{place}/{member}")]));
    let mut push = |body: String, expected| {
        bad.push(target.form(&body.clone(), group, format!("{rest}{body}"), expected));
    };
    push(format!("{name}=1&{name}=1"), here());
    push(format!("{name}&{name}"), here());
    push(format!("{name}[a]=1&{name}=1"), fits(1, here()));
    push(format!("{name}=1&{name}[a]=1"), member("a"));
    push(format!("{name}[a]=1&{name}[a]=1"), member("a"));
    push(format!("{name}[a]=1&{name}%5Ba%5D=1"), member("a"));
    match kind {
        // A map of texts accepts brackets; a list needs numbers.
        Kind::Metadata => push(format!("{name}[a][b]=1"), member("a")),
        Kind::List(..) => {
            for numbers in [
                &["1"][..],
                &["0", "2"],
                &["00"],
                &["-1"],
                &["+0"],
                &["a"],
                &["0", "a"],
                &["99999999999999999999"],
                &["0.0"],
            ] {
                let pairs: Vec<String> =
                    numbers.iter().map(|number| format!("{name}[{number}][x]=1")).collect();
                push(pairs.join("&").replace('+', "%2B"), here());
            }
        }
        _ => push(format!("{name}[a]=1"), fits(1, here())),
    }
}

/// Malformed forms and unknown field names.
fn shapes(target: &Target<'_>, bad: &mut Vec<BadRequest>) {
    let good = encoded(target.good_pairs().iter().map(|(name, text, _)| (name.as_str(), text.as_str())));
    let rest = if good.is_empty() { String::new() } else { format!("{good}&") };
    let top = || Expected::invalid(&[""]);
    let group = "form";
    for damage in [
        "%",
        "%zz=1",
        "%ff=1",
        "%c0%80=1",
        "=",
        "=1",
        "[]=1",
        "[a]=1",
        "a[=1",
        "a]=1",
        "a[b=1",
        "a[]=1",
        "a[b]c=1",
        "a[[b]]=1",
        "a[b]]=1",
        "a[b][=1",
        "a[b][]=1",
        "a[b][c][d][e][f]=1",
        "]=1",
        "a%5B=1",
        "%5Ba%5D=1",
        "[[[[[[=1",
    ] {
        bad.push(target.form(damage, group, format!("{rest}{damage}"), top()));
        bad.push(target.form(
            damage,
            group,
            if rest.is_empty() { damage.to_owned() } else { format!("{damage}&{good}") },
            top(),
        ));
    }
    bad.push(target.form("deep brackets", group, format!("{rest}a{}=1", "[b]".repeat(10_000)), top()));
    bad.push(target.form("bytes that are no name", group, [rest.as_bytes(), b"\xff\xfe=1"].concat(), top()));
    for (damage, place) in [
        ("unknown=1", "/unknown"),
        ("unknown", "/unknown"),
        ("Amount=1", "/Amount"),
        ("a%2Fb=1", "/a~1b"),
        ("a%00=1", "/a\u{0}"),
        ("+=1", "/ "),
        ("a;b=1", "/a;b"),
        ("a[b]=1", "/a"),
        ("a[b][c]=1", "/a"),
        ("a[b][c][d][e]=1", "/a"),
        ("{}=1", "/{}"),
        ("\"a\"=1", "/\"a\""),
        ("%C3%A9=1", "/é"),
        ("a[0]=1&a[1]=1", "/a"),
    ] {
        bad.push(target.form(damage, group, format!("{rest}{damage}"), Expected::invalid(&[place])));
    }
    let many = (0..100_001).map(|number| format!("f{number}=")).collect::<Vec<_>>().join("&");
    bad.push(target.form("too many fields", group, many, top()));
    if !target.write.may_be_empty {
        let missing: Vec<String> = target
            .write
            .fields
            .iter()
            .filter(|field| field.presence == crate::table::Presence::Required)
            .map(|field| format!("/{}", field.name))
            .collect();
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        for nothing in ["", "&", "&&&"] {
            bad.push(target.form("nothing", group, nothing, Expected::invalid(&missing)));
        }
    }
}
