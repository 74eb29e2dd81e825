//! Facts that a pass of a leader sees, as `keys::gather` reads them: `Facts` of small ids.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use water_operator_core::key::facts::{
    Admission, Content, Directory, DirectoryContent, Facts, Issue, KeyRules, Material,
    Restrictions, Rotation, Secret as Found, Spec,
};

use crate::cluster::{Admits, Object, Phase, Secret, Status};
use crate::gate::Pod;
use crate::leader::{Claim, Mark, Note};
use crate::mistake::Mistake;
use crate::records::{Hashes, TICK, at};
use crate::system::System;
use crate::write::begin;

/// Returns the object as a pass takes it: a status that names a WaterDataApi which does not exist names the one again
/// whose directory holds the key. `None`: that cannot be read, and a deletion waits for it.
pub fn confirmed(
    system: &System,
    number: usize,
    key: usize,
    object: Object,
    mistake: Option<Mistake>,
) -> Option<Object> {
    if !object.status.misnamed || mistake == Some(Mistake::NamedApiBelieved) {
        return Some(object);
    }
    let leader = &system.leaders[number];
    let open = leader.open.filter(|open| {
        let meta = system.store(*open).meta;
        leader.claim == Claim::Open
            && system.is_whole(*open)
            && meta.is_some_and(|meta| meta.term == leader.term)
    });
    let Some(open) = open else {
        return (object.phase != Phase::Deleting).then_some(object);
    };
    let status = Status {
        misnamed: !system.store(open).knows(key),
        ..object.status
    };
    Some(Object { status, ..object })
}

/// Reads the facts about a confirmed object; `None`: the directory has to be opened, claimed or rebuilt first.
pub fn seen(
    system: &mut System,
    number: usize,
    key: usize,
    object: &Object,
    mistake: Option<Mistake>,
) -> Option<Facts<u8, ()>> {
    let is_deleting = object.phase == Phase::Deleting;
    let found = found(system, number, key);
    let (in_secret, retiring) = match found {
        Secret::Own { hash, retiring, .. } => (Some(hash), retiring),
        Secret::Missing | Secret::Foreign => (None, None),
    };
    let wanted = object.spec.revision;
    let made = system.leaders[number].memory[key].made;
    let made = made.filter(|made| is_deleting || system.keys[key].revision_of(*made) >= wanted);
    let status = object.status;
    let admission = admission(system, is_deleting || status.misnamed);
    let content = |hash, is_edited| match (is_edited, mistake) {
        (true, None) if admission == Admission::Admitted => Found::Edited,
        (true, Some(other)) if other != Mistake::SecretBelieved => Found::Edited,
        _ => Found::Own(Content {
            hash,
            retiring: retiring.map(|(before, time)| (before, at(time))),
            is_as_declared: true,
        }),
    };
    let mut named = status.all();
    let others = [object.spec.brought, in_secret, made];
    let others = others.into_iter().flatten();
    named = named.and(others.chain(retiring.map(|(hash, _)| hash)).collect());
    let is_prepared = object.finalizer;
    let directory = if is_prepared {
        directory(system, number, key, object, found, named, mistake)?
    } else {
        Directory::Unnamed
    };
    let mut ledger = status.ledger();
    let issue = status.current.map(|current| Issue {
        revision: u32::from(system.keys[key].revision_of(current)),
        time: at(0),
    });
    let is_at_once = match mistake {
        Some(Mistake::BroughtUnannounced) => true,
        Some(Mistake::DeclaredInPart) => status.shown,
        _ => false,
    };
    if is_at_once {
        ledger.candidates.extend(object.spec.brought);
    }
    Some(Facts {
        is_deleting,
        has_finalizer: object.finalizer,
        is_terminating: false,
        spec: Some(declared(object, system.overlap)),
        // Read only of an object that cannot be decoded, which is not modelled.
        restrictions: Restrictions::default(),
        named: set(named),
        ledger,
        issue,
        reissues: Vec::new(),
        admission,
        wider_plans: BTreeSet::new(),
        secret: match found {
            _ if object.spec.brought.is_some() => Found::Missing,
            Secret::Missing => Found::Missing,
            Secret::Own {
                hash, is_edited, ..
            } => content(hash, is_edited),
            Secret::Foreign => Found::Foreign,
        },
        made,
        is_id_taken: false,
        directory,
    })
}

/// The Secret as the watch shows it, or as the API server is asked for it.
pub fn found(system: &System, number: usize, key: usize) -> Secret {
    let memory = &system.leaders[number].memory[key];
    let known = system.secret(number, key);
    let is_asked = memory.is_overtaken || (memory.made.is_none() && known == Secret::Missing);
    if is_asked {
        return system.keys[key].secret;
    }
    known
}

