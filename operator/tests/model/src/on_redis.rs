//! The model's store and the scripts of `services/keystore` in a real Redis come to the same by the same
//! random claims, declarations, losses and rebuilds: what is proven of the one holds for the other.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use tokio::runtime::Builder;
use water_domain::KeyHash;
use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{
    self as keystore, ConnectionSettings, Contents, Directory, Entry, Instance, KeyState, Origin,
    Owner, WriteError, Writer,
};

use crate::records::{Hashes, KEYS, Record, Records, SLOTS, at, tick};
use crate::store::{Declaration, Declared, Meta, Store};

const HASHES: u8 = (KEYS * SLOTS) as u8;
const CASES: u32 = 100;
const STEPS: usize = 25;
/// Redis' server is always the same here.
const SERVER: bool = true;

#[derive(Clone, Debug)]
enum Step {
    Declare {
        key: usize,
        records: BTreeMap<u8, (bool, Option<u8>)>,
        withdrawn: BTreeSet<u8>,
        revoked: BTreeSet<u8>,
        is_last: bool,
        /// Whether it names an earlier number.
        is_outdated: bool,
        /// Whether it is the leader's before the last claim.
        is_late: bool,
    },
    Claim,
    /// Owner of each hash.
    Rebuild(BTreeMap<u8, usize>),
    Wipe,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => declare(),
        2 => Just(Step::Claim),
        3 => btree_map(0..HASHES, 0..KEYS, 0..6).prop_map(Step::Rebuild),
        1 => Just(Step::Wipe),
    ]
}

fn declare() -> impl Strategy<Value = Step> {
    let rules = (any::<bool>(), prop::option::of(0..4_u8));
    (
        0..KEYS,
        btree_map(0..HASHES, rules, 0..4),
        btree_set(0..HASHES, 0..3),
        btree_set(0..HASHES, 0..2),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(key, mut records, withdrawn, revoked, is_last, is_outdated, is_late)| {
                // What is withdrawn or revoked is not declared as well.
                records.retain(|hash, _| !withdrawn.contains(hash) && !revoked.contains(hash));
                Step::Declare {
                    key,
                    records,
                    withdrawn,
                    revoked,
                    is_last,
                    is_outdated,
                    is_late,
                }
            },
        )
}

fn key_hash(hash: u8) -> KeyHash {
    let mut bytes = [0; 32];
    // Two of three share a shard with a neighbour.
    (bytes[0], bytes[31]) = (hash / 3, hash);
    KeyHash::from_bytes(bytes)
}

/// The first key is generated, the other one brought along.
fn origin(key: usize) -> Result<Origin> {
    Ok(match key {
        0 => Origin::Generated,
        _ => Origin::Brought("acme".parse()?),
    })
}

fn owner(key: usize) -> Owner {
    Owner {
        uid: format!("uid-{key}").into(),
        namespace: "team".into(),
        name: format!("key-{key}").into(),
    }
}

fn stored(hash: u8, (is_suspended, retires): (bool, Option<u8>)) -> Result<keystore::Record> {
    Ok(keystore::Record {
        key_id: key_hash(hash).key_id(),
        account: "acme".parse()?,
        plan: "Enterprise".parse()?,
        state: if is_suspended {
            KeyState::Suspended
        } else {
            KeyState::Active
        },
        not_before: None,
        expires: None,
        retires: retires.map(at),
        revision: 0,
    })
}

fn modelled(records: &BTreeMap<u8, (bool, Option<u8>)>, key: usize) -> Records {
    let mut all = Records::default();
    for (hash, (suspended, retires)) in records {
        let record = Record {
            owner: key as u8,
            suspended: *suspended,
            retires: *retires,
        };
        all.put(*hash, record);
    }
    all
}

/// A directory in Redis, and the model's.
struct Pair {
    redis: Redis,
    directory: Directory,
    /// The last two leaders, the present one last.
    writers: Vec<Writer>,
    store: Store,
    /// The numbers in Redis, to see which changed.
    numbers: [u64; KEYS],
    /// Number that was never used.
    next: u8,
    term: u8,
}

