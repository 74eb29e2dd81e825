//! Random declarations by several ApiKeys over a few hashes, claims and rebuilds, against a plain model: after each
//! step the directory says of every ApiKey exactly what the model says, and in the end a gate knows exactly these keys.
//! The meaning of declarations, tombstones and rebuilds is tested here; the other files test what random steps do not
//! reach.

mod plain;

use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use redis::aio::MultiplexedConnection;
use redis::cmd;
use tokio::runtime::Builder;
use water_domain::KeyHash;
use water_keystore::{
    Contents, Entry, HashRefusal, Owner, Record, StoredEntry, WriteError, Writer,
};

use crate::site::*;
use plain::{Facts, Outcome, Plain, Said};

const OWNERS: usize = plain::ORIGINS.len();
const HASHES: usize = 6;
const STEPS: usize = 16;

#[derive(Clone, Debug)]
enum Step {
    Declare(usize, Said),
    Claim,
    /// ApiKey of each hash.
    Rebuild(BTreeMap<usize, usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (0..OWNERS, said()).prop_map(|(owner, said)| Step::Declare(owner, said)),
        1 => Just(Step::Claim),
        1 => btree_map(0..HASHES, 0..OWNERS, 0..HASHES).prop_map(Step::Rebuild),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    let lifted = select(vec!["*", "acme", "other", "none"]);
    let some = || btree_set(0..HASHES, 0..3);
    (
        btree_map(0..HASHES, any::<bool>(), 0..4),
        some(),
        btree_set(0..HASHES, 0..2),
        btree_map(0..HASHES, lifted, 0..3),
        prop::bool::weighted(0.04),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(held, withdrawn, revoked, lifted, is_last, is_stale)| Said {
                // A withdrawn or revoked hash is not held by the same declaration.
                held: held
                    .into_iter()
                    .filter(|(hash, _)| !withdrawn.contains(hash) && !revoked.contains(hash))
                    .collect(),
                withdrawn,
                revoked,
                lifted,
                is_last,
                is_stale,
            },
        )
}

/// Two of three hashes share a shard with a neighbour.
fn sample(number: usize) -> KeyHash {
    let mut bytes = *hash(number as u32 / 3).as_bytes();
    bytes[31] = number as u8;
    KeyHash::from_bytes(bytes)
}

/// The number of a sample hash.
fn number_of(hash: &KeyHash) -> usize {
    (0..HASHES).find(|number| sample(*number) == *hash).unwrap()
}

fn record_of(is_suspended: bool) -> Record {
    if is_suspended { suspended() } else { record() }
}

fn owner(number: usize) -> Owner {
    owner_named(&format!("key-{number}"))
}

/// The directory in Redis and the model of it.
struct Pair {
    site: Site,
    writer: Writer,
    redis: MultiplexedConnection,
    model: Plain,
}

impl Pair {
    async fn new() -> Self {
        let site = Site::new().await;
        let mut pair = Self {
            writer: site.ready().await,
            redis: site.vandal().await,
            site,
            model: Plain::default(),
        };
        pair.model = Plain::new(&pair.facts().await);
        pair
    }

    /// State of Redis in the model's terms.
    async fn facts(&mut self) -> Facts {
        let directory = self.site.directory();
        let observed = patiently(async || Ok(directory.observe().await?)).await;
        let meta = observed.unwrap().meta.unwrap();
        assert!(meta.complete, "{meta:?}");
        let mut facts = Facts {
            tombstones: self.tombstones().await,
            counts: meta.counts,
            seq: meta.seq,
            generation: meta.generation,
            ..Facts::default()
        };
        let hashes: Vec<KeyHash> = (0..HASHES).map(sample).collect();
        for number in 0..OWNERS {
            let (uid, origin) = (owner(number).uid, plain::origin(number));
            let read = async || Ok(directory.owner_snapshot(&uid, &origin, &hashes).await?);
            let seen = patiently(read).await.unwrap();
            assert_eq!(seen.position, Some(meta.position()));
            assert_eq!(seen.term, self.writer.term());
            let records = seen.records.iter();
            let records = records
                .map(|(hash, record)| (number_of(hash), record.as_ref() == Some(&suspended())));
            facts.records.push(records.collect());
            let barred = seen.barred.iter();
            let barred = barred.map(|(hash, time)| (number_of(hash), time.as_millis()));
            facts.barred.push(barred.collect());
            facts.taken.push(seen.taken.iter().map(number_of).collect());
            facts.gone.push(seen.is_gone);
            facts.numbers.push(seen.number);
            facts.now = seen.now.as_millis();
        }
        facts
    }

