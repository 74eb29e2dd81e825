//! What a declaration changed in the directory: a line of the log for each, and an event for what no
//! status tells.

use std::collections::BTreeMap;

use tracing::info;
use water_domain::KeyHash;
use water_keystore::{Declaration, Owner, Record};

use crate::events::Transition;

/// How many keys of an ApiKey a declaration changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes {
    published: usize,
    changed: usize,
    removed: usize,
    reinstated: usize,
    happened: Vec<Transition>,
}

impl Changes {
    /// What `declaration` changes of `held`, which was read before.
    pub fn of(held: &BTreeMap<KeyHash, Option<Record>>, declaration: &Declaration) -> Self {
        let records = &declaration.records;
        let mut changes = Self {
            published: 0,
            changed: 0,
            removed: held
                .keys()
                .filter(|hash| !records.contains_key(hash))
                .count(),
            reinstated: declaration.reinstated.len(),
            happened: Vec::new(),
        };
        for (hash, record) in records {
            if declaration.reinstated.contains_key(hash) {
                let note = format!("the revocation of key {} is lifted", record.key_id);
                changes
                    .happened
                    .push(Transition::normal("KeyReinstated", note));
            }
            match held.get(hash) {
                None => changes.published += 1,
                Some(Some(before)) if before == record => {}
                Some(before) => {
                    changes.changed += 1;
                    changes
                        .happened
                        .extend(before.as_ref().and_then(|before| replan(before, record)));
                }
            }
        }
        changes
    }

    /// Tells the log, and returns the events.
    pub fn told(self, declaration: &Declaration) -> Vec<Transition> {
        let Owner {
            namespace, name, ..
        } = &declaration.owner;
        let Self {
            published,
            changed,
            removed,
            reinstated,
            happened,
        } = self;
        info!(
            namespace,
            name, published, changed, removed, reinstated, "declared the keys of an ApiKey"
        );
        happened
    }
}

fn replan(before: &Record, after: &Record) -> Option<Transition> {
    let note = || {
        let (key_id, old, new) = (&after.key_id, &before.plan, &after.plan);
        format!("key {key_id} has the plan {new} instead of {old}")
    };
    (before.plan != after.plan).then(|| Transition::normal("PlanChanged", note()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use water_domain::Timestamp;
    use water_keystore::{KeyState, Origin};

    use super::*;

    fn hash(digit: &str) -> KeyHash {
        digit.repeat(64).parse().unwrap()
    }

    fn record(plan: &str) -> Record {
        Record {
            key_id: "abcdefabcdef".parse().unwrap(),
            account: "acme".parse().unwrap(),
            plan: plan.parse().unwrap(),
            state: KeyState::Active,
            not_before: None,
            expires: None,
            retires: None,
            revision: 0,
        }
    }

    fn declaration(records: &[(&str, &str)], reinstated: &[&str]) -> Declaration {
        let at = Timestamp::from_millis(5000).unwrap();
        Declaration {
            owner: Owner {
                uid: "uid".into(),
                namespace: "team".into(),
                name: "acme".into(),
            },
            number: 1,
            records: records
                .iter()
                .map(|(digit, plan)| (hash(digit), record(plan)))
                .collect(),
            withdrawn: BTreeSet::new(),
            revoked: BTreeSet::new(),
            reinstated: reinstated.iter().map(|digit| (hash(digit), at)).collect(),
            origin: Origin::Generated,
            is_last: false,
        }
    }

    #[test]
    fn what_a_declaration_changes_is_counted_and_plans_and_reinstatements_are_events() {
        let held = [
            ("a", Some("Free")),
            ("b", Some("Free")),
            ("c", None),
            ("d", Some("Free")),
        ];
        let held = held
            .map(|(digit, plan)| (hash(digit), plan.map(record)))
            .into();
        let declared = [
            ("a", "Free"),
            ("b", "Enterprise"),
            ("c", "Free"),
            ("e", "Free"),
        ];
        let changes = Changes::of(&held, &declaration(&declared, &["e"]));
        let happened = vec![
            Transition::normal(
                "PlanChanged",
                "key abcdefabcdef has the plan Enterprise instead of Free",
            ),
            Transition::normal(
                "KeyReinstated",
                "the revocation of key abcdefabcdef is lifted",
            ),
        ];
        let expected = Changes {
            published: 1,
            changed: 2,
            removed: 1,
            reinstated: 1,
            happened,
        };
        assert_eq!(changes, expected);
    }
}
