//! What to do with an ApiKey: pure rules over what a pass has seen.
//!
//! Restrictions come first: a removed hash, a suspension, an earlier end or a deletion is declared
//! whatever else hinders. What widens waits until nothing does. A generated key is published and
//! acknowledged before its Secret is written, and no key that may yet be revealed is taken away
//! before a later write of the Secret. A key that is replaced works on for the overlap.

mod brought;
mod generated;
mod goal;
mod terms;

use std::collections::{BTreeMap, BTreeSet};

use super::seen::{Directory, Material, Seen};
use super::step::{Declaration, Hindrance, Refusal, Release, Step, Verdict};
use brought::brought;
use generated::generated;
pub use terms::{earlier, stricter};

/// How the ApiKey stands, and the one thing to do about it. With a step the verdict is provisional.
pub fn decide<H, P>(seen: &Seen<H, P>) -> (Verdict<H>, Option<Step<H, P>>)
where
    H: Copy + Ord,
    P: Clone + Ord,
{
    if seen.is_deleting {
        return deletion(seen);
    }
    let Some(spec) = &seen.spec else {
        return (Verdict::Refused(Refusal::Undecodable), None);
    };
    if !seen.has_finalizer || !seen.has_label {
        return (Verdict::Underway, Some(Step::Finalize));
    }
    let sight = match &seen.directory {
        Directory::Open(sight) => sight,
        Directory::Away => return (Verdict::Held(Hindrance::Directory), None),
        Directory::Unnamed | Directory::Lost { .. } => {
            return (Verdict::Refused(Refusal::NotAdmitted), None);
        }
    };
    if sight.is_gone {
        return (Verdict::Refused(Refusal::OwnerRevoked), None);
    }
    let goal = match spec.material {
        Material::Brought(hash) => brought(seen, spec, hash, sight),
        Material::Generated => generated(seen, spec, sight),
    };
    goal.next(sight)
}

/// Revoke before release: whatever spec, status, Secret and index name.
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
        Directory::Open(sight) if !sight.is_gone => {
            let declaration = Declaration {
                number: sight.number,
                records: BTreeMap::new(),
                withdrawn: BTreeSet::new(),
                revoked: seen
                    .named
                    .iter()
                    .chain(sight.held.keys())
                    .copied()
                    .collect(),
                reinstated: BTreeMap::new(),
                is_last: true,
            };
            (Verdict::Underway, Some(Step::Declare(declaration)))
        }
        Directory::Open(sight) if !sight.is_acknowledged => (Verdict::Awaiting, None),
        Directory::Open(_) => release(Release::Revoked),
    }
}

#[cfg(test)]
mod rotation_tests;
#[cfg(test)]
mod tests;
