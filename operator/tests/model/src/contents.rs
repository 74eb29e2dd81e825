//! Content that a rebuild writes: the operator's own answer for each ApiKey. `keys::contents` reads from Kubernetes'
//! objects which of them are asked, and which gets a hash that several name, so that the model follows it with its own
//! objects.

use water_operator_core::key::facts::KeyRules;
use water_operator_core::key::ledger::Ledger;
use water_operator_core::key::{Evidence, published};

use crate::cluster::{Admits, Object, Phase, Secret};
use crate::mistake::Mistake;
use crate::records::{KEYS, Record, Records, at};
use crate::seen::declared;
use crate::system::System;

/// Every key to be published, as leader `number` knows them.
pub fn contents(system: &System, number: usize, mistake: Option<Mistake>) -> Records {
    let objects: [Object; KEYS] = std::array::from_fn(|key| system.object(number, key));
    let is_hindered = |object: &Object| is_hindered(system, object);
    let former = if objects.iter().any(is_hindered) {
        system.former(number)
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

/// Admission of keys by the WaterDataApi.
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
    let (written, retiring) = match system.secret(number, key) {
        Secret::Own { hash, retiring, .. } if spec.brought.is_none() => (Some(hash), retiring),
        _ => (None, None),
    };
    let mut ledger = status.ledger();
    if mistake == Some(Mistake::RebuildOfSecretsAlone) {
        ledger = Ledger {
            current: ledger.shown(),
            candidates: written.into_iter().collect(),
            retiring: None,
            ..ledger
        };
    }
    if mistake == Some(Mistake::OldSecretBelieved)
        && let Some(before) = written.filter(|hash| ledger.retires(hash).is_some())
    {
        ledger = Ledger::confirm(before, None);
    }
    let all = ledger.all().into_iter();
    let former = all.filter_map(|hash| {
        let held = former.get(hash)?;
        let is_own = usize::from(held.owner) == key || spec.brought.is_some();
        is_own.then(|| (hash, held.rules()))
    });
    let published = published(&Evidence {
        spec: &declared(object, system.overlap),
        ledger: &ledger,
        in_secret: written,
        retiring: retiring.map(|(hash, retires)| (hash, at(retires))),
        former: &former.collect(),
        is_hindered: is_hindered(system, object),
    });
    let is_wide = mistake == Some(Mistake::RebuildWidens);
    let record = |(hash, rules): (u8, KeyRules<()>)| {
        let retires = rules.retires.filter(|_| !is_wide);
        (hash, Record::new(key as u8, &KeyRules { retires, ..rules }))
    };
    published.into_iter().map(record).collect()
}
