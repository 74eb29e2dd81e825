//! Merges states that differ only in what nothing depends on any more.

use water_operator_core::store_names::StoreNames;

use crate::cluster::{Key, Phase};
use crate::gate::{Gate, Pod};
use crate::leader::{Claim, Hand, Leader, Mark, Memory, Write};
use crate::mistake::Mistake;
use crate::records::{Hashes, KEYS, Records, SLOTS};
use crate::store::{Meta, Store};
use crate::system::{STORES, System};

impl System {
    /// Drops what nothing that can still happen depends on.
    pub fn forget(&mut self, mistake: Option<Mistake>) {
        self.forget_data();
        self.forget_left(mistake);
        self.forget_hands(mistake);
        self.forget_terms();
        self.forget_notes();
        self.forget_positions();
        (0..KEYS).for_each(|key| self.forget_gone(key));
    }

    /// Merges terms that no term in Redis, or in the data that can come back, will ever be equal to again. Caches that
    /// follow their watches show what a list would.
    fn forget_terms(&mut self) {
        let metas = self.metas();
        let is_known = |term| metas.iter().flatten().any(|meta| meta.term == term);
        let follows = self.left.lags == 0;
        for leader in &mut self.leaders {
            if !is_known(leader.term) {
                leader.term = 0;
            }
            leader.has_listed |= leader.leading && leader.cache.is_none() && follows;
        }
    }

    /// Forgets acknowledgements of what is not there any more.
    fn forget_notes(&mut self) {
        let stores = self.stores;
        for leader in &mut self.leaders {
            let store = stores[usize::from(leader.open.unwrap_or_default())];
            let generation = store.generation();
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

    /// Merges positions. Each is compared with the last write's and with those that are waited for: of all between two
    /// of these one represents each. One of another generation equals none again.
    fn forget_positions(&mut self) {
        let generations = self.stores.map(|store| store.generation());
        let memories = self.leaders.iter().flat_map(|leader| &leader.memory);
        let notes = memories.filter_map(|memory| memory.note);
        let awaited = notes.filter(|note| !note.in_force).map(|note| note.seq);
        let last = self.stores.iter().filter_map(|store| store.meta);
        let last = last.map(|meta| meta.seq);
        let compared = awaited.chain(last).fold(1u64, |all, seq| all | 1 << seq);
        for gate in &mut self.gates {
            let generation = generations[usize::from(gate.store)];
            gate.each_applied(|applied| {
                if applied.generation == generation {
                    let reached = compared & ((2 << applied.seq) - 1);
                    applied.seq = reached.ilog2() as u8;
                } else {
                    *applied = Default::default();
                }
            });
        }
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
            Claim::Rebuilding(contents) => contents.owned_by(key).next().is_some(),
            _ => false,
        };
        let is_its = |hand: &Option<Hand>| hand.is_some_and(|hand| usize::from(hand.key) == key);
        let mut leaders = self.leaders.iter();
        is_its(&self.delayed)
            || leaders.any(|leader| {
                is_its(&leader.hand) || leader.cache.is_some() || is_rebuilt(&leader.claim)
            })
    }

    /// Forgets data that came back, or can, and wait for a rebuild, which writes the records again under other numbers:
    /// of these, terms and tombstones alone count, and what a rebuild may carry. Until a rebuild ends nobody reads its
    /// records, and a gate that is silent reads them again before it serves.
    fn forget_data(&mut self) {
        let server = Some(self.server);
        let came_back = |store: &&mut Store| store.meta.is_some_and(|meta| meta.server != server);
        let here = Some(&mut self.stores[0]).filter(came_back);
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
        for store in &mut self.stores {
            if store.meta.is_some_and(|meta| !meta.complete) {
                store.numbers = [0; KEYS];
                if !self.is_carried {
                    store.records = Records::default();
                }
            }
        }
        let silent = self.gates.iter_mut().filter(|gate| gate.silent);
        for copy in silent.filter_map(|gate| gate.copy.as_mut()) {
            copy.records = Records::default();
        }
    }

    /// Drops all but terms and tombstones of a Redis that nobody takes for whole and no gate reads: it is rebuilt
    /// before anybody does.
    fn forget_left(&mut self, mistake: Option<Mistake>) {
        if mistake == Some(Mistake::NamedBeforeCompletion) {
            return;
        }
        for (at, store) in (0..).zip(&mut self.stores) {
            let is_whole = |names: &StoreNames<u8>| names.whole == Some(at);
            let is_used = |leader: &Leader| {
                leader.open == Some(at) && !leader.is_behind
                    || leader.cache.is_some_and(|cache| is_whole(&cache.names))
                    || leader.naming.is_some_and(|naming| {
                        naming.opens == Some((at, false))
                            || naming.names.is_some_and(|names| is_whole(&names))
                    })
            };
            let is_read = |gate: &Gate| gate.pod != Pod::Absent && gate.store == at;
            let is_left = !is_whole(&self.names)
                && !self.leaders.iter().any(is_used)
                && !self.gates.iter().any(is_read);
            if let Some(meta) = store.meta.as_mut().filter(|meta| is_left && meta.complete) {
                (meta.generation, meta.seq, meta.complete) = (0, 0, false);
                store.numbers = [0; KEYS];
                store.records = Records::default();
            }
        }
    }

    /// Writes that will be refused whatever comes.
    fn forget_hands(&mut self, mistake: Option<Mistake>) {
        let (keys, stores, metas) = (self.keys, self.stores, self.metas());
        let is_believed = mistake == Some(Mistake::OldStatusBelieved);
        let is_known = |term| metas.iter().flatten().any(|meta| meta.term == term);
        let is_vain = |hand: &Hand, is_answered: bool| {
            let key: &Key = &keys[usize::from(hand.key)];
            let is_gone = key.object.phase == Phase::Gone;
            let is_any_version = mistake == Some(Mistake::ReplaceAnyVersion);
            match hand.write {
                // A rebuild gives numbers that there never were.
                Write::Declare(wanted) => {
                    let store = &stores[usize::from(wanted.store)];
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
            if mistake != Some(Mistake::NamedWhateverVersion) {
                leader.naming = leader
                    .naming
                    .filter(|naming| naming.is_as_read || naming.names.is_none() && is_believed);
            }
        }
        self.delayed = self.delayed.filter(|hand| !is_vain(hand, false));
    }

    /// Metas of every directory that there is or that can come back.
    fn metas(&self) -> [Option<Meta>; STORES + 1] {
        let saved = self.saved.and_then(|saved| saved.meta);
        [self.stores[0].meta, self.stores[1].meta, saved]
    }
}
