//! Random declarations by several ApiKeys over a few hashes, claims and rebuilds, against a plain model:
//! after each step the directory says of every ApiKey exactly what the model says, and in the end a
//! gate knows exactly these keys.

mod plain;

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use redis::aio::MultiplexedConnection;
use redis::{cmd, pipe};
use tokio::runtime::Builder;
use water_domain::KeyHash;
use water_keystore::{Contents, Entry, HashRefusal, Record, WriteError, Writer};

use crate::site::*;
use plain::{Facts, Outcome, Plain, Said};

const OWNERS: usize = plain::ORIGINS.len();
const HASHES: usize = 6;
const STEPS: usize = 25;

#[derive(Clone, Debug)]
enum Step {
    Declare(usize, Said),
    Claim,
    /// Which ApiKey has each hash.
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
                // A hash that is withdrawn or revoked is not declared beside it.
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

fn record_of(is_suspended: bool) -> Record {
    if is_suspended { suspended() } else { record() }
}

fn name(owner: usize) -> String {
    format!("key-{owner}")
}

/// What Redis holds, in the model's words.
async fn facts(site: &Site) -> Facts {
    let directory = site.directory();
    let mut facts = Facts::default();
    let hashes: Vec<KeyHash> = (0..HASHES).map(sample).collect();
    let number_of = |hash: &KeyHash| hashes.iter().position(|other| other == hash).unwrap();
    let numbers = |hashes: Vec<KeyHash>| hashes.iter().map(number_of).collect::<BTreeSet<_>>();
    for owner in 0..OWNERS {
        let uid = owner_named(&name(owner)).uid;
        let origin = plain::origin(owner);
        let snapshot = directory
            .owner_snapshot(&uid, &origin, &hashes)
            .await
            .unwrap();
        let records = snapshot.records.iter().map(|(hash, record)| {
            let record = record.as_ref().unwrap();
            (number_of(hash), *record == suspended())
        });
        facts.records.push(records.collect());
        let barred = snapshot.barred.iter();
        let barred = barred.map(|(hash, time)| (number_of(hash), time.as_millis()));
        facts.barred.push(barred.collect());
        facts
            .taken
            .push(numbers(snapshot.taken.into_iter().collect()));
        facts.gone.push(snapshot.is_gone);
        facts.numbers.push(snapshot.number);
        facts.now = snapshot.now.as_millis();
    }
    let vandal = &mut site.vandal().await;
    facts.tombstones = tombstones(site, vandal, &hashes).await;
    let mut lengths = pipe();
    let mut counted = BTreeSet::new();
    for hash in &hashes {
        for key in [
            site.instance.records(hash.shard()),
            site.instance.owners(hash.shard()),
        ] {
            if counted.insert(key.clone()) {
                lengths.cmd("HLEN").arg(key);
            }
        }
    }
    let lengths: Vec<u64> = lengths.query_async(vandal).await.unwrap();
    let fields: u64 = lengths.iter().sum();
    let meta = directory.observe().await.unwrap().meta.unwrap();
    assert!(meta.complete && meta.held_term == meta.term, "{meta:?}");
    assert_eq!(fields, meta.counts.records + meta.counts.owners);
    (facts.counts, facts.seq, facts.generation) = (meta.counts, meta.seq, meta.generation);
    facts
}

/// As they stand in Redis.
async fn tombstones(
    site: &Site,
    vandal: &mut MultiplexedConnection,
    hashes: &[KeyHash],
) -> BTreeMap<usize, BTreeMap<String, i64>> {
    let mut read = cmd("HGETALL");
    read.arg(site.instance.revoked());
    let stored: Vec<(Vec<u8>, String)> = read.query_async(vandal).await.unwrap();
    let of_keys = stored.into_iter().filter_map(|(field, text)| {
        let number = hashes
            .iter()
            .position(|hash| hash.as_bytes() == &field[..])?;
        let times = text.split(' ').map(|word| {
            let (account, time) = word.split_once('=').unwrap();
            (account.to_owned(), time.parse().unwrap())
        });
        Some((number, times.collect()))
    });
    of_keys.collect()
}

/// Carries one step out in Redis, and says what came of it.
async fn carry_out(site: &Site, writer: &mut Writer, model: &Plain, step: &Step) -> Outcome {
    match step {
        Step::Claim => {
            *writer = site.claim().await;
            Outcome::Done(BTreeMap::new())
        }
        Step::Rebuild(owners) => {
            let entries = owners.iter().map(|(hash, owner)| Entry {
                hash: sample(*hash),
                record: record(),
                owner: owner_named(&name(*owner)),
                origin: plain::origin(*owner),
            });
            let contents = Contents {
                entries: entries.collect(),
                plans: Vec::new(),
            };
            writer.rebuild(|| contents).await.unwrap();
            Outcome::Done(BTreeMap::new())
        }
        Step::Declare(owner, said) => {
            let declaration = model.declaration(*owner, said, &name(*owner), sample, record_of);
            match writer.declare(&declaration).await {
                Ok(declared) => {
                    let refused = declared.refused.into_iter().map(|(hash, refusal)| {
                        let number = (0..HASHES).find(|number| sample(*number) == hash);
                        (number.unwrap(), refusal == HashRefusal::Taken)
                    });
                    Outcome::Done(refused.collect())
                }
                Err(WriteError::Outdated { .. }) => Outcome::Outdated,
                Err(WriteError::OwnerGone) => Outcome::Gone,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

async fn agrees(steps: Vec<Step>) {
    let site = Site::new().await;
    let mut writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let mut model = Plain::new(&facts(&site).await);
    for step in &steps {
        let outcome = carry_out(&site, &mut writer, &model, step).await;
        let seen = facts(&site).await;
        let expected = match step {
            Step::Claim => Outcome::Done(BTreeMap::new()),
            Step::Rebuild(owners) => model.rebuild(owners, &seen),
            Step::Declare(owner, said) => model.declare(*owner, said, &seen),
        };
        assert_eq!(outcome, expected, "{step:?}");
        assert_eq!(seen, model.facts(&seen), "{step:?}");
    }
    let meta = site.directory().observe().await.unwrap().meta.unwrap();
    assert_eq!(site.directory().counts().await.unwrap(), meta.counts);

    gate.comes_to("the last change", |status| {
        (status.generation, status.seq) == (meta.generation, meta.seq)
    })
    .await;
    let records = facts(&site).await.records;
    let records: BTreeMap<usize, bool> = records.into_iter().flatten().collect();
    for number in 0..HASHES {
        let record = records.get(&number).copied().map(record_of);
        assert_eq!(gate.record(sample(number)), record);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_directory_agrees_with_a_plain_model(steps in vec(step(), 1..STEPS)) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agrees(steps));
    }
}
