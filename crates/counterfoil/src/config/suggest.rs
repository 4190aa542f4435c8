//! Suggestions for names that are not in the table.

use super::declare::Section;
use super::problem::quoted;

/// Longer names get no suggestion, which bounds the work for hostile input.
const NAME_CHARS_MAX: usize = 64;

/// Refuses `section.name`, which is not in the table. `written` spells a setting in the layer's
/// syntax.
pub(super) fn unknown_setting(
    table: &[Section],
    (section, name): (&str, &str),
    written: impl Fn(&str, &str) -> String,
) -> String {
    let elsewhere = || table.iter().flat_map(|s| &s.entries).find(|e| e.name == normal(name));
    let Some(home) = table.iter().find(|s| s.name == normal(section)) else {
        let meant = nearest(section, table.iter().map(|s| s.name));
        let near = meant.and_then(|s| Some((s, nearest(name, names(table, s)?)?)));
        let found = near.or_else(|| elsewhere().map(|e| (e.section, e.name)));
        return match found {
            Some((section, name)) => format!("is not a setting; did you mean `{}`?", written(section, name)),
            None => format!("is not a setting; {}", sections(table)),
        };
    };
    let own = || nearest(name, home.entries.iter().map(|e| e.name)).map(|name| (home.name, name));
    // Prefer the same name in another section to a similar name in this section.
    let here = home.entries.iter().any(|e| e.name == normal(name));
    let moved = if here { None } else { elsewhere().map(|e| (e.section, e.name)) };
    if let Some((section, name)) = moved.or_else(own) {
        return format!("is not a setting; did you mean `{}`?", written(section, name));
    }
    let known: Vec<&str> = home.entries.iter().map(|e| e.name).collect();
    format!("is not a setting; the section `{}` has {}", home.name, known.join(", "))
}

/// Refuses `[section]`, which is not in the table.
pub(super) fn unknown_section(table: &[Section], section: &str) -> String {
    match nearest(section, table.iter().map(|s| s.name)) {
        Some(meant) => format!("{} is not a section; did you mean `[{meant}]`?", quoted(section)),
        None => format!("{} is not a section; {}", quoted(section), sections(table)),
    }
}

/// The nearest candidate, if it is close enough to be a typing error or a missing ending.
pub(super) fn nearest<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = normal(given);
    let slips_max = (given.len() / 3).clamp(1, 3);
    candidates
        .map(|candidate| (distance(&given, candidate), candidate))
        .filter(|(slips, candidate)| {
            *slips <= slips_max || (given.len() >= 3 && candidate.starts_with(&given))
        })
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

fn names<'a>(table: &'a [Section], section: &str) -> Option<impl Iterator<Item = &'a str>> {
    table.iter().find(|s| s.name == section).map(|s| s.entries.iter().map(|e| e.name))
}

fn sections(table: &[Section]) -> String {
    let known: Vec<&str> = table.iter().map(|s| s.name).collect();
    format!("the sections are {}", known.join(", "))
}

fn normal(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// The Levenshtein distance of two names.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut next = vec![line + 1];
        let mut left = line + 1;
        for (b, above) in to.chars().zip(row.windows(2)) {
            let replaced = above[0] + usize::from(a != b);
            left = replaced.min(above[1] + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
