//! Documentation from the table: the reference page, and the explanation of one setting.

use std::fmt::Write as _;

use super::declare::Entry;
use super::environment::variable;
use super::problem::quoted;
use super::suggest::unknown_setting;
use super::table::catalogue;

const INTRODUCTION: &str = "\
# Configuration

Every setting can be given in a TOML file (`--config FILE`), as an environment variable and, for the common
ones, as a flag. A flag wins over the environment, the environment over the file, the file over the default.

```toml
[idempotency]
lease_ms = 500
```

```sh
COUNTERFOIL_IDEMPOTENCY__LEASE_MS=500
```

The variable of a setting is `COUNTERFOIL_`, its section, two underscores and its name, in upper case. A
setting that does not exist or is out of range stops the start with exit code 2; all problems are listed at
once.
";

/// The reference page, `docs/configuration.md`.
pub(crate) fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for section in catalogue() {
        // Writing to a `String` cannot fail.
        let _ = write!(page, "\n## `[{}]`\n\n{}\n\n", section.name, section.doc);
        page.push_str("| setting | default | allowed | what it does |\n|---|---|---|---|\n");
        for entry in &section.entries {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                entry.name,
                default(entry),
                entry.allowed,
                entry.doc
            );
        }
    }
    page
}

/// Explains the setting `section.name`; an unknown one is refused with a suggestion.
pub(crate) fn explain(setting: &str) -> Result<String, String> {
    let table = catalogue();
    let asked = setting.split_once('.').unwrap_or(("", setting));
    let found = table.iter().flat_map(|s| &s.entries).find(|e| (e.section, e.name) == asked);
    let Some(entry) = found else {
        let sentence = unknown_setting(&table, asked, |s, n| format!("{s}.{n}"));
        return Err(format!("{} {sentence}", quoted(setting)));
    };
    Ok(format!(
        "{}.{}\n  {}\n  default: {}\n  allowed: {}\n  file: [{}] {} = …\n  environment: {}\n",
        entry.section,
        entry.name,
        entry.doc,
        default(entry),
        entry.allowed,
        entry.section,
        entry.name,
        variable(entry.section, entry.name),
    ))
}

fn default(entry: &Entry) -> String {
    entry.default.as_ref().map_or_else(|| "none".to_owned(), |text| format!("`{text}`"))
}
