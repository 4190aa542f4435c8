//! The definition of a saga: a version and its steps in order, each with its compensation.
//!
//! Actions are opaque here; the composing module defines them. A released definition never changes.
//! A changed saga gets a higher version, and work ends under the definition it began with.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SagaDefinition<D: 'static> {
    /// The name in stores and timelines.
    pub name: &'static str,
    pub version: u16,
    /// At least one step.
    pub steps: &'static [Stage<D>],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage<D> {
    pub action: D,
    /// The compensation; `None` if the action has no effect to undo or cannot be undone.
    pub undo: Option<D>,
}

pub fn find<D: Copy>(known: &[SagaDefinition<D>], name: &str, version: u16) -> Option<SagaDefinition<D>> {
    known.iter().find(|one| one.name == name && one.version == version).copied()
}

/// The definition for new sagas: the highest version.
pub fn latest<D: Copy>(known: &[SagaDefinition<D>], name: &str) -> Option<SagaDefinition<D>> {
    known.iter().filter(|one| one.name == name).max_by_key(|one| one.version).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn one(name: &'static str, version: u16) -> SagaDefinition<&'static str> {
        SagaDefinition { name, version, steps: &[Stage { action: "call", undo: None }] }
    }

    const KNOWN: [SagaDefinition<&str>; 4] = [one("sale", 1), one("sale", 3), one("sale", 2), one("gift", 4)];

    #[test]
    fn a_definition_is_found_by_name_and_version_together() {
        assert_eq!(find(&KNOWN, "sale", 2), Some(one("sale", 2)));
        assert_eq!(find(&KNOWN, "gift", 4), Some(one("gift", 4)));
        assert_eq!(find(&KNOWN, "sale", 4), None, "a version of another name");
        assert_eq!(find(&KNOWN, "theft", 1), None);
    }

    #[test]
    fn new_sagas_begin_under_the_latest_definition() {
        assert_eq!(latest(&KNOWN, "sale"), Some(one("sale", 3)));
        assert_eq!(latest(&KNOWN, "gift"), Some(one("gift", 4)));
        assert_eq!(latest(&KNOWN, "theft"), None);
    }
}
