//! State of the whole system: the cluster's objects, two leaders, two gates and two Redis, of which the second is used
//! after a move.

use std::hash::{Hash, Hasher};

use water_operator_core::store_names::StoreNames;

use crate::bounds::{Bounds, Left};
use crate::bytes::Bytes;
use crate::cluster::{Admits, Key, Object, Phase, Secret, Status};
use crate::gate::{Copy, Gate, Lease, Pod};
use crate::leader::{Claim, Hand, Leader};
use crate::records::{KEYS, Record, Records};
use crate::store::{Meta, Store};

/// Number of Redis.
pub const STORES: usize = 2;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct System {
    pub keys: [Key; KEYS],
    /// Admission of keys by the WaterDataApi, while it exists.
    pub admits: Admits,
    pub exists: bool,
    /// Uid of the WaterDataApi: another one each time that it is created.
    pub api: bool,
    pub leaders: [Leader; 2],
    pub gates: [Gate; 2],
    pub stores: [Store; STORES],
    /// Redis that the Secret names.
    pub named: u8,
    /// Redis that the WaterDataApi's status names.
    pub names: StoreNames<u8>,
    /// The `master_replid` of the first server. The other one loses nothing.
    pub server: bool,
    /// The data that a rollback or promotion gives back.
    pub saved: Option<Store>,
    /// A write that was taken for lost.
    pub delayed: Option<Hand>,
    /// The time, in ticks.
    pub now: u8,
    pub left: Left,
    /// Whether a replaced key works for a tick after its successor is published.
    pub overlap: bool,
    /// Whether something may block keys: a rebuild then asks what the directory held.
    pub is_carried: bool,
}

/// Hashes all fields at once: a state has hundreds of fields of a byte.
impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = Bytes::default();
        (&self.keys, self.admits, self.exists, self.api).hash(&mut bytes);
        (&self.leaders, &self.gates, &self.stores[0]).hash(&mut bytes);
        (self.server, &self.saved, &self.delayed, self.now).hash(&mut bytes);
        (self.left, self.overlap, self.is_carried).hash(&mut bytes);
        if self.stores[1].meta.is_some() || self.named != 0 || self.names.next.is_some() {
            (&self.stores[1], self.named, self.names).hash(&mut bytes);
        }
        state.write(bytes.all());
    }
}

impl System {
    /// State with one leader with an open directory, one gate that is ready, one that is not, unless the bounds leave
    /// it out, and no key.
    pub fn first(bounds: &Bounds) -> Self {
        let left = bounds.left;
        let meta = Meta {
            term: 1,
            generation: 1,
            seq: 1,
            complete: true,
            server: Some(false),
            api: false,
        };
        let at = meta.position();
        let leader = Leader {
            holds: true,
            leading: true,
            open: Some(0),
            term: 1,
            claim: Claim::Open,
            has_listed: true,
            ..Leader::default()
        };
        let ready = Gate {
            pod: Pod::Ready,
            leased: true,
            copy: Some(Copy {
                at,
                records: Records::default(),
            }),
            lease: Some(Lease {
                applied: at,
                run_out: false,
            }),
            ..Gate::default()
        };
        let mut first = Self {
            keys: Default::default(),
            admits: Admits::Yes,
            exists: true,
            api: false,
            leaders: [leader, Leader::default()],
            gates: match bounds.gates {
                1 => [ready, Gate::default()],
                _ => [ready, Gate::started(0)],
            },
            stores: [
                Store {
                    meta: Some(meta),
                    ..Store::default()
                },
                Store::default(),
            ],
            named: 0,
            names: match left.moves {
                0 => StoreNames {
                    whole: Some(0),
                    next: None,
                },
                // Nothing has named it yet.
                _ => StoreNames {
                    whole: None,
                    next: Some(0),
                },
            },
            server: false,
            saved: None,
            delayed: None,
            now: 0,
            left,
            overlap: bounds.overlap,
            is_carried: left.hindrances > 0 || left.foreign > 0,
        };
        if bounds.is_in_force {
            first.put_in_force();
        }
        first
    }

    /// Puts the first key, whose owner brings its hash, in force at every gate.
    fn put_in_force(&mut self) {
        let (key, hash) = (&mut self.keys[0].object, 0);
        (key.phase, key.finalizer) = (Phase::Declared, true);
        key.spec.brought = Some(hash);
        key.status = Status {
            named: true,
            current: Some(hash),
            shown: true,
            told: true,
            ..Status::default()
        };
        let record = Record {
            owner: 0,
            suspended: false,
            retires: None,
        };
        let copies = self.gates.iter_mut().filter_map(|gate| gate.copy.as_mut());
        let copies = copies.map(|copy| &mut copy.records);
        let stored = [&mut self.stores[0].records].into_iter();
        stored
            .chain(copies)
            .for_each(|records| records.put(hash, record));
        self.stores[0].numbers[0] = 1;
    }

