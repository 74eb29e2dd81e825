//! What to do with an ApiKey: pure rules over what a pass has seen.
//!
//! A restriction (a removed hash, a suspension, an earlier expiry, a deletion) is declared even while
//! something hinders the key; everything else waits until nothing does. A generated key is published
//! and acknowledged before its Secret is written. A key that a stopped leader may still write into the
//! Secret stays published until the Secret is written with another. A replaced key works for the
//! overlap.

mod brought;
mod generated;
mod goal;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use super::seen::{Admission, Directory, Material, Seen};
use super::step::{Declaration, Hindrance, Refusal, Release, Step, Verdict};
use brought::brought;
use generated::generated;
use goal::Goal;
pub use rules::{earlier, stricter};

/// The state of the ApiKey, and the next step. The verdict counts only when there is no step.
pub fn decide<H, P>(seen: &Seen<H, P>) -> (Verdict<H>, Option<Step<H, P>>)
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    if seen.is_deleting {
        return deletion(seen);
    }
    let Some(spec) = &seen.spec else {
        return undecodable(seen);
    };
    if !seen.has_finalizer || !seen.has_label {
        return (Verdict::Underway, Some(Step::Finalize));
    }
    let directory = match &seen.directory {
        Directory::Open(directory) => directory,
        Directory::Away => return (Verdict::Held(Hindrance::Directory), None),
        Directory::Unnamed | Directory::Lost { .. } => {
            return (Verdict::Refused(Refusal::NotAdmitted), None);
        }
    };
    if directory.is_gone {
        return (Verdict::Refused(Refusal::OwnerRevoked), None);
    }
    let goal = match spec.material {
        _ if seen.admission == Admission::Refused => Goal::withdrawn(directory),
        Material::Brought(hash) => brought(seen, spec, hash, directory),
        Material::Generated => generated(seen, spec, directory),
    };
    goal.next(directory)
}

/// What is published of an ApiKey that cannot be decoded stays, with the restrictions that can be read. It is
/// withdrawn if its namespace is not admitted any more.
fn undecodable<H, P>(seen: &Seen<H, P>) -> (Verdict<H>, Option<Step<H, P>>)
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    let step = match &seen.directory {
        Directory::Open(directory) if seen.admission == Admission::Refused => {
            Goal::withdrawn(directory).next(directory).1
        }
        Directory::Open(directory) => {
            Goal::kept(seen, directory).and_then(|goal| goal.next(directory).1)
        }
        _ => None,
    };
    (Verdict::Refused(Refusal::Undecodable), step)
}

/// Revokes every hash that spec, status, Secret and index name, before the finalizer is removed.
fn deletion<H: Copy + Ord, P>(seen: &Seen<H, P>) -> (Verdict<H>, Option<Step<H, P>>) {
    if !seen.has_finalizer {
        return (Verdict::Released, None);
    }
    let release = |release| (Verdict::Underway, Some(Step::Release(release)));
    match &seen.directory {
        Directory::Unnamed => release(Release::NeverDeclared),
        Directory::Away => (Verdict::Held(Hindrance::Directory), None),
        Directory::Lost { gates: true } => (Verdict::Held(Hindrance::GatesRemain), None),
        Directory::Lost { gates: false } => release(Release::Unreachable),
        Directory::Open(directory) if !directory.is_gone => {
            let declaration = Declaration {
                number: directory.number,
                records: BTreeMap::new(),
                withdrawn: BTreeSet::new(),
                revoked: seen
                    .named
                    .iter()
                    .chain(directory.held.keys())
                    .copied()
                    .collect(),
                reinstated: BTreeMap::new(),
                is_last: true,
            };
            (Verdict::Underway, Some(Step::Declare(declaration)))
        }
        Directory::Open(directory) if !directory.is_acknowledged => (Verdict::Awaiting, None),
        Directory::Open(_) => release(Release::Revoked),
    }
}

#[cfg(test)]
mod restriction_tests;
#[cfg(test)]
mod rotation_tests;
#[cfg(test)]
mod tests;