    /// Tombstones as they are in Redis.
    async fn tombstones(&mut self) -> BTreeMap<usize, BTreeMap<String, i64>> {
        let read = cmd("HGETALL").arg(self.site.instance.revoked()).to_owned();
        let stored: Vec<(Vec<u8>, String)> = read.query_async(&mut self.redis).await.unwrap();
        let of_keys = stored.into_iter().filter_map(|(field, text)| {
            // The other fields are uids.
            let hash = KeyHash::from_bytes(field.try_into().ok()?);
            let times = text.split(' ').map(|word| {
                let (account, time) = word.split_once('=').unwrap();
                (account.to_owned(), time.parse().unwrap())
            });
            Some((number_of(&hash), times.collect()))
        });
        of_keys.collect()
    }

    async fn rebuild(&self, owners: &BTreeMap<usize, usize>) -> Outcome {
        let entries = owners.iter().map(|(hash, number)| Entry {
            hash: sample(*hash),
            record: record(),
            owner: owner(*number),
            origin: plain::origin(*number),
        });
        let contents = Contents {
            entries: entries.collect(),
            plans: Vec::new(),
        };
        let rebuilt = self.writer.rebuild(|| contents).await.unwrap();
        Outcome::Rebuilt(rebuilt.left_out.iter().map(number_of).collect())
    }

    async fn declare(&self, number: usize, said: &Said) -> Outcome {
        let declaration = self
            .model
            .declaration(number, said, owner(number), sample, record_of);
        match self.writer.declare(&declaration).await {
            Ok(declared) => {
                let seen = self.site.owner_snapshot(&declaration.owner, &[]).await;
                assert_eq!(seen.position, Some(declared.applied));
                assert!(said.is_last || seen.number == declared.number);
                let refused = declared.refused.iter();
                let refused =
                    refused.map(|(hash, why)| (number_of(hash), *why == HashRefusal::Taken));
                Outcome::Done(refused.collect())
            }
            Err(WriteError::Outdated { number }) => Outcome::Outdated(number),
            Err(WriteError::OwnerGone) => Outcome::Gone,
            Err(error) => panic!("{error}"),
        }
    }

    /// Carries a step out on both sides, and compares them.
    async fn carry_out(&mut self, step: &Step) -> Facts {
        let outcome = match step {
            Step::Claim => {
                self.writer = self.site.claim().await;
                None
            }
            Step::Rebuild(owners) => Some(self.rebuild(owners).await),
            Step::Declare(owner, said) => Some(self.declare(*owner, said).await),
        };
        let seen = self.facts().await;
        let expected = match step {
            Step::Claim => None,
            Step::Rebuild(owners) => Some(self.model.rebuild(owners, &seen)),
            Step::Declare(owner, said) => Some(self.model.declare(*owner, said, &seen)),
        };
        assert_eq!(outcome, expected, "{step:?}");
        assert_eq!(seen, self.model.facts(&seen), "{step:?}");
        seen
    }
}

async fn agrees(steps: Vec<Step>) {
    let mut pair = Pair::new().await;
    let gate = pair.site.complete_gate("gate-1").await;
    let mut seen = Facts::default();
    for step in &steps {
        pair.carry_out(step).await;
        // A declaration that is repeated changes nothing.
        seen = pair.carry_out(step).await;
    }
    let meta = pair.site.observe().await.meta.unwrap();
    assert_eq!(pair.site.counts().await, meta.counts);
    let stored = pair.site.stored().await;
    gate.comes_to("the last change", |status| {
        (status.generation, status.seq) == (meta.generation, meta.seq)
    })
    .await;
    let rebuilds = steps.iter().filter(|step| matches!(step, Step::Rebuild(_)));
    let loads = gate.status().loads;
    assert!(loads <= 1 + rebuilds.count() as u64, "the feed is enough");
    for hash in 0..HASHES {
        let holds = |number: &usize| seen.records[*number].contains_key(&hash);
        let wanted = (0..OWNERS).find(holds).map(|number| StoredEntry {
            record: Some(record_of(seen.records[number][&hash])),
            owner: Some(owner(number)),
        });
        assert_eq!(stored.get(&sample(hash)), wanted.as_ref());
        let known = gate.record(sample(hash));
        assert_eq!(known, wanted.and_then(|stored| stored.record));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_directory_agrees_with_a_plain_model(steps in vec(step(), 1..STEPS)) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agrees(steps));
    }
}
