//! Any bytes as a key record: every gate decodes what Redis holds, whatever wrote it.
//!
//! `WATER_FUZZ_INPUTS` sets the number of inputs, and `WATER_FUZZ_SEED` the seed.

use water_domain::Timestamp;
use water_harness::Mutator;
use water_keystore::{KeyState, Record};

/// Number of inputs for about a second.
const INPUTS: u64 = 100_000;

fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap())
}

/// Packed records of every form: short and long, with and without each time.
fn records() -> Vec<Vec<u8>> {
    let at = |millis| Timestamp::from_millis(millis);
    let short = Record {
        key_id: "4fGh7Kq2ZpX1".parse().unwrap(),
        account: "a".parse().unwrap(),
        plan: "P".parse().unwrap(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: 0,
    };
    let long = Record {
        account: "a".repeat(63).parse().unwrap(),
        plan: "P".repeat(63).parse().unwrap(),
        state: KeyState::Suspended,
        not_before: at(-1),
        expires: at(1_800_000_000_000),
        retires: at(253_402_300_799_999),
        revision: u32::MAX,
        ..short.clone()
    };
    let expiring = Record {
        expires: at(0),
        ..short.clone()
    };
    [short, long, expiring]
        .map(|record| record.encode())
        .to_vec()
}

#[test]
fn any_bytes_are_a_record_or_refused_and_a_record_is_read_back_as_it_was() {
    let inputs = setting("WATER_FUZZ_INPUTS", INPUTS);
    let mutator = Mutator::new(records(), setting("WATER_FUZZ_SEED", 1));
    let mut decoded = 0;
    for input in mutator.take(inputs as usize) {
        let Some(record) = Record::decode(&input) else {
            continue;
        };
        decoded += 1;
        let packed = record.encode();
        assert_eq!(Record::decode(&packed), Some(record), "{input:x?}");
        assert!(packed.len() <= input.len(), "{input:x?}");
    }
    println!("{inputs} inputs, {decoded} of them records");
    assert!(decoded > 0, "the mutations leave nothing to decode");
}
