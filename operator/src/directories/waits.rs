//! What a leader remembers of its writes until every gate has acknowledged them.
//!
//! A pass never waits: it writes, leaves a note here and comes back when [`Waits::judge`] says that
//! its owner's change has been acknowledged. The notes also tell a rebuild which hashes were
//! published, or taken away, and do not show in any status yet.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use water_domain::KeyHash;
use water_keystore::{Applied, Change, Contents, Entry, Owner};

use super::gates::Gates;

/// How a change stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// No gate can act any more on what was there before.
    InForce,
    /// These pods can; empty while nobody has looked yet.
    Awaiting {
        /// Their names.
        pods: BTreeSet<String>,
        /// When the change was first written.
        since: Instant,
    },
}

/// Changes that are not known to be in force, by the uid of their ApiKey.
#[derive(Debug, Default)]
pub struct Waits {
    notes: Mutex<HashMap<Box<str>, Note>>,
    /// Told when somebody begins to wait.
    begun: Notify,
}

#[derive(Debug)]
struct Note {
    changes: Vec<Change>,
    /// `None` until Redis has confirmed the write.
    applied: Option<Applied>,
    standing: Standing,
}

impl Waits {
    /// Notes what is about to be written for `owner`, so that a rebuild which comes first carries it.
    pub fn announce(&self, owner: &Owner, changes: &[Change], now: Instant) {
        let mut notes = self.notes();
        if notes
            .get(&owner.uid)
            .is_none_or(|note| note.changes != changes)
        {
            let note = Note {
                changes: changes.to_vec(),
                applied: None,
                standing: awaiting(now),
            };
            notes.insert(owner.uid.clone(), note);
        }
    }

    /// The announced changes were written, or stand since before, and answers how they stand now. An
    /// earlier confirmation of them counts, but not across a rebuild, which may have undone them.
    pub fn confirm(&self, owner: &Owner, applied: Applied, now: Instant) -> Standing {
        let mut notes = self.notes();
        let Some(note) = notes.get_mut(&owner.uid) else {
            return awaiting(now);
        };
        if note
            .applied
            .is_none_or(|earlier| earlier.generation != applied.generation)
        {
            note.applied = Some(applied);
            if note.standing == Standing::InForce {
                note.standing = awaiting(now);
            }
            self.begun.notify_one();
        }
        note.standing.clone()
    }

    /// Nothing is waited for on behalf of this owner.
    pub fn forget(&self, owner: &Owner) {
        self.notes().remove(&owner.uid);
    }

    /// Returns when somebody waits.
    pub async fn begun(&self) {
        loop {
            let begun = self.begun.notified();
            if self.is_anybody_waiting() {
                return;
            }
            begun.await;
        }
    }

    /// Returns when another begins to wait.
    pub async fn another(&self) {
        self.begun.notified().await;
    }

    /// Whether a confirmed change is not known to be in force.
    pub fn is_anybody_waiting(&self) -> bool {
        self.notes().values().any(Note::is_waiting)
    }

    /// The confirmed changes that are waited for: what the next look will judge.
    pub fn pending(&self) -> Vec<(Box<str>, Applied)> {
        let notes = self.notes();
        let waiting = notes.iter().filter(|(_, note)| note.is_waiting());
        waiting
            .filter_map(|(uid, note)| Some((uid.clone(), note.applied?)))
            .collect()
    }

    /// Judges what was pending before the gates were looked at, and answers whose changes are in
    /// force by now.
    pub fn judge(
        &self,
        pending: Vec<(Box<str>, Applied)>,
        gates: &Gates,
        now: Instant,
    ) -> Vec<Owner> {
        let mut notes = self.notes();
        let mut in_force = Vec::new();
        for (uid, applied) in pending {
            let Some(note) = notes
                .get_mut(&uid)
                .filter(|note| note.applied == Some(applied))
            else {
                continue;
            };
            let awaited = gates.awaited(&applied, now);
            if awaited.is_empty() {
                note.standing = Standing::InForce;
                in_force.extend(note.changes.first().map(|change| change.owner().clone()));
            } else if let Standing::Awaiting { pods, .. } = &mut note.standing {
                *pods = awaited;
            }
        }
        in_force
    }

    /// `declared` with what was written for those who wait, and without what was taken away.
    pub fn carry_into(&self, mut declared: Contents) -> Contents {
        let notes = self.notes();
        let changes = || notes.values().flat_map(|note| &note.changes);
        let gone: HashSet<KeyHash> = changes()
            .filter_map(|change| match change {
                Change::Remove { hash, .. } => Some(*hash),
                Change::Put { .. } => None,
            })
            .collect();
        let put = changes().filter_map(|change| match change {
            Change::Put {
                hash,
                record,
                owner,
                ..
            } => Some(Entry {
                hash: *hash,
                record: record.clone(),
                owner: owner.clone(),
            }),
            Change::Remove { .. } => None,
        });
        // Of two entries with one hash the first counts.
        let known = std::mem::take(&mut declared.entries).into_iter();
        declared.entries = put
            .chain(known.filter(|entry| !gone.contains(&entry.hash)))
            .collect();
        declared
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<Box<str>, Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Note {
    fn is_waiting(&self) -> bool {
        self.applied.is_some() && self.standing != Standing::InForce
    }
}

fn awaiting(since: Instant) -> Standing {
    Standing::Awaiting {
        pods: BTreeSet::new(),
        since,
    }
}

#[cfg(test)]
mod tests;
