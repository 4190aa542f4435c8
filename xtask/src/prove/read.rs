//! Extracts figures from text for people.

use serde_json::Value;

/// All numbers directly before this word.
pub(super) fn counted(text: &str, word: &str) -> Vec<u64> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')').collect();
    let is_it = |found: &str| found.trim_end_matches([',', ';', ':', '.']) == word;
    let pairs = words.windows(2).filter(|pair| is_it(pair[1]));
    pairs.filter_map(|pair| pair[0].replace(',', "").parse().ok()).collect()
}

/// The sum of all numbers directly before this word.
pub(super) fn sum(text: &str, word: &str) -> u64 {
    counted(text, word).into_iter().sum()
}

/// The last line that is a JSON object.
pub(super) fn last_json(text: &str) -> Value {
    let mut lines = text.lines().rev().filter(|line| line.starts_with('{'));
    lines.find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_before_their_word() {
        let text =
            "26,565 requests in 3.1s: 0 × 5xx\n7 images (3 contents) of 2 recordings, 5 torn, 0 violations\n";
        assert_eq!(counted(text, "requests"), [26_565]);
        assert_eq!((counted(text, "contents"), counted(text, "violations")), (vec![3], vec![0]));
        assert!(counted(text, "seeds").is_empty());
        assert_eq!(sum("1 states\n2 states, 3 states", "states"), 6);
    }

    #[test]
    fn the_last_object_counts() {
        assert_eq!(last_json("{\"a\":1}\nx\n{\"a\":2}\n{broken")["a"], 2);
        assert!(last_json("nothing").is_null());
    }
}
