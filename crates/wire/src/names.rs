//! Suggestions for misspelled field names.

/// Longest unknown name that is compared. Known names are far shorter; the bound limits the work a
/// hostile name causes.
const CHARS_MAX: usize = 64;

/// The nearest of `known`, if it is near enough to be a typo.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let given: Vec<char> = given
        .chars()
        .take(CHARS_MAX)
        .map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() })
        .filter(|c| *c != '_')
        .collect();
    let edits_max = (given.len() / 3).clamp(1, 3);
    known
        .iter()
        .map(|name| (distance(&given, name), *name))
        .filter(|(slips, _)| *slips <= edits_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

/// The name in a printable and short form, for messages.
pub fn printable(name: &str) -> String {
    let mut text: String =
        name.chars().take(CHARS_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(CHARS_MAX).is_some() {
        text.push('…');
    }
    text
}

/// The edit distance, ignoring underscores.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().filter(|c| *c != '_').collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.iter().enumerate() {
        let mut next = vec![line + 1];
        let mut left = line + 1;
        for (b, above) in to.iter().zip(row.windows(2)) {
            let replaced = above[0] + usize::from(a != b);
            left = replaced.min(above[1] + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_suggest_the_nearest_known_name() {
        let known = ["amount", "currency", "payment_method", "metadata"];
        for (given, meant) in [
            ("amout", Some("amount")),
            ("Amount", Some("amount")),
            ("paymentMethod", Some("payment_method")),
            ("payment-method", Some("payment_method")),
            ("meta_data", Some("metadata")),
            ("currancy", Some("currency")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, &known), meant, "{given}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
    }

    #[test]
    fn a_shown_name_is_short_and_printable() {
        assert_eq!(printable("a\u{0}b\u{1b}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(printable(&"x".repeat(65)).chars().count(), 65);
    }
}
