//! The envelope shared by all lists.

use crate::json;

/// Writes `{"object":"list","data":[…],"has_more":…}`; `write` appends an element.
pub fn write<T>(
    data: impl IntoIterator<Item = T>,
    has_more: bool,
    write: impl FnMut(&mut Vec<u8>, T),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    json::object(&mut out, |list| {
        list.string("object", "list").array("data", data, write).boolean("has_more", has_more);
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_has_the_envelope() {
        let text = write(Vec::<u8>::new(), false, |_, _| {});
        assert_eq!(text, br#"{"object":"list","data":[],"has_more":false}"#);
    }
}
