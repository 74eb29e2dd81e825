//! Canonical state for all that differ in names only: the order of keys, leaders and gates, and the size of the
//! numbers. Terms and generations are compared, and a new one is above all earlier ones; so only their order matters,
//! and the same holds for `seq` and for owners' numbers.

use crate::cluster::{Key, Secret, Status};
use crate::leader::{Claim, Hand, Write};
use crate::mistake::Mistake;
use crate::records::SLOTS;
use crate::store::{Applied, Store};
use crate::system::System;

impl System {
    /// `are_alike`: the keys differ in nothing but what happened to them.
    pub fn canonical(mut self, are_alike: bool, mistake: Option<Mistake>) -> Self {
        if mistake.is_none_or(Mistake::leaves_numbers_alone) {
            self.forget(mistake);
        }
        self.rank(|system, visit| system.each_term(visit));
        self.rank(|system, visit| system.each_generation(visit));
        self.rank(|system, visit| system.each_seq(visit));
        self.rank(|system, visit| system.each_number(visit));
        self.gates.sort();
        if !are_alike {
            self.leaders.sort();
            return self;
        }
        let mut swapped = self.clone();
        swapped.swap_keys();
        for system in [&mut self, &mut swapped] {
            system.leaders.sort();
        }
        self.min(swapped)
    }

    pub fn term_after_all(&self) -> u8 {
        self.after_all(|system, visit| system.each_term(visit))
    }

    pub fn generation_after_all(&self) -> u8 {
        self.after_all(|system, visit| system.each_generation(visit))
    }

    pub fn seq_after_all(&self) -> u8 {
        self.after_all(|system, visit| system.each_seq(visit))
    }

    pub fn number_after_all(&self) -> u8 {
        self.after_all(|system, visit| system.each_number(visit))
    }

    fn after_all(&self, each: impl Fn(&mut Self, &mut dyn FnMut(&mut u8))) -> u8 {
        let mut highest = 0;
        each(&mut self.clone(), &mut |number| {
            highest = highest.max(*number)
        });
        highest + 1
    }

    /// Replaces numbers by their ranks; 0 stays.
    fn rank(&mut self, each: impl Fn(&mut Self, &mut dyn FnMut(&mut u8))) {
        let mut seen = 1u64;
        each(self, &mut |number| seen |= 1 << *number);
        each(self, &mut |number| {
            *number = (seen & ((1 << *number) - 1)).count_ones() as u8
        });
    }

    pub fn each_hand(&mut self, mut visit: impl FnMut(&mut Hand)) {
        let hands = self.leaders.iter_mut().map(|leader| &mut leader.hand);
        hands
            .chain([&mut self.delayed])
            .flatten()
            .for_each(&mut visit);
    }

    pub fn each_store(&mut self) -> impl Iterator<Item = &mut Store> {
        self.stores.iter_mut().chain(self.saved.as_mut())
    }

    fn each_term(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let metas = self.each_store().filter_map(|store| store.meta.as_mut());
        metas.for_each(|meta| visit(&mut meta.term));
        for leader in &mut self.leaders {
            visit(&mut leader.term);
        }
        self.each_hand(|hand| {
            if let Write::Declare(wanted) = &mut hand.write {
                visit(&mut wanted.term);
            }
        });
    }

    fn each_generation(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let metas = self.each_store().filter_map(|store| store.meta.as_mut());
        metas.for_each(|meta| visit(&mut meta.generation));
        self.each_applied(|applied| visit(&mut applied.generation));
        for note in self
            .leaders
            .iter_mut()
            .flat_map(|leader| &mut leader.memory)
        {
            note.note
                .iter_mut()
                .for_each(|note| visit(&mut note.mark.generation));
        }
    }

    fn each_seq(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let metas = self.each_store().filter_map(|store| store.meta.as_mut());
        metas.for_each(|meta| visit(&mut meta.seq));
        self.each_applied(|applied| visit(&mut applied.seq));
        for memory in self
            .leaders
            .iter_mut()
            .flat_map(|leader| &mut leader.memory)
        {
            memory.note.iter_mut().for_each(|note| visit(&mut note.seq));
        }
    }

    fn each_number(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        for store in self.each_store() {
            store.numbers.iter_mut().for_each(&mut *visit);
        }
        for memory in self
            .leaders
            .iter_mut()
            .flat_map(|leader| &mut leader.memory)
        {
            memory
                .note
                .iter_mut()
                .for_each(|note| visit(&mut note.mark.number));
        }
        self.each_hand(|hand| {
            if let Write::Declare(wanted) = &mut hand.write {
                visit(&mut wanted.number);
            }
        });
    }

    pub fn each_applied(&mut self, mut visit: impl FnMut(&mut Applied)) {
        for gate in &mut self.gates {
            gate.each_applied(&mut visit);
        }
    }

    fn swap_keys(&mut self) {
        self.keys.swap(0, 1);
        self.keys.iter_mut().for_each(swap_hashes);
        for store in self.each_store() {
            store.records = store.records.swapped();
            store.revoked = store.revoked.swapped();
            store.numbers.swap(0, 1);
            store.gone.swap(0, 1);
            store.revoked_of.swap(0, 1);
            for revoked in &mut store.revoked_of {
                *revoked = revoked.swapped();
            }
        }
        let copies = self.gates.iter_mut().filter_map(|gate| gate.copy.as_mut());
        copies.for_each(|copy| copy.records = copy.records.swapped());
        for leader in &mut self.leaders {
            leader.memory.swap(0, 1);
            for memory in &mut leader.memory {
                memory.made = memory.made.map(other);
            }
            if let Claim::Rebuilding(contents) = &mut leader.claim {
                *contents = contents.swapped();
            }
            if let Some(cache) = &mut leader.cache {
                cache.objects.swap(0, 1);
                cache.secrets.swap(0, 1);
                for (object, secret) in cache.objects.iter_mut().zip(&mut cache.secrets) {
                    let mut key = Key {
                        object: *object,
                        secret: *secret,
                        ..Key::default()
                    };
                    swap_hashes(&mut key);
                    (*object, *secret) = (key.object, key.secret);
                }
            }
        }
        self.each_hand(swap_hand);
    }
}

fn other(hash: u8) -> u8 {
    (hash + SLOTS as u8) % (2 * SLOTS as u8)
}

fn swap_status(status: &mut Status) {
    status.current = status.current.map(other);
    status.unrevealed = status.unrevealed.swapped();
    status.previous = status.previous.map(|(hash, at)| (other(hash), at));
}

fn swap_hashes(key: &mut Key) {
    key.object.spec.brought = key.object.spec.brought.map(other);
    swap_status(&mut key.object.status);
    if let Secret::Own { hash, retiring, .. } = &mut key.secret {
        *hash = other(*hash);
        *retiring = retiring.map(|(hash, at)| (other(hash), at));
    }
}

fn swap_hand(hand: &mut Hand) {
    hand.key = 1 - hand.key;
    match &mut hand.write {
        Write::Finalize | Write::Release => {}
        Write::Announce(hash) | Write::Retire(hash, _) => *hash = other(*hash),
        Write::Reveal(hash, retiring) | Write::Replace(hash, retiring) => {
            *hash = other(*hash);
            *retiring = retiring.map(|(hash, at)| (other(hash), at));
        }
        Write::Report(status) => swap_status(status),
        Write::Declare(wanted) => {
            wanted.records = wanted.records.swapped();
            wanted.withdrawn = wanted.withdrawn.swapped();
            wanted.revoked = wanted.revoked.swapped();
        }
    }
}