impl Pair {
    async fn new() -> Result<Self> {
        let redis = Redis::start().await?;
        let settings = ConnectionSettings::new(&redis.url(), None)?;
        let instance: Instance = "team.water-data".parse()?;
        Ok(Self {
            directory: Directory::new(settings.connect(Purpose::Directory), instance),
            redis,
            writers: Vec::new(),
            store: Store::default(),
            numbers: [0; KEYS],
            next: 0,
            term: 0,
        })
    }

    /// An empty directory that is claimed and whole.
    async fn begin(&mut self) -> Result<()> {
        self.wipe().await?;
        (self.next, self.term, self.numbers) = (0, 0, [0; KEYS]);
        self.writers.clear();
        self.claim().await?;
        self.rebuild(&BTreeMap::new()).await
    }

    async fn wipe(&mut self) -> Result<()> {
        self.redis.command(&["FLUSHALL"]).await?;
        self.store = Store::default();
        Ok(())
    }

    async fn claim(&mut self) -> Result<()> {
        let (writer, _) = self.directory.claim("owner", "api", None).await?;
        self.writers.push(writer);
        self.term += 1;
        let meta = self.store.meta.get_or_insert(Meta {
            term: 0,
            generation: 0,
            seq: 0,
            complete: false,
            server: None,
            api: true,
        });
        meta.term = self.term;
        Ok(())
    }

    async fn rebuild(&mut self, owners: &BTreeMap<u8, usize>) -> Result<()> {
        let Some(meta) = &mut self.store.meta else {
            return Ok(());
        };
        self.next += 1;
        (meta.complete, meta.server) = (true, Some(SERVER));
        meta.generation += 1;
        let mut wanted = Records::default();
        let mut entries = Vec::new();
        for (&hash, &key) in owners {
            let record = Record {
                owner: key as u8,
                suspended: false,
                retires: None,
            };
            wanted.put(hash, record);
            entries.push(Entry {
                hash: key_hash(hash),
                record: stored(hash, (false, None))?,
                owner: owner(key),
                origin: origin(key)?,
            });
        }
        self.store.replace(&wanted, self.next);
        let writer = self.writers.last().context("a leader")?;
        let plans = Vec::new();
        writer.rebuild(|| Contents { plans, entries }).await?;
        Ok(())
    }

