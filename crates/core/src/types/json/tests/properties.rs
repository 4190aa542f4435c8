use super::{bytes, object, read};
use crate::types::decimal::Decimal;
use crate::types::json::{Json, POINTER_BYTES_MAX};
use proptest::prelude::*;

fn strings() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        'a', 'b', '"', '\\', '/', '\0', '\n', '\u{1f}', '\u{7f}', 'é', '\u{ffff}', '😀',
    ]);
    prop::collection::vec(prop_oneof![3 => tricky, 1 => any::<char>()], 0..6)
        .prop_map(|chars| chars.into_iter().collect())
}

fn values() -> impl Strategy<Value = Json> {
    let numbers =
        (any::<i64>(), -400_i32..400).prop_map(|(digits, exponent)| read(&format!("{digits}e{exponent}")));
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i8>().prop_map(|value| Json::Number(Decimal::from_i64(value.into()))),
        numbers,
        strings().prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let members = prop::collection::btree_map(strings(), inner.clone(), 0..24);
        prop_oneof![
            prop::collection::vec(inner, 0..8).prop_map(Json::Array),
            (members, any::<prop::sample::Index>()).prop_map(|(members, turn)| {
                let mut members: Vec<_> = members.into_iter().collect();
                let by = if members.is_empty() { 0 } else { turn.index(members.len()) };
                members.rotate_left(by);
                object(members)
            }),
        ]
    })
}

/// The same value with the members of every object reversed.
fn reversed(value: &Json) -> Json {
    match value {
        Json::Array(elements) => Json::Array(elements.iter().map(reversed).collect()),
        Json::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| (key.to_owned(), reversed(value))).collect();
            members.reverse();
            object(members)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn canonical_bytes_read_back_and_stay(value in values()) {
        let form = bytes(&value);
        let back = Json::parse(&form).unwrap();
        prop_assert_eq!(bytes(&back), form);
        prop_assert_eq!(back, value);
    }

    #[test]
    fn the_order_of_members_does_not_count(value in values()) {
        let other = reversed(&value);
        prop_assert_eq!(bytes(&other), bytes(&value));
        prop_assert_eq!(other, value);
    }

    #[test]
    fn equal_bytes_mean_equal_values(one in values(), other in values()) {
        prop_assert_eq!(bytes(&one) == bytes(&other), one == other);
    }

    #[test]
    fn a_damaged_body_is_refused_in_bounds_or_still_canonical(
        value in values(), place in any::<prop::sample::Index>(), byte: u8, cut: bool,
    ) {
        let mut body = bytes(&value);
        let at = place.index(body.len());
        if cut { body.truncate(at) } else { body[at] = byte }
        match Json::parse(&body) {
            Ok(read) => prop_assert_eq!(Json::parse(&bytes(&read)), Ok(read)),
            Err(error) => {
                prop_assert!(error.offset <= body.len());
                prop_assert!(error.pointer.is_empty() || error.pointer.starts_with('/'));
                prop_assert!(error.pointer.len() <= POINTER_BYTES_MAX);
            }
        }
    }
}
