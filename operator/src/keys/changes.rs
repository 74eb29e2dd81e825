//! What a declaration changed in the directory: a line of the log for each, and an event for what no
//! status tells.

use std::collections::BTreeMap;

use tracing::info;
use water_domain::KeyHash;
use water_keystore::{Declaration, HashRefusal, Record};

use crate::events::Transition;

/// Logs what `declaration` has changed of `held`, which was read before, and returns the events.
pub fn told(
    held: &BTreeMap<KeyHash, Option<Record>>,
    declaration: &Declaration,
    refused: &BTreeMap<KeyHash, HashRefusal>,
) -> Vec<Transition> {
    let is_held =
        |hash: &KeyHash| declaration.records.contains_key(hash) && !refused.contains_key(hash);
    let removed = held.keys().filter(|hash| !is_held(hash)).count();
    let (mut published, mut changed, mut reinstated) = (0, 0, 0);
    let mut happened = Vec::new();
    for (hash, record) in declaration.records.iter().filter(|(hash, _)| is_held(hash)) {
        if declaration.reinstated.contains_key(hash) {
            reinstated += 1;
            let note = format!("the revocation of key {} is lifted", record.key_id);
            happened.push(Transition::normal("KeyReinstated", note));
        }
        match held.get(hash) {
            None => published += 1,
            Some(Some(before)) if before == record => {}
            Some(before) => {
                changed += 1;
                happened.extend(before.as_ref().and_then(|before| replan(before, record)));
            }
        }
    }
    let (namespace, name) = (&declaration.owner.namespace, &declaration.owner.name);
    info!(
        %namespace, %name, published, changed, removed, reinstated,
        "declared the keys of an ApiKey"
    );
    happened
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
    use water_keystore::{KeyState, Origin, Owner};

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

    fn plans(told: &[(&str, Option<&str>)]) -> BTreeMap<KeyHash, Option<Record>> {
        let records = told.iter();
        records
            .map(|(digit, plan)| (hash(digit), plan.map(record)))
            .collect()
    }

    #[test]
    fn another_plan_and_a_reinstatement_are_events() {
        let held = plans(&[
            ("a", Some("Free")),
            ("b", Some("Free")),
            ("c", None),
            ("d", Some("Free")),
        ]);
        let declared = [
            ("a", "Free"),
            ("b", "Enterprise"),
            ("c", "Free"),
            ("e", "Free"),
        ];
        let told = told(&held, &declaration(&declared, &["e"]), &BTreeMap::new());
        let happened = [
            (
                "PlanChanged",
                "key abcdefabcdef has the plan Enterprise instead of Free",
            ),
            (
                "KeyReinstated",
                "the revocation of key abcdefabcdef is lifted",
            ),
        ];
        assert_eq!(
            told,
            happened.map(|(reason, note)| Transition::normal(reason, note))
        );
    }

    #[test]
    fn what_the_directory_refused_has_not_happened() {
        let held = plans(&[("a", Some("Free"))]);
        let declaration = declaration(&[("a", "Enterprise"), ("e", "Free")], &["e"]);
        let refused = ["a", "e"].map(|digit| (hash(digit), HashRefusal::Taken));
        assert_eq!(told(&held, &declaration, &refused.into()), []);
    }
}