    async fn take(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Claim => self.claim().await,
            Step::Wipe => self.wipe().await,
            Step::Rebuild(owners) => self.rebuild(owners).await,
            Step::Declare {
                key,
                records,
                withdrawn,
                revoked,
                is_last,
                is_outdated,
                is_late,
            } => {
                self.next += 1;
                let declared = Declaration {
                    store: 0,
                    term: self.term - u8::from(*is_late),
                    number: self.store.numbers[*key] + u8::from(*is_outdated),
                    records: modelled(records, *key),
                    withdrawn: withdrawn.iter().copied().collect(),
                    revoked: revoked.iter().copied().collect(),
                    is_last: *is_last,
                    is_brought: *key != 0,
                };
                let modelled = self.store.declare(*key, &declared, SERVER, self.next, None);
                let hashes = |hashes: &BTreeSet<u8>| hashes.iter().copied().map(key_hash).collect();
                let records = records.iter();
                let records =
                    records.map(|(hash, rules)| Ok((key_hash(*hash), stored(*hash, *rules)?)));
                let declaration = keystore::Declaration {
                    owner: owner(*key),
                    number: self.numbers[*key] + u64::from(*is_outdated),
                    records: records.collect::<Result<_>>()?,
                    withdrawn: hashes(withdrawn),
                    revoked: hashes(revoked),
                    reinstated: BTreeMap::new(),
                    origin: origin(*key)?,
                    is_last: *is_last,
                };
                let late = usize::from(*is_late);
                let Some(writer) = self.writers.iter().rev().nth(late) else {
                    // There was no leader before: the model's is refused by its term.
                    ensure!(modelled == Declared::Refused, "{modelled:?}");
                    return Ok(());
                };
                let carried_out = writer.declare(&declaration).await;
                let agree = match (&carried_out, modelled) {
                    (Ok(_), Declared::Done { .. })
                    | (
                        Err(WriteError::Outdated { .. } | WriteError::OwnerGone),
                        Declared::Outdated,
                    ) => true,
                    (Err(error), Declared::Refused) => !matches!(error, WriteError::Store(_)),
                    _ => false,
                };
                ensure!(agree, "{carried_out:?}, and the model {modelled:?}");
                Ok(())
            }
        }
    }

    /// Checks that both hold the same, and that in both the same numbers have changed since `before`.
    async fn agree(&mut self, before: &Store) -> Result<()> {
        let all: Vec<KeyHash> = (0..HASHES).map(key_hash).collect();
        let hash_of = |hash: &KeyHash| hash.as_bytes()[31];
        for key in 0..KEYS {
            let snapshot = self
                .directory
                .owner_snapshot(&owner(key).uid, &origin(key)?, &all)
                .await?;
            let mut held = Records::default();
            for (hash, record) in &snapshot.records {
                let record = record.as_ref().context("a record")?;
                let record = Record {
                    owner: key as u8,
                    suspended: record.state == KeyState::Suspended,
                    retires: record.retires.map(tick),
                };
                held.put(hash_of(hash), record);
            }
            let mut modelled = Records::default();
            self.store
                .records
                .owned_by(key)
                .for_each(|(hash, record)| modelled.put(hash, record));
            ensure!(
                held == modelled,
                "held of {key}: {held:?}, and the model {modelled:?}"
            );
            let barred: Hashes = snapshot.barred.keys().map(hash_of).collect();
            let bars: Hashes = (0..HASHES)
                .filter(|hash| self.store.bars(key, *hash))
                .collect();
            ensure!(
                barred == bars,
                "barred for {key}: {barred:?}, and the model {bars:?}"
            );
            let taken: Hashes = snapshot.taken.iter().map(hash_of).collect();
            let takes = (0..HASHES).filter(|hash| self.store.is_taken(key, *hash, None));
            let takes: Hashes = takes.collect();
            ensure!(
                taken == takes,
                "taken from {key}: {taken:?}, and the model {takes:?}"
            );
            ensure!(
                snapshot.is_gone == self.store.gone[key],
                "{key} is gone: {}",
                snapshot.is_gone
            );
            let has_changed = self.store.numbers[key] != before.numbers[key];
            ensure!(
                (snapshot.number != self.numbers[key]) == has_changed
                    && (snapshot.number == 0) == (self.store.numbers[key] == 0),
                "{key} has the number {} after {}, and the model {} after {}",
                snapshot.number,
                self.numbers[key],
                self.store.numbers[key],
                before.numbers[key],
            );
            self.numbers[key] = snapshot.number;
        }
        let position = self.directory.observe().await?;
        let is_whole = self.store.meta.is_some_and(|meta| meta.complete);
        ensure!(position.verified().is_some() == is_whole, "{position:?}");
        Ok(())
    }
}

#[test]
fn the_models_store_and_redis_come_to_the_same() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let pair = runtime.block_on(Pair::new())?;
    let pair = tokio::sync::Mutex::new(pair);
    let tried = |steps: Vec<Step>| {
        runtime.block_on(async {
            let mut pair = pair.lock().await;
            pair.begin().await?;
            let start = pair.store;
            pair.agree(&start).await?;
            for step in &steps {
                let before = pair.store;
                pair.take(step).await.with_context(|| format!("{step:?}"))?;
                pair.agree(&before)
                    .await
                    .with_context(|| format!("{step:?}"))?;
            }
            anyhow::Ok(())
        })
    };
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(CASES)
    };
    // The same sequences each time: one that fails fails again.
    let chance = TestRng::deterministic_rng(config.rng_algorithm);
    let ran = TestRunner::new_with_rng(config, chance).run(&vec(step(), 1..STEPS), |steps| {
        tried(steps).map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    ran.map_err(|error| anyhow::anyhow!("{error}"))
}
