//! RFC 6901 pointers into a request body.

use counterfoil_core::types::json::POINTER_BYTES_MAX;

/// The pointer to a member of the value at `parent`. A name that would make the pointer too long is
/// left out; the answer then points to the enclosing value.
pub fn child(parent: &str, name: &str) -> String {
    let mut pointer = String::with_capacity(parent.len() + name.len() + 1);
    pointer.push_str(parent);
    pointer.push('/');
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
        if pointer.len() > POINTER_BYTES_MAX {
            return parent.to_owned();
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_bounded() {
        assert_eq!(child("", "amount"), "/amount");
        assert_eq!(child("/metadata", "a/b~c"), "/metadata/a~1b~0c");
        assert_eq!(child("/metadata", &"x".repeat(5_000)), "/metadata");
    }
}
