//! Changes that a declaration made in the directory: a line of the log for all, and an event for each revocation that it
//! lifted, which no status reports. Both are lost with the answer of the declaration.

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
    let (mut published, mut changed) = (0, 0);
    let mut happened = Vec::new();
    for (hash, record) in declaration.records.iter().filter(|(hash, _)| is_held(hash)) {
        if declaration.reinstated.contains_key(hash) {
            let note = format!("the revocation of key {} is lifted", record.key_id);
            happened.push(Transition::normal("KeyReinstated", note));
        }
        match held.get(hash) {
            None => published += 1,
            Some(Some(before)) if before == record => {}
            Some(_) => changed += 1,
        }
    }
    let (namespace, name) = (&declaration.owner.namespace, &declaration.owner.name);
    info!(
        %namespace, %name, published, changed, removed, reinstated = happened.len(),
        "declared the keys of an ApiKey"
    );
    happened
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

    fn record() -> Record {
        Record {
            key_id: "abcdefabcdef".parse().unwrap(),
            account: "acme".parse().unwrap(),
            plan: "Free".parse().unwrap(),
            state: KeyState::Active,
            not_before: None,
            expires: None,
            retires: None,
            revision: 0,
        }
    }

    /// Returns a declaration that lifts the revocation of this hash.
    fn lifting(digit: &str) -> Declaration {
        let at = Timestamp::from_millis(5000).unwrap();
        Declaration {
            owner: Owner {
                uid: "uid".into(),
                namespace: "team".into(),
                name: "acme".into(),
            },
            number: 1,
            records: [(hash(digit), record())].into(),
            withdrawn: BTreeSet::new(),
            revoked: BTreeSet::new(),
            reinstated: [(hash(digit), at)].into(),
            origin: Origin::Generated,
            is_last: false,
        }
    }

    #[test]
    fn a_lifted_revocation_is_an_event_unless_the_directory_refused_it() {
        let told = |refused| told(&BTreeMap::new(), &lifting("e"), &refused);
        let note = "the revocation of key abcdefabcdef is lifted";
        assert_eq!(
            told(BTreeMap::new()),
            [Transition::normal("KeyReinstated", note)]
        );
        assert_eq!(told([(hash("e"), HashRefusal::Taken)].into()), []);
    }
}
