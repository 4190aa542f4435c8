//! Damage to one field: values that no field of its kind accepts, in JSON and in forms.

use crate::table::{Field, Kind, Object, Presence};
use crate::world::World;

/// The place that the answer must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedPlace {
    Field,
    /// The enclosing object, because the value ended before the damage.
    Around,
    /// Pointers below the field.
    Below(Vec<String>),
}

/// A bad value, and the place that the answer must name.
pub(crate) type Damage = (String, NamedPlace);

/// Deepest nesting that the server reads.
const DEPTH_MAX: usize = 64;

fn all<'a>(values: impl IntoIterator<Item = &'a str>, named: &NamedPlace) -> Vec<Damage> {
    values.into_iter().map(|value| (value.to_owned(), named.clone())).collect()
}

/// Texts as JSON strings.
fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Damage> {
    texts.into_iter().map(|text| (serde_json::to_string(text).unwrap(), NamedPlace::Field)).collect()
}

/// Text that is not a JSON value, for any kind of field.
pub(crate) fn no_value() -> Vec<Damage> {
    let mut damage = all(
        [
            "",
            "+1",
            "-",
            "--1",
            "01",
            "-01",
            "00",
            ".5",
            "1.",
            "1.e1",
            "1e",
            "1e+",
            "NaN",
            "-NaN",
            "Infinity",
            "-Infinity",
            "nul",
            "tru",
            "fals",
            "True",
            "None",
            "undefined",
            "'a'",
            "`a`",
            "\\u0031",
            "//c\n1",
            "/*c*/1",
            "#",
            "?",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\ud800x\"",
            "\"\\udc00\"",
            "\"\\udc00\\ud800\"",
            "\"\\ud800\\ud800\"",
            "\"a\nb\"",
            "\"a\tb\"",
            "\"a\u{0}b\"",
            "\"\u{1f}\"",
            "\"\\",
            "\u{feff}1",
            "\u{a0}1",
        ],
        &NamedPlace::Field,
    );
    damage.extend(all(
        [
            "0x10",
            "0b1",
            "1_000",
            "1 2",
            "1f",
            "1n",
            "1;",
            "truefalse",
            "nullx",
            "\"a\"\"b\"",
            "\"a\" \"b\"",
            "1]",
            "{}]",
            "\"a\":1",
        ],
        &NamedPlace::Around,
    ));
    damage
}

/// Values nested too deeply, inside `above` arrays and objects.
pub(crate) fn too_deep(above: usize) -> Vec<Damage> {
    let room = DEPTH_MAX - above;
    let below = |name: &str| NamedPlace::Below(vec![format!("/{name}").repeat(room)]);
    vec![
        ("[".repeat(room + 1), below("0")),
        (format!("{}1{}", "[".repeat(room + 1), "]".repeat(room + 1)), below("0")),
        ("[".repeat(5_000), below("0")),
        ("{\"k\":".repeat(room + 1), below("k")),
        ("{\"k\":".repeat(2_000), below("k")),
    ]
}

const NO_NUMBERS: [&str; 9] = ["\"1\"", "\"\"", "\"abc\"", "\"NaN\"", "true", "false", "[]", "[1]", "{}"];
const NO_TEXTS: [&str; 10] = ["0", "1", "-1", "1.5", "1e400", "true", "false", "[]", "[\"a\"]", "{}"];
const FRACTIONS: [&str; 6] = ["0.1", "1.5", "-1.5", "1e-7", "12.345678901234567890123", "1e-400"];
const BEYOND: [&str; 7] = [
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1e19",
    "1e400",
    "-1e400",
    "99999999999999999999999999999999999999999999999999999999999999",
];

fn amounts() -> Vec<&'static str> {
    let outside = [
        "0",
        "-0",
        "0.0",
        "0e5",
        "-1",
        "-1250",
        "1000000000000000",
        "1e15",
        "9223372036854775807",
        "-9223372036854775808",
    ];
    outside.into_iter().chain(FRACTIONS).chain(BEYOND).collect()
}

