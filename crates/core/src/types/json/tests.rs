use super::*;

mod properties;

fn read(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn text(value: &str) -> Json {
    Json::String(value.to_owned())
}

fn object(members: impl IntoIterator<Item = (String, Json)>) -> Json {
    let mut object = Object::new();
    for (key, value) in members {
        object.insert(key, value).unwrap();
    }
    Json::Object(object)
}

fn bytes(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    canonical(value, &mut out);
    out
}

#[track_caller]
fn check_canonical(input: &str, expected: &str) {
    assert_eq!(String::from_utf8(bytes(&read(input))).unwrap(), expected);
}

#[track_caller]
fn check_refused(input: impl AsRef<[u8]>, offset: usize, pointer: &str, says: &str) {
    let error = Json::parse(input.as_ref()).expect_err("refused");
    assert_eq!((error.offset, error.pointer.as_str()), (offset, pointer), "{error}");
    assert!(error.message.contains(says), "{error}");
}

#[test]
fn values_are_read() {
    assert_eq!(read(" \t\r\nnull\n"), Json::Null);
    assert_eq!(read("true"), Json::Bool(true));
    assert_eq!(read("false"), Json::Bool(false));
    assert_eq!(read("-12.50"), Json::Number(Decimal::parse("-12.5").unwrap()));
    assert_eq!(read("[ ]"), Json::Array(vec![]));
    assert_eq!(read("{ }"), object([]));
    assert_eq!(read("[1 , [ ] ,\"a\"]"), Json::Array(vec![read("1"), read("[]"), text("a")]));
    let value = read(r#"{"b": {"x": [null]}, "a": 1}"#);
    let Json::Object(value) = value else { panic!("an object") };
    assert_eq!(value.get("b"), Some(&read(r#"{"x":[null]}"#)));
    assert_eq!(value.get("c"), None);
    assert_eq!(value.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn escapes_are_resolved() {
    assert_eq!(read(r#""\"\\\/\b\f\n\r\t\u0000\u00E9\u20ac""#), text("\"\\/\u{8}\u{c}\n\r\t\0é€"));
    assert_eq!(read(r#""a\ud83d\uDE00z""#), text("a😀z"));
    assert_eq!(read(r#""\ud800\udc00\udbff\udfff""#), text("\u{10000}\u{10ffff}"));
    assert_eq!(read("\"é€😀\u{7f}\u{feff}\""), text("é€😀\u{7f}\u{feff}"));
}

#[test]
fn text_outside_the_grammar_is_refused() {
    check_refused("", 0, "", "the body ended");
    check_refused("  ", 2, "", "expected a value");
    check_refused("\u{feff}{}", 0, "", "byte order mark");
    check_refused("{} x", 3, "", "exactly one JSON value");
    check_refused("null,", 4, "", "exactly one JSON value");
    check_refused("1\0", 1, "", "exactly one JSON value");
    check_refused("\u{a0}1", 0, "", "0xc2");
    check_refused("[1,]", 3, "/1", "expected a value but found ']'");
    check_refused("[1 2]", 3, "", "a comma or ']'");
    check_refused("[1}", 2, "", "a comma or ']'");
    check_refused("[", 1, "/0", "the body ended");
    check_refused("[,1]", 1, "/0", "expected a value");
    check_refused(r#"{"a":1,}"#, 7, "", "a member name");
    check_refused("{a:1}", 1, "", "a member name");
    check_refused("{'a':1}", 1, "", "a member name");
    check_refused(r#"{"a" 1}"#, 5, "/a", "a colon");
    check_refused(r#"{"a":}"#, 5, "/a", "expected a value but found '}'");
    check_refused(r#"{"a":1]"#, 6, "", "a comma or '}'");
    check_refused(r#"{"a":1"#, 6, "", "the body ended");
    check_refused("[1, // one\n2]", 4, "/1", "expected a value");
    for word in ["NaN", "Infinity", "True", "undefined", "+1", ".5", "'a'"] {
        check_refused(format!("[{word}]"), 1, "/0", "expected a value");
    }
    check_refused("nul", 0, "", "did you mean null");
    check_refused("[-Infinity]", 2, "/0", "expected a digit");
    check_refused("[01]", 1, "/0", "no zero before");
    check_refused(r#"{"amount":1.}"#, 12, "/amount", "a digit after the point");
}

#[test]
fn broken_strings_are_refused() {
    check_refused(r#""abc"#, 4, "", "the body ended inside a string");
    check_refused(r#"["\"#, 2, "/0", "unknown escape");
    check_refused(r#""\x41""#, 1, "", "unknown escape");
    check_refused("\"a\nb\"", 2, "", "write it as \\u000a");
    check_refused("\"\0\"", 1, "", "write it as \\u0000");
    check_refused(r#""\u12""#, 1, "", "four hexadecimal digits");
    check_refused(r#""\u+123""#, 1, "", "four hexadecimal digits");
    check_refused(r#""\ud800\u12""#, 1, "", "four hexadecimal digits");
    for half in
        [r"\ud800", r"\udbffx", r"\udc00", r"\ud800\n", r"\ud800\ud800", r"\udc00\ud800", r"\ud800\u0041"]
    {
        check_refused(format!(r#"{{"k":"{half}"}}"#), 6, "/k", "surrogate");
    }
    for (broken, at) in [
        (&b"\"a\xff\""[..], 2),       // never a UTF-8 byte
        (b"\"\xc0\xaf\"", 1),         // overlong '/'
        (b"\"\xe0\x80\xaf\"", 1),     // overlong '/'
        (b"\"\xed\xa0\x80\"", 1),     // a surrogate
        (b"\"\xf4\x90\x80\x80\"", 1), // above U+10FFFF
        (b"\"ab\xe2\x82\"", 3),       // cut short by the quote
        (b"\"ab\xe2\x82", 3),         // cut short by the end
        (b"\"\x80\"", 1),             // a continuation alone
    ] {
        check_refused(broken, at, "", "UTF-8");
    }
    check_refused(b"{\"a\xff\":1}", 3, "", "UTF-8");
}

#[test]
fn duplicate_keys_are_found_after_unescaping() {
    check_refused(r#"{"a":1,"a":1}"#, 7, "/a", "twice");
    check_refused(r#"{"a/b~":1,"\u0061\/b~":2}"#, 10, "/a~1b~0", "twice");
    check_refused(r#"[0,{"x":{"":1,"":2}}]"#, 14, "/1/x/", "twice");
    // Composed and decomposed characters give two keys: Unicode is not normalized.
    assert_eq!(bytes(&read(r#"{"e\u0301":1,"\u00e9":2}"#)), "{\"e\u{301}\":1,\"é\":2}".as_bytes());
    for twice in ["key-0", "key-7", "key-99"] {
        let members = (0..100).map(|index| format!(r#""key-{index}":0,"#)).collect::<Vec<_>>().concat();
        let body = format!(r#"{{{members}"{twice}":1}}"#);
        check_refused(&body, members.len() + 1, &format!("/{twice}"), "twice");
    }
}

#[test]
fn a_pointer_of_the_greatest_length_is_complete() {
    let longest = "k".repeat(POINTER_BYTES_MAX - 1);
    let error = Json::parse(format!(r#"{{"{longest}":!}}"#).as_bytes()).expect_err("refused");
    assert_eq!(error.pointer, format!("/{longest}"));
    let longer = Json::parse(format!(r#"{{"{longest}k":!}}"#).as_bytes()).expect_err("refused");
    assert_eq!(longer.pointer, "");
}

#[test]
fn errors_point_to_the_value() {
    check_refused(r#"{"a":[0,{"b/c~d":[[],x]}]}"#, 21, "/a/1/b~1c~0d/1", "expected a value");
    check_refused(r#"{"a":{"b":1},"c":?}"#, 17, "/c", "found '?'");
    check_refused("[[1],[2}]", 7, "/1", "a comma or ']'");
    let long = "k".repeat(POINTER_BYTES_MAX);
    check_refused(format!(r#"{{"a":{{"{long}":{{"b":x}}}}}}"#), long.len() + 14, "/a", "expected a value");
    let error = Json::parse(b"[1").unwrap_err();
    assert_eq!(error.to_string(), format!("byte 2, at \"\": {}", error.message));
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Json::parse(nested(DEPTH_MAX).as_bytes()).is_ok());
    let pointer = "/0".repeat(DEPTH_MAX);
    check_refused(nested(DEPTH_MAX + 1), DEPTH_MAX, &pointer, "64 levels");
    check_refused(nested(100_000), DEPTH_MAX, &pointer, "64 levels");
    check_refused("[".repeat(1 << 20), DEPTH_MAX, &pointer, "64 levels");
    check_refused(r#"{"":"#.repeat(100_000), DEPTH_MAX * 4, &"/".repeat(DEPTH_MAX), "64 levels");
    check_refused(r#"[{"a":"#.repeat(100_000), DEPTH_MAX * 3, &"/0/a".repeat(DEPTH_MAX / 2), "64 levels");
}

#[test]
fn items_are_bounded_in_total() {
    let elements = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    assert!(Json::parse(elements(ITEMS_MAX).as_bytes()).is_ok());
    check_refused(elements(ITEMS_MAX + 1), 2 * ITEMS_MAX + 1, "", "100000");
    // The total counts two members and their elements.
    let two = |each: usize| format!(r#"{{"a":{0},"b":{0}}}"#, elements(each));
    assert!(Json::parse(two(ITEMS_MAX / 2 - 1).as_bytes()).is_ok());
    assert!(Json::parse(two(ITEMS_MAX / 2).as_bytes()).is_err());
}

#[test]
fn members_are_bounded_in_each_object() {
    let members = |count: usize| {
        let members: Vec<String> = (0..count).map(|index| format!(r#""{index:04}":1"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(Json::parse(members(MEMBERS_MAX).as_bytes()).is_ok());
    check_refused(members(MEMBERS_MAX + 1), 9 * MEMBERS_MAX + 1, "", "1000 in one object");
}

#[test]
fn large_objects_find_every_key() {
    let keys = || (0..MEMBERS_MAX).rev().map(|index| format!("{index:05}"));
    let body = format!(
        "{{{}}}",
        keys()
            .map(|key| format!(r#""{key}":{}"#, key.trim_start_matches('0').len()))
            .collect::<Vec<_>>()
            .join(",")
    );
    let body = body.replace(r#""00000":0"#, r#""00000":1"#);
    let Json::Object(large) = read(&body) else { panic!("an object") };
    assert_eq!(large.len(), MEMBERS_MAX);
    assert!(large.iter().map(|(key, _)| key.to_owned()).eq(keys()));
    assert_eq!(large.get("00042"), Some(&read("2")));
    assert_eq!(large.get("42"), None);
    assert_eq!(large.clone(), large);
    let mut more = large.clone();
    assert_eq!(more.insert("00042".into(), Json::Null), Err(DuplicateKey { key: "00042".into() }));
    assert_eq!(more, large);
    more.insert("42".into(), Json::Null).unwrap();
    assert_ne!(more, large);
}

#[test]
fn numbers_keep_every_digit_and_their_bounds() {
    assert_ne!(read("9007199254740992"), read("9007199254740993"));
    assert_eq!(read("1e400"), read("10e399"));
    let most = "9".repeat(400);
    assert_eq!(bytes(&read(&most)).len(), "9.e+399".len() + 399);
    check_refused(format!(r#"{{"amount":{most}9}}"#), 10, "/amount", "400 significant digits");
    check_refused(format!("[{}]", "9".repeat(1 << 20)), 1, "/0", "400 significant digits");
    check_refused("[1e10000]", 1, "/0", "9999");
    check_refused(format!("[1e{}]", "9".repeat(1 << 20)), 1, "/0", "9999");
}

#[test]
fn the_canonical_form() {
    check_canonical(" [ null , true,false ] ", "[null,true,false]");
    check_canonical(r#"{"b":1,"a":{"d":[],"c":{}},"":0}"#, r#"{"":0,"a":{"c":{},"d":[]},"b":1}"#);
    // By UTF-8 bytes, U+FF61 is before U+10000; by UTF-16 units it is after.
    check_canonical(
        "{\"\u{10000}\":1,\"\u{ff61}\":2,\"a\":3,\"B\":4}",
        "{\"B\":4,\"a\":3,\"\u{ff61}\":2,\"\u{10000}\":1}",
    );
    check_canonical(r#"{"a\u0000":1,"a":2}"#, r#"{"a":2,"a\u0000":1}"#);
    check_canonical("[1.0,1e2,-0,1E-7,12.50]", "[1,100,0,1e-7,12.5]");
    check_canonical(r#""\/\u0041\b\n\u001F\u007f\"\\\u00e9""#, "\"/A\\u0008\\u000a\\u001f\u{7f}\\\"\\\\é\"");
    check_canonical("\"e\u{301}\"", "\"e\u{301}\"");
}

#[test]
fn different_values_have_different_canonical_bytes() {
    let values = [
        "null",
        "\"null\"",
        "true",
        "0",
        "\"0\"",
        "1",
        "1.5",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "[null]",
        "[1,2]",
        "[2,1]",
        "[12]",
        "[\"1,2\"]",
        "[\"1\",\"2\"]",
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":null}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
        r#"{"a":"1,\"b\":2"}"#,
        r#""\u0001""#,
        r#""\\u0001""#,
        r#""é""#,
        r#""e\u0301""#,
    ]
    .map(read);
    for (at, one) in values.iter().enumerate() {
        for (other_at, other) in values.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{one:?} {other:?}");
            assert_eq!(bytes(one) == bytes(other), at == other_at, "{one:?} {other:?}");
        }
    }
}
