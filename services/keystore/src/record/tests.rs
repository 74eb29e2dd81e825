//! The packed form round-trips, refuses what it does not know, and stays small; moments decide to
//! the millisecond.

use proptest::prelude::*;

use super::*;

fn record() -> Record {
    Record {
        key_id: "4fGh7Kq2ZpX1".parse().unwrap(),
        account: "acme".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: 0,
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn any_time() -> impl Strategy<Value = Option<Timestamp>> {
    proptest::option::of((-62_167_219_200_000..=253_402_300_799_999i64).prop_map(at))
}

fn any_record() -> impl Strategy<Value = Record> {
    (
        (
            "[0-9A-Za-z]{12}",
            "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
            "[A-Za-z][A-Za-z0-9-]{0,62}",
        ),
        any::<bool>(),
        (any_time(), any_time(), any_time()),
        any::<u32>(),
    )
        .prop_map(
            |((key_id, account, plan), suspended, times, revision)| Record {
                key_id: key_id.parse().unwrap(),
                account: account.parse().unwrap(),
                plan: plan.parse().unwrap(),
                state: if suspended {
                    KeyState::Suspended
                } else {
                    KeyState::Active
                },
                not_before: times.0,
                expires: times.1,
                retires: times.2,
                revision,
            },
        )
}

proptest! {
    #[test]
    fn every_record_reads_back_as_it_was_packed(record in any_record()) {
        prop_assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn a_cut_record_is_refused(record in any_record(), cut in any::<prop::sample::Index>()) {
        let packed = record.encode();
        prop_assert_eq!(Record::decode(&packed[..cut.index(packed.len())]), None);
    }
}

#[test]
fn the_packed_form_is_a_wire_format() {
    let packed = Record {
        expires: Some(at(1_798_761_600_000)),
        state: KeyState::Suspended,
        revision: 300,
        ..record()
    };
    let golden =
        "0105ac0280d0dee8d968 0c34664768374b71325a705831 0461636d65 0a456e7465727072697365";
    assert_eq!(hex::encode(packed.encode()), golden.replace(' ', ""));
}

#[test]
fn a_record_of_a_later_version_is_refused() {
    let mut packed = record().encode();
    packed[0] = 2;
    assert_eq!(Record::decode(&packed), None);
}

#[test]
fn a_typical_record_fits_a_compact_list_of_redis() {
    let packed = Record {
        expires: Some(at(1_798_761_600_000)),
        ..record()
    }
    .encode();
    assert!(packed.len() <= 64, "{} bytes", packed.len());
}

#[test]
fn a_key_is_valid_at_not_before_and_expired_at_its_expiry() {
    let record = Record {
        not_before: Some(at(1000)),
        expires: Some(at(2000)),
        ..record()
    };
    for (now, validity) in [
        (999, Validity::NotYetValid),
        (1000, Validity::Active),
        (1999, Validity::Active),
        (2000, Validity::Expired),
    ] {
        assert_eq!(record.validity(at(now)), validity, "at {now}");
    }
}

#[test]
fn a_retired_key_stays_retired_whatever_else_is_declared() {
    let record = Record {
        state: KeyState::Suspended,
        expires: Some(at(10)),
        retires: Some(at(10)),
        ..record()
    };
    assert_eq!(record.validity(at(9)), Validity::Suspended);
    assert_eq!(record.validity(at(10)), Validity::Retired);
}
