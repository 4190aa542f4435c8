//! A JSON object: members in their original order, with unique keys.
//!
//! Lookup is fast at every size, so a body of thousands of members cannot make the parser
//! quadratic. Small objects, the usual case, have no index.

use super::Json;
use std::fmt;

/// Up to this size, comparing all keys is faster than an index.
const UNINDEXED_MAX: usize = 16;

#[derive(Clone, Default)]
pub struct Object {
    members: Vec<(String, Json)>,
    /// Positions in `members`, sorted by key; empty up to [`UNINDEXED_MAX`] members.
    by_key: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    pub key: String,
}

/// The position of a key, or the position at which the index would insert it.
enum Place {
    Member(usize),
    Vacant { slot: usize },
}

impl Object {
    /// An object without members.
    pub const fn new() -> Object {
        Object { members: Vec::new(), by_key: Vec::new() }
    }

    /// Appends a member.
    pub fn insert(&mut self, key: String, value: Json) -> Result<(), DuplicateKey> {
        match self.find(&key) {
            Place::Member(_) => Err(DuplicateKey { key }),
            Place::Vacant { slot } => {
                let position = self.members.len();
                self.members.push((key, value));
                if !self.by_key.is_empty() {
                    self.by_key.insert(slot, position);
                } else if position >= UNINDEXED_MAX {
                    let mut keyed: Vec<(&str, usize)> =
                        self.iter().zip(0..).map(|((key, _), at)| (key, at)).collect();
                    keyed.sort_unstable();
                    self.by_key = keyed.into_iter().map(|(_, at)| at).collect();
                }
                Ok(())
            }
        }
    }

    /// The value of the member named `key`.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self.find(key) {
            Place::Member(position) => self.members.get(position).map(|(_, value)| value),
            Place::Vacant { .. } => None,
        }
    }

    /// The members, in the order they were inserted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.members.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The name of the member inserted last.
    pub(super) fn last_key(&self) -> Option<&str> {
        self.members.last().map(|(key, _)| key.as_str())
    }

    /// Replaces the value of the last member: the parser inserts a name before it reads the value.
    pub(super) fn set_last(&mut self, value: Json) {
        if let Some((_, last)) = self.members.last_mut() {
            *last = value;
        }
    }

    fn find(&self, key: &str) -> Place {
        if self.by_key.is_empty() {
            return match self.members.iter().position(|(name, _)| name == key) {
                Some(position) => Place::Member(position),
                None => Place::Vacant { slot: 0 },
            };
        }
        let name_at = |position: usize| self.members.get(position).map(|(name, _)| name.as_str());
        match self.by_key.binary_search_by(|position| name_at(*position).cmp(&Some(key))) {
            Ok(slot) => {
                self.by_key.get(slot).map_or(Place::Vacant { slot }, |position| Place::Member(*position))
            }
            Err(slot) => Place::Vacant { slot },
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Eq for Object {}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the member {:?} appears twice; send each name once", self.key)
    }
}

impl std::error::Error for DuplicateKey {}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize) -> Object {
        let mut object = Object::new();
        for number in (0..count).rev() {
            object.insert(format!("k{number:02}"), Json::Bool(number % 2 == 0)).unwrap();
        }
        object
    }

    #[test]
    fn only_large_objects_have_an_index() {
        for count in [0, 1, UNINDEXED_MAX] {
            assert!(of(count).by_key.is_empty(), "{count}");
        }
        for count in [UNINDEXED_MAX + 1, UNINDEXED_MAX + 9] {
            let object = of(count);
            assert_eq!(object.by_key, (0..count).rev().collect::<Vec<_>>());
            assert_eq!(object.get("k03"), Some(&Json::Bool(false)));
        }
    }

    #[test]
    fn members_keep_their_order() {
        assert!(Object::new().is_empty() && !of(1).is_empty());
        let members: Vec<(String, Json)> = of(2).into_iter().collect();
        assert_eq!(members, [("k01".to_owned(), Json::Bool(false)), ("k00".to_owned(), Json::Bool(true))]);
    }
}
