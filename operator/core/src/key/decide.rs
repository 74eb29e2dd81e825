//! Decisions about an ApiKey: pure rules over the facts that a pass has read.
//!
//! A restriction (a removed hash, a suspension, an earlier expiry, a deletion) is declared even while
//! something hinders the key, and before anything is written to Kubernetes; everything else waits until
//! nothing does. A generated key is published and acknowledged before its Secret is written. A key that a
//! stopped leader may still write into the Secret, which the directory holds for that reason, stays published
//! until the Secret is written with another. What only the status names is not published: others write that, too.
//! A replaced key works for the overlap.

mod brought;
mod generated;
mod goal;
mod published;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use water_domain::Timestamp;

use super::facts::{Admission, Directory, DirectoryContent, Facts, Material, Spec};
use super::step::Decision::{self, Do, Report};
use super::step::{Declaration, Hindrance, Refusal, Release, Step, Verdict};
use brought::brought;
use generated::generated;
use goal::{After, Goal};
pub use published::{Evidence, published};

/// Decides on the next step, or on the state to report.
pub fn decide<H, P>(facts: &Facts<H, P>) -> Decision<H, P>
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    if facts.is_deleting {
        return deletion(facts);
    }
    match &facts.spec {
        Some(spec) => living(facts, spec),
        None => undecodable(facts),
    }
}

fn living<H, P>(facts: &Facts<H, P>, spec: &Spec<H, P>) -> Decision<H, P>
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    if !facts.has_finalizer {
        return Do(restriction(facts).unwrap_or(Step::Finalize));
    }
    let directory = match &facts.directory {
        Directory::Open(directory) => directory,
        Directory::Away => return Report(Verdict::Held(Hindrance::Directory)),
        Directory::Unnamed | Directory::Lost { .. } => {
            return Report(Verdict::Refused(Refusal::NotAdmitted));
        }
    };
    if directory.is_gone {
        return Report(Verdict::Refused(Refusal::OwnerRevoked));
    }
    let goal = match spec.material {
        _ if facts.admission == Admission::Refused => Goal::withdrawn(directory),
        Material::Brought(hash) => brought(facts, spec, hash, directory),
        Material::Generated => generated(facts, spec, directory),
    };
    match goal.then {
        After::Nothing(step) => Do(restriction(facts).unwrap_or(step)),
        _ => goal.next(directory),
    }
}

/// The declaration that restricts the published keys as declared, and changes nothing else. It comes before every
/// write to Kubernetes, which may be refused, and needs neither Secret nor admission, which may be unreadable.
fn restriction<H, P>(facts: &Facts<H, P>) -> Option<Step<H, P>>
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    restricted(facts, |_, _| None)
}

/// The same where Kubernetes cannot be read or written: besides, a hash that was replaced ends, though no status names
/// that time.
pub fn unwritten_restriction<H, P>(facts: &Facts<H, P>) -> Option<Step<H, P>>
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    restricted(facts, |directory, hash| Goal::end(facts, directory, hash))
}

fn restricted<H, P>(
    facts: &Facts<H, P>,
    end: impl Fn(&DirectoryContent<H, P>, &H) -> Option<Timestamp>,
) -> Option<Step<H, P>>
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    let Some(spec) = &facts.spec else {
        return undecodable(facts).step();
    };
    let Directory::Open(directory) = &facts.directory else {
        return None;
    };
    let goal = match facts.admission {
        Admission::Refused => Goal::withdrawn(directory),
        _ => {
            let refusal = Refusal::NotAdmitted;
            Goal::restricted(facts, spec, directory, refusal, |hash, _| {
                end(directory, hash)
            })
        }
    };
    goal.next(directory).step()
}

/// Keys that are published of an ApiKey that cannot be decoded stay, with the restrictions that can be read. It is
/// withdrawn if its namespace is not admitted any more.
fn undecodable<H, P>(facts: &Facts<H, P>) -> Decision<H, P>
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    let goal = match &facts.directory {
        Directory::Open(directory) if facts.admission == Admission::Refused => {
            Some((Goal::withdrawn(directory), directory))
        }
        Directory::Open(directory) => Goal::kept(facts, directory).zip(Some(directory)),
        _ => None,
    };
    let step = goal.and_then(|(goal, directory)| goal.next(directory).step());
    step.map_or(Report(Verdict::Refused(Refusal::Undecodable)), Do)
}

/// Revokes every hash that spec, status, Secret and index name, before the finalizer is removed.
fn deletion<H: Copy + Ord, P>(facts: &Facts<H, P>) -> Decision<H, P> {
    // Without it nothing keeps the ApiKey but others' finalizers; what is published of it ends all the same.
    let is_published =
        |directory: &DirectoryContent<H, P>| !directory.is_gone && !directory.held.is_empty();
    let is_left = matches!(&facts.directory, Directory::Open(directory) if is_published(directory));
    if !facts.has_finalizer && !is_left {
        return Report(Verdict::Released);
    }
    let release = |release| Do(Step::Release(release));
    match &facts.directory {
        Directory::Unnamed => release(Release::NeverDeclared),
        Directory::Away => Report(Verdict::Held(Hindrance::Directory)),
        Directory::Lost { gates: true } => Report(Verdict::Held(Hindrance::GatesRemain)),
        Directory::Lost { gates: false } => release(Release::Unreachable),
        Directory::Open(directory) if !directory.is_gone => {
            let declaration = Declaration {
                number: directory.number,
                records: BTreeMap::new(),
                withdrawn: BTreeSet::new(),
                revoked: facts
                    .named
                    .iter()
                    .chain(directory.held.keys())
                    .copied()
                    .collect(),
                reinstated: BTreeMap::new(),
                is_last: true,
            };
            Do(Step::Declare(declaration))
        }
        Directory::Open(directory) if !directory.is_acknowledged => Report(Verdict::Awaiting),
        Directory::Open(_) => release(Release::Revoked),
    }
}

#[cfg(test)]
mod agreement_tests;
#[cfg(test)]
mod restriction_tests;
#[cfg(test)]
mod rotation_tests;
#[cfg(test)]
mod tests;
