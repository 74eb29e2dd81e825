//! One state for all that differ in names only: which key, leader or gate is the first, and how high
//! the numbers are. Terms and generations are compared, and a new one is above all earlier ones; so
//! only their order matters, and the same holds for `seq`.

use crate::operator::{Claim, Pass};
use crate::protocol::{Mistake, SLOTS};
use crate::redis::{Applied, Hashes, Store};
use crate::system::System;

impl System {
    pub fn canonical(mut self, mistake: Option<Mistake>) -> Self {
        if mistake.is_none() {
            self.forget();
        }
        self.rank(|system, visit| system.each_term(visit));
        self.rank(|system, visit| system.each_generation(visit));
        self.rank(|system, visit| system.each_seq(visit));
        let mut swapped = self.clone();
        swapped.swap_keys();
        for system in [&mut self, &mut swapped] {
            system.operators.sort();
            system.gates.sort();
        }
        self.min(swapped)
    }

    /// Drops what nothing that can still happen depends on.
    fn forget(&mut self) {
        self.forget_data();
        // What stands for no term in Redis, or in the data that can come back, and for no generation in
        // Redis, will never be equal to one again.
        let metas = [self.store.meta, self.saved.and_then(|saved| saved.meta)];
        let is_known = |term| metas.iter().flatten().any(|meta| meta.term == term);
        for operator in &mut self.operators {
            if !is_known(operator.term) {
                operator.term = 0;
            }
        }
        let generation = self.store.meta.map_or(0, |meta| meta.generation);
        self.each_applied(|applied| {
            if applied.generation != generation {
                *applied = Applied::default();
            }
        });
    }

    /// Data that came back, or can, wait for a rebuild, which writes the records anew under other
    /// numbers: of these, terms and tombstones alone count. Until a rebuild ends nobody reads its
    /// records, and a gate that is silent reads them again before it serves.
    fn forget_data(&mut self) {
        let server = Some(self.server);
        let came_back = |store: &&mut Store| store.meta.is_some_and(|meta| meta.server != server);
        let here = Some(&mut self.store).filter(came_back);
        for store in self.saved.iter_mut().chain(here) {
            if let Some(meta) = &mut store.meta {
                (meta.generation, meta.seq, meta.complete) = (0, 0, false);
            }
            store.records = Hashes(0);
        }
        if self.store.meta.is_some_and(|meta| !meta.complete) {
            self.store.records = Hashes(0);
        }
        let silent = self.gates.iter_mut().filter(|gate| gate.silent);
        for copy in silent.filter_map(|gate| gate.copy.as_mut()) {
            copy.records = Hashes(0);
        }
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

    fn each_term(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let metas = [
            self.store.meta.as_mut(),
            self.saved.as_mut().and_then(|saved| saved.meta.as_mut()),
        ];
        metas
            .into_iter()
            .flatten()
            .for_each(|meta| visit(&mut meta.term));
        self.operators
            .iter_mut()
            .for_each(|operator| visit(&mut operator.term));
    }

    fn each_generation(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let metas = [
            self.store.meta.as_mut(),
            self.saved.as_mut().and_then(|saved| saved.meta.as_mut()),
        ];
        metas
            .into_iter()
            .flatten()
            .for_each(|meta| visit(&mut meta.generation));
        self.each_applied(|applied| visit(&mut applied.generation));
    }

    fn each_seq(&mut self, visit: &mut dyn FnMut(&mut u8)) {
        let metas = [
            self.store.meta.as_mut(),
            self.saved.as_mut().and_then(|saved| saved.meta.as_mut()),
        ];
        metas
            .into_iter()
            .flatten()
            .for_each(|meta| visit(&mut meta.seq));
        self.each_applied(|applied| visit(&mut applied.seq));
    }

    fn each_applied(&mut self, mut visit: impl FnMut(&mut Applied)) {
        for gate in &mut self.gates {
            gate.lease
                .iter_mut()
                .for_each(|lease| visit(&mut lease.applied));
            gate.copy.iter_mut().for_each(|copy| visit(&mut copy.at));
        }
        for operator in &mut self.operators {
            if let Pass::Publish {
                applied: Some(applied),
                ..
            }
            | Pass::Revoke { applied, .. } = &mut operator.pass
            {
                visit(applied);
            }
        }
    }

    fn swap_keys(&mut self) {
        self.keys.swap(0, 1);
        let swap = |hashes: &mut Hashes| hashes.0 = hashes.0.rotate_left(SLOTS as u32);
        for key in &mut self.keys {
            swap(&mut key.pending);
            swap(&mut key.revealed);
        }
        for store in [Some(&mut self.store), self.saved.as_mut()]
            .into_iter()
            .flatten()
        {
            swap(&mut store.records);
            swap(&mut store.revoked);
        }
        for gate in &mut self.gates {
            gate.copy
                .iter_mut()
                .for_each(|copy| swap(&mut copy.records));
        }
        for operator in &mut self.operators {
            if let Claim::Rebuilding(contents) = &mut operator.claim {
                swap(contents);
            }
            match &mut operator.pass {
                Pass::Idle => {}
                Pass::Publish { hash, over, .. } | Pass::Reveal { hash, over } => {
                    *hash = (*hash + SLOTS as u8) % (2 * SLOTS as u8);
                    swap(over);
                }
                Pass::Revoke { key, .. } | Pass::Release { key } => *key = 1 - *key,
            }
        }
    }
}
