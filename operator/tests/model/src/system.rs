//! The whole: the cluster's objects, two leaders, two gates and one Redis.

use std::hash::{Hash, Hasher};

use crate::bounds::{Bounds, Left};
use crate::bytes::Bytes;
use crate::cluster::{Admits, Key, Object, Secret};
use crate::gate::{Copy, Gate, Lease, Pod};
use crate::leader::{Claim, Hand, Leader};
use crate::records::{KEYS, Records};
use crate::store::{Meta, Store};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct System {
    pub keys: [Key; KEYS],
    /// What the WaterDataApi says of keys, while it exists.
    pub admits: Admits,
    pub exists: bool,
    /// Its uid: another one each time that it is created.
    pub api: bool,
    pub leaders: [Leader; 2],
    pub gates: [Gate; 2],
    pub store: Store,
    /// Which `master_replid` the server has.
    pub server: bool,
    /// The data that a rollback or promotion gives back.
    pub saved: Option<Store>,
    /// A write that was taken for lost.
    pub delayed: Option<Hand>,
    /// The time, in ticks.
    pub now: u8,
    pub left: Left,
    /// A replaced key works for a tick beside its successor.
    pub overlap: bool,
    /// Something may hinder keys: a rebuild then asks what the directory held.
    pub is_carried: bool,
}

/// All at once: a state has hundreds of fields of a byte.
impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = Bytes::default();
        (&self.keys, self.admits, self.exists, self.api).hash(&mut bytes);
        (&self.leaders, &self.gates, &self.store).hash(&mut bytes);
        (self.server, &self.saved, &self.delayed, self.now).hash(&mut bytes);
        (self.left, self.overlap, self.is_carried).hash(&mut bytes);
        state.write(bytes.all());
    }
}

impl System {
    /// One leader with an open directory, one gate that is ready, one that is not, unless the bounds leave
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
        Self {
            keys: Default::default(),
            admits: Admits::Yes,
            exists: true,
            api: false,
            leaders: [leader, Leader::default()],
            gates: match bounds.gates {
                1 => [ready, Gate::default()],
                _ => [ready, Gate::started()],
            },
            store: Store {
                meta: Some(meta),
                ..Store::default()
            },
            server: false,
            saved: None,
            delayed: None,
            now: 0,
            left,
            overlap: bounds.overlap,
            is_carried: left.hindrances > 0 || left.foreign > 0,
        }
    }

    /// The directory is complete, on the server that completed it.
    pub fn is_whole(&self) -> bool {
        let meta = self.store.meta;
        meta.is_some_and(|meta| meta.complete && meta.server == Some(self.server))
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

    /// Changes an ApiKey: whoever has read it before cannot write it any more. `from`: the leader that
    /// does it, which knows at once what became of it.
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

    /// No key is admitted as it was. What was read before says nothing of that.
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