fn wholes(least: i64, most: i64) -> Vec<String> {
    let mut values: Vec<String> =
        [least - 1, most + 1, -1_000, 1_000_000, i64::MAX, i64::MIN].iter().map(i64::to_string).collect();
    values.extend(FRACTIONS.into_iter().chain(BEYOND).map(str::to_owned));
    values
}

/// Texts that are not account names.
const NO_NAMES: [&str; 20] = [
    "",
    " ",
    "a b",
    " a",
    "a ",
    "é",
    "_a",
    "-a",
    ".a",
    ":a",
    "/a",
    "a?b",
    "a#b",
    "a%20b",
    "a\u{0}",
    "a\n",
    "\u{202e}a",
    "a,b",
    "*",
    "'; --",
];

fn no_names() -> Vec<String> {
    let mut names: Vec<String> = NO_NAMES.iter().map(|name| (*name).to_owned()).collect();
    names.push("x".repeat(65));
    names
}

/// Bad account names, and well-formed names that the tenant has no account for.
fn no_accounts(world: &World) -> Vec<String> {
    let mut names = no_names();
    names.extend(["nobody", "A", "chart:nothing", "ac_", "null"].map(str::to_owned));
    names.extend(world.not_accounts());
    names
}

/// Bad account codes.
fn no_codes(world: &World) -> Vec<String> {
    let mut names = no_names();
    names.push("chart:nothing".to_owned());
    // Texts in the form of an id are refused alike, so that the answer does not tell which ids
    // exist.
    let form = |name: &String| name.starts_with("ac_") && name.len() == 29;
    names.extend(world.not_accounts().into_iter().filter(form));
    names
}

fn no_currencies() -> [&'static str; 14] {
    [
        "",
        " ",
        "US",
        "USDD",
        "ZZZ",
        "U D",
        "U$D",
        "ÜSD",
        "US\u{0}",
        " USD",
        "USD ",
        "840",
        "us\u{d}",
        "\u{202e}usd",
    ]
}

const NO_ASSETS: [&str; 13] = [
    "",
    " ",
    "1A",
    "_A",
    "A-B",
    "A.B",
    "A B",
    "A23456789012345 7",
    " USD",
    "USD ",
    "É",
    "A\u{0}",
    "A2345678901234567",
];
const NO_TIMES: [&str; 16] = [
    "",
    "now",
    "2999",
    "2999-01-31",
    "2999-01-31T12:00",
    "2999-01-31T12:00:00",
    "2999-13-01T00:00:00Z",
    "2999-02-30T00:00:00Z",
    "2999-01-31T24:00:01Z",
    "2999-01-31T12:60:00Z",
    "2999-01-31T12:00:61Z",
    "2999-01-31T12:00:00+25:00",
    "32506372800",
    "2999-01-31T12:00:00Z ",
    "-2999-01-31T12:00:00Z",
    "２999-01-31T12:00:00Z",
];
const NO_TOKENS: [&str; 11] = [
    "",
    " ",
    "pm card",
    "pm_é",
    "pm\u{0}",
    "pm\u{7f}",
    "pm\tx",
    "4242424242424242",
    "5555-5555-5555-4444",
    "4242 4242 4242 4242",
    "378282246310005",
];
const NO_WORDS: [&str; 9] = ["", " ", "Debit", "DEBIT", "debits", " debit", "debit ", "null", "\u{0}"];
const NO_RATES: [&str; 13] =
    ["", " ", "abc", "1/2", "1,5", "NaN", "Infinity", "0x1", " 1", "1 ", "+1", "1.", "--1"];
const RATES_BEYOND: [&str; 8] =
    ["0", "-0", "-1", "1e19", "1e-19", "1e400", "0.00", "1234567890123456789.123456789"];

