//! What a saga is: its steps in order, each with the deed that undoes it, under a version.
//!
//! What a deed is belongs to whoever composes the saga; here it is only a word. A definition is never changed once it
//! was released: a changed one gets a higher version, and what began under the old one ends under it.

/// A saga's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SagaDefinition<D: 'static> {
    /// What it is called in stores and timelines.
    pub name: &'static str,
    /// Which of the definitions of that name.
    pub version: u16,
    /// Its steps, at least one.
    pub steps: &'static [Stage<D>],
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage<D> {
    /// What is done.
    pub action: D,
    /// What undoes it; nothing where there is nothing to undo, or nothing that could.
    pub undo: Option<D>,
}

/// The definition of that name and version, among those that are known.
pub fn find<D: Copy>(known: &[SagaDefinition<D>], name: &str, version: u16) -> Option<SagaDefinition<D>> {
    known.iter().find(|one| one.name == name && one.version == version).copied()
}

/// The youngest definition of that name: what new sagas begin under.
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
    fn new_sagas_begin_under_the_youngest_definition_of_their_name() {
        assert_eq!(latest(&KNOWN, "sale"), Some(one("sale", 3)));
        assert_eq!(latest(&KNOWN, "gift"), Some(one("gift", 4)));
        assert_eq!(latest(&KNOWN, "theft"), None);
    }
}
