//! What a rebuild writes, by the rules of `keys::contents`: these read Kubernetes' objects, so that the
//! model follows them with objects of its own.

use water_operator::keys::decide::{earlier, stricter};
use water_operator::keys::seen::KeyRules;

use crate::cluster::{Admits, Object, Phase, Secret};
use crate::mistake::Mistake;
use crate::records::{Hashes, KEYS, Record, Records, at};
use crate::system::System;

/// Every key to be published, as leader `number` knows them.
pub fn contents(system: &System, number: usize, mistake: Option<Mistake>) -> Records {
    let objects: [Object; KEYS] = std::array::from_fn(|key| system.object(number, key));
    let is_hindered = |object: &Object| is_hindered(system, object);
    let former = if objects.iter().any(is_hindered) {
        system.store.records
    } else {
        Records::default()
    };
    let mut records = Records::default();
    // Of two with one hash the first counts: by claim, then by age.
    let mut claims = [None; 8];
    for (key, object) in objects.iter().enumerate() {
        if mistake == Some(Mistake::RebuildWithoutHindered) && is_hindered(object) {
            continue;
        }
        let status = &object.status;
        for (hash, record) in of_key(system, number, key, object, &former, mistake) {
            let claim = (
                !(status.shown && status.told && status.current == Some(hash)),
                key,
            );
            let best = &mut claims[usize::from(hash)];
            if best.is_none_or(|best| claim < best) {
                *best = Some(claim);
                records.put(hash, record);
            }
        }
    }
    records
}

/// Whether something leaves it published on the terms that it had.
fn is_hindered(system: &System, object: &Object) -> bool {
    object.status.named && (admits(system) == Admits::Hindered || object.status.conflict)
}

/// What the WaterDataApi says of keys.
fn admits(system: &System) -> Admits {
    if system.exists {
        system.admits
    } else {
        Admits::Hindered
    }
}

fn of_key(
    system: &System,
    number: usize,
    key: usize,
    object: &Object,
    former: &Records,
    mistake: Option<Mistake>,
) -> Vec<(u8, Record)> {
    let (status, spec) = (&object.status, &object.spec);
    let is_kept = match mistake {
        Some(Mistake::RebuildOfStatusesAlone) => status.admits != Admits::No,
        _ => admits(system) != Admits::No,
    };
    if object.phase != Phase::Declared || !status.named || !is_kept {
        return Vec::new();
    }
    let (written, retiring_in_secret) = match system.secret(number, key) {
        Secret::Own { hash, retiring, .. } if spec.brought.is_none() => (Some(hash), retiring),
        _ => (None, None),
    };
    let from_secret = retiring_in_secret.filter(|(hash, _)| Some(*hash) != written);
    let retires = |hash: u8| {
        let both = [status.previous, from_secret];
        let mut told = both
            .into_iter()
            .flatten()
            .filter(|(before, _)| *before == hash);
        // Of two the Secret's counts.
        told.next_back().map(|(_, at)| at)
    };
    let shown = status.current.filter(|_| status.shown);
    let is_ended = |hash: u8| {
        spec.brought.is_some_and(|brought| {
            let is_succeeded =
                shown != Some(brought) && shown != Some(hash) && status.all().has(brought);
            hash != brought && (!system.overlap || is_succeeded)
        })
    };
    let is_ended = |hash: u8| retires(hash).is_some() && is_ended(hash);
    let newer = written.filter(|hash| status.all().has(*hash) && Some(*hash) != shown);
    let is_published = |hash: &u8| match (spec.brought, newer) {
        (Some(brought), _) => {
            let works = Some(*hash) == shown || retires(*hash).is_some();
            *hash == brought || works && !is_ended(*hash)
        }
        (None, Some(current)) => *hash == current || retires(*hash).is_some(),
        (None, None) => true,
    };
    let declared = KeyRules {
        plan: (),
        suspended: spec.suspended,
        not_before: None,
        expires: None,
        retires: None,
    };
    let all = match mistake {
        Some(Mistake::RebuildOfSecretsAlone) => {
            written.into_iter().chain(shown).collect::<Hashes>()
        }
        _ => status.all(),
    };
    let record = |hash: u8| {
        let held = former.get(hash);
        let held = held.filter(|held| usize::from(held.owner) == key || spec.brought.is_some());
        let rules = match held {
            Some(held) if is_hindered(system, object) => {
                stricter(&held.rules(), &declared, &Default::default())
            }
            Some(held) => KeyRules {
                retires: held.retires.map(at),
                ..declared.clone()
            },
            None => declared.clone(),
        };
        let retires = match spec.brought {
            Some(brought) if brought == hash => None,
            _ => earlier(rules.retires, retires(hash).map(at)),
        };
        (hash, Record::of(key as u8, &KeyRules { retires, ..rules }))
    };
    all.iter().filter(is_published).map(record).collect()
}