fn admission(system: &System, is_hindered: bool) -> Admission {
    match system.admits {
        _ if is_hindered || !system.exists => Admission::Hindered,
        Admits::Yes => Admission::Admitted,
        Admits::Hindered => Admission::Hindered,
        Admits::No => Admission::Refused,
    }
}

/// Declaration of the object.
pub fn declared(object: &Object, overlap: bool) -> Spec<u8, ()> {
    Spec {
        rules: KeyRules {
            plan: (),
            suspended: object.spec.suspended,
            not_before: None,
            expires: None,
            retires: None,
        },
        material: match object.spec.brought {
            Some(hash) => Material::Brought(hash),
            None => Material::Generated,
        },
        rotation: Rotation {
            revision: u32::from(object.spec.revision),
            period: None,
            overlap: if overlap { TICK } else { Duration::ZERO },
        },
        reinstate: None,
    }
}

fn directory(
    system: &mut System,
    number: usize,
    key: usize,
    object: &Object,
    found: Secret,
    named: Hashes,
    mistake: Option<Mistake>,
) -> Option<Directory<u8, ()>> {
    let is_admitted = system.exists && system.admits == Admits::Yes;
    if !object.status.named && (object.phase == Phase::Deleting || !is_admitted) {
        return Some(Directory::Unnamed);
    }
    if object.status.misnamed {
        return Some(Directory::Lost { gates: false });
    }
    let leader = &system.leaders[number];
    if leader.claim != Claim::Open {
        let gates = system.gates.iter().any(|gate| gate.pod != Pod::Absent);
        return (!system.exists).then_some(Directory::Lost { gates });
    }
    let open = leader.open?;
    let meta = system.store(open).meta?;
    let is_usable = system.is_whole(open) || mistake == Some(Mistake::WriteToUnverified);
    let is_ours = meta.term == leader.term
        || matches!(
            mistake,
            Some(Mistake::ClaimWithoutFence | Mistake::NoClaimAfterRefusal)
        );
    if !is_usable || !is_ours {
        return None;
    }
    let store = system.store(open);
    let status = &object.status;
    let is_known = |hash: u8| {
        mistake != Some(Mistake::DeclaredInPart)
            || status
                .all()
                .and(object.spec.brought.into_iter().collect())
                .has(hash)
    };
    let held: BTreeMap<u8, Option<KeyRules<()>>> = store
        .records
        .owned_by(key)
        .filter(|(hash, _)| is_known(*hash))
        .map(|(hash, record)| (hash, Some(record.rules())))
        .collect();
    let asked = named.and(held.keys().copied().collect());
    let (is_gone, stored) = (store.gone[key], store.numbers[key]);
    let barred = asked.iter().filter(|hash| store.bars(key, *hash));
    let barred = barred.map(|hash| (hash, at(0))).collect();
    let is_taken = |hash: &u8| store.is_taken(key, *hash, mistake);
    let taken = named.iter().filter(is_taken).collect();
    let mark = Mark {
        generation: meta.generation,
        number: stored,
        is_last: is_gone,
    };
    let is_nothing = held.is_empty() && !is_gone;
    let is_told = is_told(object, found, mistake);
    let memory = &mut system.leaders[number].memory[key];
    let is_same = |known: Mark| match mistake {
        Some(Mistake::AcknowledgementOfAnyGeneration | Mistake::JudgeUnverified) => {
            known == mark || known.is_last == is_gone && known.generation != mark.generation
        }
        _ => known == mark,
    };
    let is_acknowledged = match memory.note.filter(|note| is_same(note.mark)) {
        Some(note) => note.in_force,
        None if is_nothing || is_told => true,
        None => {
            let seq = meta.seq;
            let in_force = false;
            begin(
                memory,
                Note {
                    mark,
                    seq,
                    in_force,
                },
            );
            false
        }
    };
    let is_believed = match mistake {
        Some(Mistake::Unacknowledged) => !object.status.shown,
        Some(Mistake::ReleaseUnacknowledged) => is_gone,
        _ => false,
    };
    Some(Directory::Open(DirectoryContent {
        number: u64::from(stored),
        held,
        barred,
        taken,
        is_gone,
        is_acknowledged: is_acknowledged || is_believed,
        now: at(system.now),
    }))
}

/// Whether the status already says of this spec that its key is in force at every gate.
fn is_told(object: &Object, found: Secret, mistake: Option<Mistake>) -> bool {
    let status = &object.status;
    let key = match (object.spec.brought, found) {
        (Some(hash), _) => Some(hash),
        (None, Secret::Own { hash, .. }) => Some(hash),
        (None, _) => None,
    };
    let is_present = status.told || mistake == Some(Mistake::ToldOfAnySpec) && status.shown;
    key.is_some()
        && object.phase == Phase::Declared
        && is_present
        && status.current == key
        && status.shown
        && status.all() == status.revealed()
}

fn set(hashes: Hashes) -> BTreeSet<u8> {
    hashes.iter().collect()
}
