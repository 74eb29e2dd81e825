//! Positions of key directories in an annotation of the Lease: a leader leaves its successor how far it has seen each
//! one, so that an earlier state which comes back while nobody leads is not believed.
//!
//! A directory has the name of its Redis in its WaterDataApi's status, which no other WaterDataApi shares. Where the
//! annotation has no room for all, it says so: whatever it does not name is then rebuilt.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use water_keystore::Position;

/// The annotation of the Lease.
pub const ANNOTATION: &str = "waterdata.dev/directory-positions";
/// Most directories in an annotation: 10 kB, which etcd stores every two seconds.
const MOST: usize = 200;
/// Position of a directory that had no room in an annotation. None reaches it: the directory counts as one that went
/// back until it is rebuilt.
pub const LEFT_OUT: Position = Position {
    generation: u64::MAX,
    seq: u64::MAX,
};

/// Positions at which a leader has last seen key directories.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Positions {
    /// Generation and change number, by the name of the Redis.
    positions: BTreeMap<String, (u64, u64)>,
    /// Whether others had no room.
    #[serde(default)]
    is_cut: bool,
}

impl Positions {
    /// Position of a directory; `None`: no leader has seen it, as far as is known.
    pub fn at(&self, store: &str) -> Option<Position> {
        let named = self.positions.get(store);
        let named = named.map(|&(generation, seq)| Position { generation, seq });
        named.or(self.is_cut.then_some(LEFT_OUT))
    }

    /// Replaces the position of a directory, if one is known. It may go back after a rebuild, whose generation begins
    /// at the time of Redis' clock.
    pub fn put(&mut self, store: &str, reached: Position) {
        if reached != Position::default() {
            let position = (reached.generation, reached.seq);
            self.positions.insert(store.to_owned(), position);
        }
    }

    /// Forgets a directory.
    pub fn remove(&mut self, store: &str) {
        self.positions.remove(store);
    }

    /// Writes the annotation. The directories without room are those whose rebuild is the longest ago, so that one
    /// which nobody opens any more does not stay for good.
    pub fn encode(&self) -> String {
        let mut kept: Vec<(&String, &(u64, u64))> = self.positions.iter().collect();
        kept.sort_by_key(|(_, position)| Reverse(**position));
        let is_cut = self.is_cut || kept.len() > MOST;
        kept.truncate(MOST);
        let kept = kept.into_iter();
        let written = Self {
            positions: kept.map(|(store, at)| (store.clone(), *at)).collect(),
            is_cut,
        };
        serde_json::to_string(&written).expect("texts and numbers are JSON")
    }

    /// Reads the annotation.
    pub fn decode(annotation: &str) -> serde_json::Result<Self> {
        serde_json::from_str(annotation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(generation: u64, seq: u64) -> Position {
        Position { generation, seq }
    }

    /// Positions of so many directories, each with a later generation than the one before.
    fn many(count: usize) -> Positions {
        let mut positions = Positions::default();
        for (number, generation) in (0..count).zip(1_764_565_345_123..) {
            let store = format!("{number:016x}");
            positions.put(&store, position(generation, 1_764_565_345_123));
        }
        positions
    }

    #[test]
    fn the_annotation_is_compact_and_is_read_as_it_was_written() {
        let mut positions = Positions::default();
        positions.put("ab12", position(7, 10));
        let annotation = positions.encode();
        assert_eq!(annotation, r#"{"positions":{"ab12":[7,10]},"isCut":false}"#);
        assert_eq!(Positions::decode(&annotation).unwrap(), positions);
        let all = Positions::decode(&many(MOST).encode()).unwrap();
        assert_eq!(all, many(MOST));
        assert_eq!(all.at("another"), None);
    }

    #[test]
    fn what_a_leadership_knows_replaces_what_it_was_left_and_nothing_else() {
        let mut positions = Positions::default();
        for store in ["opened", "rebuilt", "unanswered", "unopened", "gone"] {
            positions.put(store, position(7, 10));
        }
        positions.put("opened", position(7, 11));
        positions.put("rebuilt", position(6, 1));
        // Redis has not answered yet.
        positions.put("unanswered", Position::default());
        positions.remove("gone");
        let expected = [
            ("opened", Some(position(7, 11))),
            ("rebuilt", Some(position(6, 1))),
            ("unanswered", Some(position(7, 10))),
            ("unopened", Some(position(7, 10))),
            ("gone", None),
        ];
        for (store, expected) in expected {
            assert_eq!(positions.at(store), expected, "{store}");
        }
    }

    #[test]
    fn what_has_no_room_counts_as_gone_back_for_every_later_leader() {
        let annotation = many(MOST + 3).encode();
        assert!(annotation.len() < 10_500, "{}", annotation.len());
        let mut left = Positions::decode(&annotation).unwrap();
        for earliest in 0..3 {
            assert_eq!(left.at(&format!("{earliest:016x}")), Some(LEFT_OUT));
        }
        let kept = left.at(&format!("{:016x}", 3)).unwrap();
        assert!(kept < LEFT_OUT);
        let unchanged = Positions::decode(&left.encode()).unwrap();
        assert_eq!(unchanged.at("unopened"), Some(LEFT_OUT));
        // One that this leader has opened and not rebuilt.
        left.put("opened", LEFT_OUT);
        let later = Positions::decode(&left.encode()).unwrap();
        assert_eq!(later.at("opened"), Some(LEFT_OUT));
        assert_eq!(later.at("unopened"), Some(LEFT_OUT));
    }

    #[test]
    fn another_text_is_an_error_and_members_of_a_later_version_are_not() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"positions":{"ab12":7}}"#,
            r#"{"positions":{"ab12":[7]}}"#,
            r#"{"positions":{"ab12":[7,-1]}}"#,
            r#"{"positions":{"ab12":[7,18446744073709551616]}}"#,
            r#"{"positions":{"ab12":[7,10]},"isCut":"no"}"#,
        ] {
            assert!(Positions::decode(text).is_err(), "{text}");
        }
        let later = r#"{"positions":{"ab12":[7,10]},"more":{}}"#;
        let later = Positions::decode(later).unwrap();
        assert_eq!(later.at("ab12"), Some(position(7, 10)));
        assert_eq!(later.at("another"), None);
    }
}
