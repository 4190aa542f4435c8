//! Bodies that are not JSON: a good body cut off after every byte, or with an extra byte before
//! every byte.

use crate::bad::{BadRequest, Expected};
use crate::bodies::Target;
use crate::place;
use crate::world::World;

/// Bytes that are invalid anywhere in JSON: a control character, half a character, a byte outside
/// UTF-8, an overlong slash, and half of a surrogate pair.
const STRAY: [(&str, &[u8]); 5] = [
    ("a control character", b"\x01"),
    ("a byte of no character", b"\xff"),
    ("half a character", b"\xc3"),
    ("an overlong slash", b"\xc0\xaf"),
    ("an encoded surrogate", b"\xed\xa0\x80"),
];

pub(crate) fn make(world: &World, bad: &mut Vec<BadRequest>) {
    for target in Target::all(world) {
        let text = target.good_text.as_bytes();
        let shortest = usize::from(target.write.may_be_empty);
        for length in shortest..text.len() {
            let expected = Expected::invalid(&[&place::at(text, length)]);
            bad.push(target.json(
                &format!("cut off after {length} bytes"),
                "cut",
                text[..length].to_vec(),
                expected,
            ));
        }
        for (what, stray) in STRAY {
            for length in 0..=text.len() {
                let body = [&text[..length], stray, &text[length..]].concat();
                let expected = Expected::invalid(&[&place::at(text, length)]);
                bad.push(target.json(&format!("{what} after {length} bytes"), "stray", body, expected));
            }
        }
        whole(&target, bad);
    }
}

/// Bodies that are not objects, and extra bytes around a good body.
fn whole(target: &Target<'_>, bad: &mut Vec<BadRequest>) {
    let top = || Expected::invalid(&[""]);
    let good = &target.good_text;
    let zipped =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00".to_vec();
    let mut bodies: Vec<Vec<u8>> = [
        " ",
        "\n",
        "null",
        "true",
        "false",
        "0",
        "1",
        "-0",
        "1e400",
        "\"text\"",
        "\"\"",
        "[]",
        "[{}]",
        "[null]",
        "}",
        "]",
        ",",
        ":",
        "NaN",
        "nul",
        "{,}",
        "{]",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{} {}",
        "{}{}",
        "{},",
        "{};",
        "{}\u{0}",
        "// c\n{}",
        "/* c */{}",
        "#{}",
        "\u{feff}{}",
        "<a/>",
        "amount=1&currency=usd",
        "--boundary\r\n",
        "GET / HTTP/1.1\r\n\r\n",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    // Objects with a single member, which the pointer tells from the body around them.
    let named: [(&str, &str); 4] =
        [("{\"a\"}", "/a"), ("{\"a\" 1}", "/a"), ("{\"a\"=1}", "/a"), ("{\"a\":}", "/a")];
    bodies.extend([
        zipped,
        [b"\xff\xfe", &utf16(good, u16::to_le_bytes)[..]].concat(),
        utf16(good, u16::to_le_bytes),
        utf16(good, u16::to_be_bytes),
        format!("\u{feff}{good}").into_bytes(),
        format!("{good}{good}").into_bytes(),
        format!("{good}\u{0}").into_bytes(),
        format!("{good},").into_bytes(),
        format!("[{good}]").into_bytes(),
        format!("\"{}\"", good.replace('"', "\\\"")).into_bytes(),
        format!("{{{}}}", (0..1_001).map(|n| format!("\"n{n}\":1")).collect::<Vec<_>>().join(","))
            .into_bytes(),
    ]);
    for body in bodies {
        let shown: String = String::from_utf8_lossy(&body).chars().take(20).collect();
        bad.push(target.json(&format!("the body {shown:?}"), "whole", body, top()));
    }
    for (body, place) in named {
        bad.push(target.json(&format!("the body {body}"), "whole", body, Expected::invalid(&[place])));
    }
    for (open, place) in [("[", "/0"), ("{\"k\":", "/k")] {
        let expected = Expected::invalid(&[&place.repeat(64)]);
        bad.push(target.json("a body that nests", "whole", open.repeat(100_000), expected));
    }
    let many = format!("{{\"k\":[{}]}}", vec!["1"; 100_001].join(","));
    bad.push(target.json("a body of many elements", "whole", many, Expected::invalid(&["/k"])));
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}