/// JSON values that a field refuses, syntax errors aside.
pub(crate) fn values(field: &Field, world: &World) -> Vec<Damage> {
    let one = |values: Vec<&str>| all(values, &NamedPlace::Field);
    let mut damage = match field.kind {
        Kind::Amount => one(amounts().into_iter().chain(NO_NUMBERS).collect()),
        Kind::Whole(least, most) => {
            let mut damage = all(wholes(least, most).iter().map(String::as_str), &NamedPlace::Field);
            damage.extend(one(NO_NUMBERS.to_vec()));
            damage
        }
        Kind::Bound => one(FRACTIONS.into_iter().chain(BEYOND).chain(NO_NUMBERS).collect()),
        Kind::Truth => one(vec![
            "0",
            "1",
            "\"true\"",
            "\"false\"",
            "\"yes\"",
            "\"\"",
            "[]",
            "{}",
            "[true]",
            "-0",
            "1.0",
            "\"on\"",
        ]),
        Kind::Rate => {
            let mut damage = one(vec!["true", "[]", "{}", "[1]"]);
            damage.extend(all(RATES_BEYOND, &NamedPlace::Field));
            damage.extend(quoted(RATES_BEYOND.into_iter().chain(NO_RATES)));
            damage
        }
        Kind::Metadata => metadata(),
        Kind::List(least, most, fields) => list(least, most, fields),
        Kind::Text(most) => {
            let (long, wide) = ("x".repeat(most + 1), "é".repeat(most / 2 + 1));
            let mut damage =
                quoted([long.as_str(), &wide, "a\u{0}", "\u{1b}[31m", "\u{7f}", "\u{85}", "a\rb", "\u{9b}"]);
            damage.extend(one(NO_TEXTS.to_vec()));
            damage
        }
        Kind::Currency
        | Kind::Asset
        | Kind::Account
        | Kind::Name
        | Kind::Id(_)
        | Kind::Token
        | Kind::Code
        | Kind::Word
        | Kind::Time => {
            let mut damage = quoted(texts(field, world).iter().map(String::as_str));
            damage.extend(one(NO_TEXTS.to_vec()));
            damage
        }
    };
    if matches!(field.presence, Presence::Required | Presence::Needed) {
        damage.push(("null".to_owned(), NamedPlace::Field));
    }
    damage
}

/// Texts that a field refuses, in JSON strings and in forms; empty for kinds other than text.
fn texts(field: &Field, world: &World) -> Vec<String> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    match field.kind {
        Kind::Currency => owned(&no_currencies()),
        Kind::Asset => owned(&NO_ASSETS),
        Kind::Account => no_accounts(world),
        // A well-formed charge id of another tenant is answered with 404; `tenants.rs` tests that.
        Kind::Id(Object::Charge) => {
            let ids = world.not_ids(Object::Charge);
            ids.into_iter().filter(|id| !id.starts_with("ch_")).collect()
        }
        Kind::Id(object) => world.not_ids(object),
        Kind::Token => {
            let mut tokens = owned(&NO_TOKENS);
            tokens.push("p".repeat(256));
            tokens
        }
        Kind::Code => no_codes(world),
        Kind::Name => no_names(),
        Kind::Word => owned(&NO_WORDS),
        Kind::Time => owned(&NO_TIMES),
        Kind::Amount
        | Kind::Whole(..)
        | Kind::Bound
        | Kind::Text(_)
        | Kind::Truth
        | Kind::Rate
        | Kind::Metadata
        | Kind::List(..) => Vec::new(),
    }
}

