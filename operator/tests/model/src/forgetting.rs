//! One state for all that differ in what nothing depends on any more.

use crate::cluster::{Key, Phase};
use crate::leader::{Claim, Hand, Mark, Memory, Write};
use crate::mistake::Mistake;
use crate::records::{Hashes, KEYS, Records, SLOTS};
use crate::store::Store;
use crate::system::System;

impl System {
    /// Drops what nothing that can still happen depends on.
    pub fn forget(&mut self, mistake: Option<Mistake>) {
        self.forget_data();
        self.forget_hands(mistake);
        self.forget_terms();
        self.forget_notes();
        self.forget_positions();
        (0..KEYS).for_each(|key| self.forget_gone(key));
    }

    /// What stands for no term in Redis, or in the data that can come back, will never be equal to one
    /// again. Caches that follow their watches show what a list would.
    fn forget_terms(&mut self) {
        let metas = [self.store.meta, self.saved.and_then(|saved| saved.meta)];
        let is_known = |term| metas.iter().flatten().any(|meta| meta.term == term);
        let follows = self.left.lags == 0;
        for leader in &mut self.leaders {
            if !is_known(leader.term) {
                leader.term = 0;
            }
            leader.has_listed |= leader.leading && leader.cache.is_none() && follows;
        }
    }

    /// Acknowledgements of what is not there any more.
    fn forget_notes(&mut self) {
        let generation = self.generation();
        let store = self.store;
        for leader in &mut self.leaders {
            for (key, memory) in leader.memory.iter_mut().enumerate() {
                if self.keys[key].object.phase == Phase::Gone {
                    *memory = Memory::default();
                }
                let is_present = |mark: &Mark| {
                    (mark.generation, mark.number) == (generation, store.numbers[key])
                        && mark.is_last == store.gone[key]
                };
                memory.note = memory.note.filter(|note| is_present(&note.mark));
                if let Some(note) = memory.note.as_mut().filter(|note| note.in_force) {
                    note.seq = 0;
                }
            }
        }
    }

    /// A position is compared with the last write's and with those that are waited for: of all between
    /// two of these one stands for each. One of another generation equals none again.
    fn forget_positions(&mut self) {
        let generation = self.generation();
        let memories = self.leaders.iter().flat_map(|leader| &leader.memory);
        let notes = memories.filter_map(|memory| memory.note);
        let awaited = notes.filter(|note| !note.in_force).map(|note| note.seq);
        let last = self.store.meta.map(|meta| meta.seq);
        let compared = awaited.chain(last).fold(1u64, |all, seq| all | 1 << seq);
        self.each_applied(|applied| {
            if applied.generation == generation {
                let reached = compared & ((2 << applied.seq) - 1);
                applied.seq = reached.ilog2() as u8;
            } else {
                *applied = Default::default();
            }
        });
    }

    /// Tombstones of a key that nobody can declare any more.
    fn forget_gone(&mut self, key: usize) {
        if self.keys[key].object.phase != Phase::Gone || self.may_return(key) {
            return;
        }
        let its: Hashes = (0..SLOTS).map(|slot| (key * SLOTS + slot) as u8).collect();
        for store in self.each_store() {
            store.revoked = store.revoked.without(its);
            store.revoked_of[key] = Hashes::default();
            (store.gone[key], store.numbers[key]) = (false, 0);
        }
    }

    /// Whether somebody may still declare a key, or write it in a rebuild.
    fn may_return(&self, key: usize) -> bool {
        let is_rebuilt = |claim: &Claim| match claim {
            Claim::Rebuilding(contents) => contents.of(key).next().is_some(),
            _ => false,
        };
        let is_its = |hand: &Option<Hand>| hand.is_some_and(|hand| usize::from(hand.key) == key);
        let mut leaders = self.leaders.iter();
        is_its(&self.delayed)
            || leaders.any(|leader| {
                is_its(&leader.hand) || leader.cache.is_some() || is_rebuilt(&leader.claim)
            })
    }

    /// Data that came back, or can, wait for a rebuild, which writes the records anew under other
    /// numbers: of these, terms and tombstones alone count, and what a rebuild may carry. Until a rebuild
    /// ends nobody reads its records, and a gate that is silent reads them again before it serves.
    fn forget_data(&mut self) {
        let server = Some(self.server);
        let came_back = |store: &&mut Store| store.meta.is_some_and(|meta| meta.server != server);
        let here = Some(&mut self.store).filter(came_back);
        for store in self.saved.iter_mut().chain(here) {
            if let Some(meta) = &mut store.meta {
                (meta.generation, meta.seq, meta.complete) = (0, 0, false);
                // Another server is verified after each loss.
                meta.server = None;
            }
            store.numbers = [0; KEYS];
            if !self.is_carried {
                store.records = Records::default();
            }
        }
        if self.store.meta.is_some_and(|meta| !meta.complete) {
            self.store.numbers = [0; KEYS];
            if !self.is_carried {
                self.store.records = Records::default();
            }
        }
        let silent = self.gates.iter_mut().filter(|gate| gate.silent);
        for copy in silent.filter_map(|gate| gate.copy.as_mut()) {
            copy.records = Records::default();
        }
    }

    /// Writes that will be refused whatever comes.
    fn forget_hands(&mut self, mistake: Option<Mistake>) {
        let (keys, store) = (self.keys, self.store);
        let metas = [store.meta, self.saved.and_then(|saved| saved.meta)];
        let is_known = |term| metas.iter().flatten().any(|meta| meta.term == term);
        let is_vain = |hand: &Hand, is_answered: bool| {
            let key: &Key = &keys[usize::from(hand.key)];
            let is_gone = key.object.phase == Phase::Gone;
            let is_any_version = mistake == Some(Mistake::ReplaceAnyVersion);
            match hand.write {
                // A rebuild gives numbers that there never were.
                Write::Declare(wanted) => {
                    let number = store.numbers[usize::from(hand.key)];
                    let is_outdated = wanted.number != 0 && wanted.number != number;
                    is_outdated || !is_known(wanted.term)
                }
                Write::Replace(..) if !is_answered && !is_any_version => {
                    is_gone || !hand.is_secret_as_read
                }
                Write::Reveal(..) | Write::Replace(..) => is_gone,
                _ => is_gone || !hand.is_object_as_read,
            }
        };
        for leader in &mut self.leaders {
            let is_answered = leader.leading;
            leader.hand = leader.hand.filter(|hand| !is_vain(hand, is_answered));
        }
        self.delayed = self.delayed.filter(|hand| !is_vain(hand, false));
    }

    fn generation(&self) -> u8 {
        self.store.meta.map_or(0, |meta| meta.generation)
    }
}
