//! A gate's copy of the key directory: the time of a lookup, and the memory of a key. Ours is loaded
//! from Redis as a gate loads it; a map is filled from memory, with room for exactly its keys.
//!
//! Neither the view nor the lock is taken for each lookup, so that only lookups are compared.

use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hashbrown::HashMap;
use tokio::task::yield_now;
use tokio::time::Instant;
use water_domain::{KeyHash, PlanName};
use water_keystore::connection::Purpose;
use water_keystore::{
    ConnectionSettings, Contents, Entry, GateIdentity, Instance, KeyState, Origin, Owner, Record,
    Replica,
};

use super::orders::take_turns;
use crate::cpu;
use crate::load::Slice;
use crate::rounds::Turn;
use crate::store::Store;

/// Lookups between two looks at the clock, and as many as share a view.
const AT_ONCE: u64 = 4_096;

/// Coprime to every number of keys that is used: neighbours in time are far apart in memory.
const STRIDE: u64 = 7_368_787;

const NAME: &str = "parts";

/// A Redis with all keys in its directory.
pub struct Filled {
    store: Store,
    instance: Instance,
    keys: usize,
}

impl Filled {
    /// Starts it and writes the keys as the operator does.
    pub async fn start(keys: usize) -> Result<Self> {
        eprintln!("filling a key directory with {keys} keys");
        let instance = Instance::new("water", NAME)?;
        let store = Store::start(&[&instance]).await?;
        let entries = (0..keys as u64).map(|number| Entry {
            hash: hash(number),
            record: record(number),
            owner: Owner {
                uid: format!("{number}").into(),
                namespace: "water".into(),
                name: "bench".into(),
            },
            origin: Origin::Generated,
        });
        let contents = Contents {
            entries: entries.collect(),
            plans: Vec::new(),
        };
        store.publish(&instance, contents).await?;
        Ok(Self {
            store,
            instance,
            keys,
        })
    }

    /// What a contestant needs: the number of keys, and where they are.
    pub fn address(&self) -> Vec<String> {
        vec![self.keys.to_string(), self.store.gate_url(&self.instance)]
    }
}

/// Our copy, loaded and followed as a gate does.
pub async fn ours(with: &[String]) -> Result<()> {
    let (keys, url) = arguments(with)?;
    let before = memory()?;
    let connection = ConnectionSettings::new(url, None)?.connect(Purpose::Directory);
    let identity = GateIdentity {
        pod: "bench".into(),
        uid: "bench".into(),
        grace: Duration::from_secs(60),
    };
    let replica = Replica::new(connection, Instance::new("water", NAME)?, identity);
    let replica = Arc::new(replica);
    let followed = Arc::clone(&replica);
    tokio::spawn(async move { followed.run().await });
    replica.completed().await;
    compete(keys, before, |numbers| {
        let view = replica.view().context("the copy is complete")?;
        numbers
            .iter()
            .try_for_each(|&number| found(number, view.record(&hash(number))))
    })
    .await
}

/// hashbrown's map, its records as they are used.
pub async fn records(with: &[String]) -> Result<()> {
    let (keys, _) = arguments(with)?;
    let before = memory()?;
    let plan = plan();
    let map: Map<Record> = (0..keys)
        .map(|number| {
            (
                hash(number),
                Record {
                    plan: plan.clone(),
                    ..record(number)
                },
            )
        })
        .collect();
    let map = RwLock::new(map);
    compete(keys, before, |numbers| {
        let map = map.read().expect("nothing panics");
        numbers
            .iter()
            .try_for_each(|&number| found(number, map.get(&hash(number)).cloned()))
    })
    .await
}

/// hashbrown's map, its records packed as ours are.
pub async fn packed(with: &[String]) -> Result<()> {
    let (keys, _) = arguments(with)?;
    let before = memory()?;
    let packed = |number| (hash(number), record(number).encode().into_boxed_slice());
    let map: Map<Box<[u8]>> = (0..keys).map(packed).collect();
    let map = RwLock::new(map);
    compete(keys, before, |numbers| {
        let map = map.read().expect("nothing panics");
        let decoded = |number| Record::decode(map.get(&hash(number))?);
        numbers
            .iter()
            .try_for_each(|&number| found(number, decoded(number)))
    })
    .await
}

type Map<V> = HashMap<KeyHash, V, BuildHasherDefault<Digest>>;

/// A digest needs no hash: eight of its bytes are one.
#[derive(Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*first);
        }
    }

    /// The length of the digest, which says nothing.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Looks keys up until each slice ends; `before`: the memory of this process without any.
async fn compete(keys: u64, before: u64, look_up: impl Fn(&[u64]) -> Result<()>) -> Result<()> {
    let mut next = 0;
    let mut look_up_for = async |length: Duration| {
        let (mut spent, mut done) = (Duration::ZERO, 0_u64);
        let end = Instant::now() + length;
        while Instant::now() < end {
            let numbers: Vec<u64> = (next..next + AT_ONCE)
                .map(|turn| turn.wrapping_mul(STRIDE) % keys)
                .collect();
            let start = cpu::own_thread()?;
            look_up(&numbers)?;
            spent += cpu::own_thread()? - start;
            (next, done) = (next + AT_ONCE, done + AT_ONCE);
            yield_now().await;
        }
        anyhow::Ok(spent.as_nanos() as f64 / done as f64)
    };
    take_turns(async |slice: Slice| {
        look_up_for(slice.warm_up).await?;
        Ok(Turn {
            cost: look_up_for(slice.counted).await?,
            counted: memory()?.saturating_sub(before) as f64 / keys as f64,
        })
    })
    .await
}

/// The record is the number's, and looked at.
fn found(number: u64, record: Option<Record>) -> Result<()> {
    let record = black_box(record).with_context(|| format!("no key {number}"))?;
    ensure!(
        u64::from(record.revision) == number,
        "the wrong key: {record:?}"
    );
    Ok(())
}

/// The number of keys, and the URL of their Redis.
fn arguments(with: &[String]) -> Result<(u64, &str)> {
    let [keys, url] = with else {
        anyhow::bail!("the number of keys and a Redis are missing");
    };
    Ok((keys.parse()?, url))
}

fn memory() -> Result<u64> {
    cpu::resident_memory(std::process::id())
}

/// The number's digest: as evenly spread as any, and made without memory.
fn hash(number: u64) -> KeyHash {
    let mut bytes = [0; 32];
    for (part, place) in bytes.chunks_exact_mut(8).enumerate() {
        place.copy_from_slice(&mixed(4 * number + part as u64).to_be_bytes());
    }
    KeyHash::from_bytes(bytes)
}

/// The number's place in the sequence of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn record(number: u64) -> Record {
    Record {
        key_id: format!("{number:012x}").parse().expect("12 hex digits"),
        account: format!("account-{number}").parse().expect("an account"),
        plan: plan(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: number as u32,
    }
}

fn plan() -> PlanName {
    "Professional".parse().expect("letters are a plan")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_finds_each_number_by_its_digest() {
        let map: Map<u64> = (0..1_000).map(|number| (hash(number), number)).collect();
        assert_eq!(map.len(), 1_000);
        assert!((0..1_000).all(|number| map[&hash(number)] == number));
    }
}