    pub fn store(&self, store: u8) -> &Store {
        &self.stores[usize::from(store)]
    }

    pub fn store_mut(&mut self, store: u8) -> &mut Store {
        &mut self.stores[usize::from(store)]
    }

    /// The `master_replid` of a Redis.
    pub fn server(&self, store: u8) -> bool {
        store == 0 && self.server
    }

    /// The directory is complete, on the server that completed it.
    pub fn is_whole(&self, store: u8) -> bool {
        let meta = self.store(store).meta;
        meta.is_some_and(|meta| meta.complete && meta.server == Some(self.server(store)))
    }

    /// An ApiKey as a leader knows it.
    pub fn object(&self, leader: usize, key: usize) -> Object {
        let cache = &self.leaders[leader].cache;
        cache.map_or(self.keys[key].object, |cache| cache.objects[key])
    }

    /// A Secret as a leader knows it.
    pub fn secret(&self, leader: usize, key: usize) -> Secret {
        let cache = &self.leaders[leader].cache;
        cache.map_or(self.keys[key].secret, |cache| cache.secrets[key])
    }

    /// Changes an ApiKey: a leader that has read it before cannot write it any more. `from`: the leader that does it,
    /// which knows the result at once.
    pub fn change_object(
        &mut self,
        key: usize,
        from: Option<usize>,
        change: impl FnOnce(&mut Object),
    ) {
        change(&mut self.keys[key].object);
        self.touch(key, |hand| hand.is_object_as_read = false);
        let object = self.keys[key].object;
        if let Some(cache) = from.and_then(|from| self.leaders[from].cache.as_mut()) {
            cache.objects[key] = object;
        }
    }

    /// Changes a Secret, likewise. What a watch has not shown yet is asked for, not remembered.
    pub fn change_secret(&mut self, key: usize, secret: Secret, from: Option<usize>) {
        self.keys[key].secret = secret;
        self.touch(key, |hand| hand.is_secret_as_read = false);
        if let Some(cache) = from.and_then(|from| self.leaders[from].cache.as_mut())
            && cache.secrets[key] != Secret::Missing
        {
            cache.secrets[key] = secret;
        }
    }

    /// Changes the names in the WaterDataApi's status: a pass that has read it before cannot write it any more.
    pub fn change_names(&mut self, names: StoreNames<u8>) {
        self.names = names;
        let namings = self.leaders.iter_mut().map(|leader| &mut leader.naming);
        namings
            .flatten()
            .for_each(|naming| naming.is_as_read = false);
    }

    /// Records that a rebuild may take from the directory: none of one that missed changes.
    pub fn former(&self, number: usize) -> Records {
        let leader = &self.leaders[number];
        let open = leader.open.filter(|_| !leader.is_behind);
        open.map_or_else(Records::default, |open| self.store(open).records)
    }

    /// Marks every key as no longer admitted as it was. What was read before says nothing of that.
    pub fn disturb(&mut self) {
        for key in (0..KEYS)
            .filter(|key| self.keys[*key].is_declared())
            .collect::<Vec<_>>()
        {
            self.keys[key].disturbed = true;
            self.keys[key].withdrawn = true;
            self.touch(key, |hand| hand.is_secret_as_read = false);
        }
    }

    /// The ApiKey is gone, and its Secret is collected.
    pub fn end(&mut self, key: usize) {
        self.keys[key].end();
        self.touch(key, |hand| {
            (hand.is_object_as_read, hand.is_secret_as_read) = (false, false);
        });
    }

    fn touch(&mut self, key: usize, change: impl Fn(&mut Hand)) {
        let hands = self.leaders.iter_mut().map(|leader| &mut leader.hand);
        let hands = hands.chain([&mut self.delayed]).flatten();
        let its = hands.filter(|hand| usize::from(hand.key) == key);
        its.for_each(change);
    }

    /// Redis' data are not those of a moment ago, and the leases these.
    pub fn lose(&mut self, lease: impl Fn(Lease) -> Option<Lease>) {
        self.saved = None;
        for gate in &mut self.gates {
            gate.lease = gate.lease.and_then(&lease);
        }
    }
}
