//! Rules for prose: a comment sentence starts with a noun or a verb, not with a clause like "What
//! is stored".

use crate::tree::{none, sources};

/// Highest percentage of comment sentences that may open with such a clause.
const PERCENT_MAX: usize = 1;
const OPENERS: [&str; 5] = ["What", "Whatever", "Who", "Whoever", "Whose"];
/// Ends of a sentence, if white space and a capital letter follow.
const ENDS: [char; 5] = ['.', '!', '?', ':', ';'];

/// A sentence and the line on which its paragraph starts.
#[derive(Debug, PartialEq)]
struct Sentence {
    line: usize,
    text: String,
}

impl Sentence {
    fn is_riddle(&self) -> bool {
        let first: String = self.text.chars().take_while(|character| character.is_alphabetic()).collect();
        OPENERS.contains(&first.as_str()) && !self.text.ends_with('?')
    }
}

/// The sentences of all comments in Rust code. Code examples and single words do not count.
fn sentences(code: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let (mut paragraph, mut start, mut is_example) = (String::new(), 0, false);
    for (index, line) in code.lines().enumerate() {
        let comment = comment(line);
        let text = comment.unwrap_or_default();
        let is_fence = text.starts_with("```");
        // An example ends with its comment even if the closing fence is missing.
        is_example = comment.is_some() && (is_example != is_fence);
        let item = text.strip_prefix("- ").or_else(|| text.strip_prefix("* "));
        if text.is_empty() || is_fence || is_example || item.is_some() {
            found.extend(split(&std::mem::take(&mut paragraph), start));
        }
        if text.is_empty() || is_fence || is_example {
            continue;
        }
        if paragraph.is_empty() {
            start = index + 1;
        }
        paragraph.push_str(item.unwrap_or(text));
        paragraph.push(' ');
    }
    found.extend(split(&paragraph, start));
    found
}

/// The text of a line that is a comment and nothing else.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = ["///", "//!", "//"].iter().find_map(|prefix| line.strip_prefix(prefix))?;
    Some(text.trim())
}

fn split(paragraph: &str, line: usize) -> Vec<Sentence> {
    let text = without_code(paragraph);
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(ENDS) {
        let rest = &text[at + 1..];
        let next = rest.trim_start();
        if next.len() < rest.len() && next.starts_with(|character: char| character.is_ascii_uppercase()) {
            sentences.push(text[start..=at].trim().to_owned());
            start = text.len() - next.len();
        }
    }
    sentences.push(text[start..].trim().to_owned());
    let long = sentences.into_iter().filter(|sentence| sentence.split_whitespace().count() > 1);
    long.map(|text| Sentence { line, text }).collect()
}

/// Replaces code spans by a capital letter, so that dots and words in them do not count.
fn without_code(paragraph: &str) -> String {
    let parts = paragraph.split('`').enumerate();
    parts.map(|(index, part)| if index % 2 == 0 { part } else { "X" }).collect()
}

#[test]
fn comments_start_with_nouns_and_verbs() {
    let (mut count, mut riddles) = (0, Vec::new());
    for source in ["crates", "xtask"].into_iter().flat_map(sources) {
        if !source.has_extension("rs") {
            continue;
        }
        for sentence in sentences(&source.text) {
            count += 1;
            if sentence.is_riddle() {
                riddles.push(format!("{}:{}: {}", source.name(), sentence.line, sentence.text));
            }
        }
    }
    if riddles.len() * 100 > count * PERCENT_MAX {
        riddles.push(format!("{} of {count} comment sentences; {PERCENT_MAX} % are allowed", riddles.len()));
        none(&riddles);
    }
}

#[test]
fn sentences_are_split_and_riddles_found() {
    let code = "//! Words of `a. B` and more: Two. What is\n//! stored here.\n\nlet x = 1; // Who trails.\n\
        /// - What an item is.\n/// - Another item\n///\n/// ```\n/// // Who is code.\n/// ```\n    // What now?\n\
        // Word.\n/// Whose: it has two words.\n";
    let found = sentences(code);
    let expected = [
        (1, "Words of X and more:", false),
        (1, "What is stored here.", true),
        (5, "What an item is.", true),
        (6, "Another item", false),
        (11, "What now?", false),
        (11, "Whose: it has two words.", true),
    ];
    let lines: Vec<(usize, &str, bool)> =
        found.iter().map(|it| (it.line, it.text.as_str(), it.is_riddle())).collect();
    assert_eq!(lines, expected);
}