/// Texts that a field refuses in a form.
pub(crate) fn form_texts(field: &Field, world: &World) -> Vec<String> {
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let no_numbers = [
        "", " ", "abc", "+1", " 1", "1 ", "0x1", "NaN", "Infinity", "1,000", "1_000", "1.", ".5", "--1",
        "true", "01", "{}", "[]", "\u{661}",
    ];
    match field.kind {
        Kind::Amount => owned(amounts().into_iter().chain(no_numbers).collect()),
        Kind::Whole(least, most) => {
            let mut texts = wholes(least, most);
            texts.extend(owned(no_numbers.to_vec()));
            texts
        }
        Kind::Bound => owned(FRACTIONS.into_iter().chain(BEYOND).chain(no_numbers).collect()),
        Kind::Truth => owned(vec![
            "",
            " ",
            "0",
            "1",
            "yes",
            "no",
            "on",
            "True",
            "TRUE",
            " true",
            "true ",
            "null",
            "truefalse",
        ]),
        Kind::Rate => owned(RATES_BEYOND.into_iter().chain(NO_RATES).collect()),
        Kind::Metadata | Kind::List(..) => owned(vec!["", "x", "{}", "[]", "{\"a\":\"b\"}", "null"]),
        Kind::Text(most) => {
            vec!["x".repeat(most + 1), "é".repeat(most / 2 + 1), "a\u{0}".to_owned(), "\u{1b}".to_owned()]
        }
        Kind::Currency
        | Kind::Asset
        | Kind::Account
        | Kind::Name
        | Kind::Id(_)
        | Kind::Token
        | Kind::Code
        | Kind::Word
        | Kind::Time => texts(field, world),
    }
}

fn metadata() -> Vec<Damage> {
    let below = |name: &str| NamedPlace::Below(vec![format!("/{name}")]);
    let mut damage =
        all(["0", "1", "true", "\"\"", "\"a\"", "[]", "[{}]", "[[\"a\",\"b\"]]"], &NamedPlace::Field);
    for value in [
        "1",
        "0",
        "1.5",
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "[\"b\"]",
        "{\"b\":\"c\"}",
        "\"\\u0000\"",
        "\"\\u001b\"",
        "\"\\u007f\"",
    ] {
        damage.push((format!("{{\"a\":{value}}}"), below("a")));
        damage.push((format!("{{\"fine\":\"fine\",\"a~/b\":{value}}}"), below("a~0~1b")));
    }
    damage.push((format!("{{\"a\":\"{}\"}}", "x".repeat(501)), below("a")));
    damage.push((format!("{{\"a\":\"{}\"}}", "é".repeat(251)), below("a")));
    damage.push((format!("{{\"{}\":\"b\"}}", "x".repeat(41)), below(&"x".repeat(41))));
    for name in ["", "a[b]", "[", "]", "a]"] {
        damage.push((format!("{{\"{name}\":\"b\"}}"), below(name)));
    }
    damage.push(("{\"a\\u0000\":\"b\"}".to_owned(), below("a\u{0}")));
    damage.push((r#"{"a":"1","a":"1"}"#.to_owned(), below("a")));
    damage.push((r#"{"a":"1","\u0061":"2"}"#.to_owned(), below("a")));
    let pairs = |count: usize| (0..count).map(|n| format!("\"n{n}\":\"v\"")).collect::<Vec<_>>().join(",");
    for count in [51, 100, 1_000] {
        damage.push((format!("{{{}}}", pairs(count)), NamedPlace::Field));
    }
    damage.push((format!("{{{}}}", pairs(1_001)), NamedPlace::Field));
    damage
}

fn list(least: usize, most: usize, fields: &[Field]) -> Vec<Damage> {
    let below = |places: Vec<String>| NamedPlace::Below(places);
    let mut damage = all(["0", "1", "true", "\"\"", "\"a\"", "{}", "{\"0\":{}}", "[]"], &NamedPlace::Field);
    let many = vec!["{}"; most + 1].join(",");
    damage.push((format!("[{many}]"), NamedPlace::Field));
    let must: Vec<&str> = fields
        .iter()
        .filter(|field| matches!(field.presence, Presence::Required | Presence::Needed))
        .map(|field| field.name)
        .collect();
    for value in ["null", "1", "true", "\"a\"", "[]", "[[]]"] {
        let places = (0..least).map(|index| format!("/{index}")).collect();
        damage.push((format!("[{}]", vec![value; least].join(",")), below(places)));
    }
    let empty =
        (0..least).flat_map(|index| must.iter().map(move |name| format!("/{index}/{name}"))).collect();
    damage.push((format!("[{}]", vec!["{}"; least].join(",")), below(empty)));
    damage
}
