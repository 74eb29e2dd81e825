//! The clauses about restrictions, which take effect whatever else is wrong with the ApiKey.

use std::time::Duration;

use water_domain::Timestamp;

use super::tests::{Case, at, brought, check, generated, issued, partner, told};
use super::*;
use crate::key::facts::{Admission, Material, Restrictions, Secret, Spec};

/// Key 1 is in force, and its ApiKey cannot be decoded but for these.
fn undecodable_but(suspended: bool, expires: Option<Timestamp>) -> Case {
    issued().with(|case| {
        case.spec = None;
        case.restrictions = Restrictions {
            suspended,
            expires,
            brought: None,
        };
    })
}

/// Hash 1 is in force, and its ApiKey cannot be decoded but for hash 2 and the overlap in ms.
fn undecodable_with_another_hash(overlap: u64) -> Case {
    partner().with(|case| {
        case.spec = None;
        case.restrictions.brought = Some((2, Duration::from_millis(overlap)));
    })
}

fn suspended_before() -> Case {
    undecodable_but(false, None).directory(|directory| {
        let held = directory.held.values_mut().flatten();
        held.for_each(|rules| rules.suspended = true);
    })
}

#[test]
#[rustfmt::skip]
fn a_restriction_is_never_held_up() {
    let suspend = |spec: &mut Spec<u8, u8>| {
        spec.rules.suspended = true;
        spec.rules.not_before = Some(at(4));
        spec.rules.expires = Some(at(5000));
    };
    let widen = |case: Case| {
        case.directory(|directory| {
            let held = directory.held.get_mut(&1).unwrap().as_mut().unwrap();
            held.suspended = true;
            held.expires = Some(at(5000));
            held.not_before = Some(at(4));
        })
    };
    let foreign = || issued().with(|case| case.secret = Secret::Foreign);
    let on = |case: Case, plan| {
        case.directory(|directory| directory.held.get_mut(&1).unwrap().as_mut().unwrap().plan = plan)
    };
    let unreadable = |case: Case| case.directory(|directory| directory.held.extend([(2, None)]));
    let edited = |spec: &mut Spec<u8, u8>| spec.material = Material::Brought(2);
    check(&[
        (
            "the plan is unknown, or the WaterDataApi away",
            issued().hindered().declared(suspend),
            "Declare [1 suspended from 4 until 5000]",
        ),
        (
            "the plan is unknown: the old one stays",
            issued().hindered().declared(|spec| spec.rules.plan = 2),
            "Refused(NotAdmitted)",
        ),
        ("what widens waits", widen(issued().hindered()), "Refused(NotAdmitted)"),
        ("nothing is taken away", issued().hindered(), "Refused(NotAdmitted)"),
        ("a replaced hash retires, its successor waits", partner().hindered().declared(edited), "Retire(1) at 1010"),
        ("and so does the directory say", partner().hindered().declared(edited).noted(1, 1010), "Declare [1 retires 1010]"),
        ("nothing new is published", brought().announced(&[1]).hindered(), "Refused(NotAdmitted)"),
        ("nor made", generated().hindered(), "Refused(NotAdmitted)"),
        ("a foreign Secret", foreign().declared(suspend), "Declare [1 suspended from 4 until 5000]"),
        ("what widens waits", widen(foreign()), "Refused(SecretConflict)"),
        ("a lowered plan acts", on(foreign(), 3), "Declare [1]"),
        ("a raised one waits", on(foreign(), 2), "Refused(SecretConflict)"),
        ("a record that cannot be read is on no known plan", unreadable(issued().hindered()), "Declare [1] withdraw {2}"),
        ("an object that cannot be decoded stays as it is", issued().with(|case| case.spec = None), "Refused(Undecodable)"),
        ("but for a suspension", undecodable_but(true, None), "Declare [1 suspended]"),
        ("or an end", undecodable_but(false, Some(at(2000))), "Declare [1 until 2000]"),
        ("or another hash", undecodable_with_another_hash(10), "Declare [1 retires 1010]"),
        ("which ends it at once without an overlap", undecodable_with_another_hash(0), "Declare []"),
        (
            "or if it was never in force",
            undecodable_with_another_hash(10).with(|case| case.ledger.is_shown = false),
            "Declare []",
        ),
        (
            "and which ends it once",
            undecodable_with_another_hash(10).directory(|directory| {
                let held = directory.held.values_mut().flatten();
                held.for_each(|rules| rules.retires = Some(at(1005)));
            }),
            "Refused(Undecodable)",
        ),
        ("which are never taken back", suspended_before(), "Refused(Undecodable)"),
        (
            "or a record that cannot be decoded either",
            undecodable_but(true, None).directory(|directory| directory.held = BTreeMap::from([(1, None)])),
            "Refused(Undecodable)",
        ),
        (
            "and for a namespace that is not admitted",
            issued().with(|case| (case.spec, case.admission) = (None, Admission::Refused)),
            "Declare [] withdraw {1}",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_restriction_comes_before_everything_that_is_written_to_kubernetes() {
    let suspend = |spec: &mut Spec<u8, u8>| spec.rules.suspended = true;
    let replace = |spec: &mut Spec<u8, u8>| spec.material = Material::Brought(2);
    let unfinalized = || issued().with(|case| case.has_finalizer = false);
    let replaced = || partner().declared(replace);
    let hindered = || replaced().hindered();
    check(&[
        ("the finalizer", unfinalized().declared(suspend), "Declare [1 suspended]"),
        ("which follows", unfinalized(), "Finalize"),
        ("the announcement of another hash", replaced().declared(suspend), "Declare [1 suspended]"),
        ("which follows", replaced(), "Announce(2)"),
        ("the word of an end", hindered().declared(suspend), "Declare [1 suspended]"),
        ("which follows", hindered(), "Retire(1) at 1010"),
        ("another key", issued().declared(suspend).declared(|spec| spec.rotation.revision = 1), "Declare [1 suspended]"),
    ]);
}

#[test]
fn a_restriction_needs_neither_secret_nor_admission_and_changes_nothing_else() {
    let suspend = |spec: &mut Spec<u8, u8>| spec.rules.suspended = true;
    let replace = |spec: &mut Spec<u8, u8>| spec.material = Material::Brought(2);
    let restricted = |case: &Case| match restriction(case) {
        Some(Step::Declare(declaration)) => Some(declaration.records),
        other => other.map(|step| panic!("{step:?}")),
    };
    let suspended = |case: &Case| {
        restricted(case).is_some_and(|records| {
            records.keys().eq([&1]) && records[&1].suspended && records[&1].retires.is_none()
        })
    };
    let unread = |case: Case| {
        case.with(|case| {
            case.admission = Admission::Hindered;
            case.secret = Secret::Missing;
        })
    };
    assert!(suspended(&unread(issued().declared(suspend))));
    assert!(suspended(&unread(
        partner().declared(replace).declared(suspend)
    )));
    assert_eq!(restricted(&unread(issued())), None);
    assert_eq!(restricted(&unread(partner().declared(replace))), None);
    assert_eq!(restricted(&unread(generated().made(1))), None);
    let withdrawn = issued().with(|case| {
        case.has_finalizer = false;
        case.admission = Admission::Refused;
    });
    assert_eq!(restricted(&withdrawn), Some(BTreeMap::new()));
}

#[test]
fn a_replaced_hash_ends_where_nothing_can_be_read_or_written() {
    let replace = |overlap| {
        let replaced = partner().declared(|spec| spec.material = Material::Brought(2));
        replaced.with(|case| {
            case.restrictions.brought = Some((2, Duration::from_millis(overlap)));
        })
    };
    let ends = |case: &Case| match unwritten_restriction(case) {
        Some(Step::Declare(declaration)) => told(&declaration),
        other => format!("{other:?}"),
    };
    assert_eq!(ends(&replace(10)), "Declare [1 retires 1010]");
    assert_eq!(ends(&replace(0)), "Declare []");
    assert_eq!(ends(&replace(10).retires(1, 1005)), "None", "not later");
    assert_eq!(ends(&partner()), "None");
}
