//! The clauses about keys that take the place of others: rotation, reissue and adoption.

use std::time::Duration;

use super::tests::{Case, NOW, OVERLAP, at, check, generated, issued, partner, rules};
use super::*;
use crate::key::facts::{Admission, Content, DirectoryContent, Issue, KeyRules, Secret, Spec};

/// Time at which a key retires that is replaced now.
const SOON: i64 = NOW + OVERLAP;

fn raised(spec: &mut Spec<u8, u8>) {
    spec.rotation.revision = 1;
}

fn cut(spec: &mut Spec<u8, u8>) {
    spec.rotation.overlap = Duration::ZERO;
}

fn until(case: Case, hash: u8, time: i64) -> Case {
    let rules = KeyRules {
        expires: Some(at(time)),
        ..rules()
    };
    case.directory(|directory| directory.held.extend([(hash, Some(rules))]))
}

fn suspended(case: Case) -> Case {
    let case = case.declared(|spec| spec.rules.suspended = true);
    case.directory(|directory| {
        let held = directory.held.values_mut().flatten();
        held.for_each(|rules| rules.suspended = true);
    })
}

/// Key 1 is in force, and key 2 is announced in its place.
fn rotating() -> Case {
    issued().declared(raised).announced(&[1, 2]).made(2)
}

/// The Secret holds key 2, of which no status tells yet.
fn replaced() -> Case {
    rotating().held(&[1, 2]).secret(2, Some((1, SOON)))
}

/// Key 2 is in force, and key 1 beside it.
fn overlapping() -> Case {
    issued()
        .announced(&[2, 1])
        .revealed(&[1, 2])
        .held(&[2])
        .retires(1, SOON)
        .secret(2, Some((1, SOON)))
}

#[test]
#[rustfmt::skip]
fn a_rotation_leaves_no_instant_without_a_key() {
    let both = || rotating().held(&[1, 2]);
    check(&[
        ("a raised revision asks for a key", issued().declared(raised), "Make"),
        ("which is announced", issued().declared(raised).made(2), "Announce(2)"),
        ("published beside the old one", rotating(), "Declare [1, 2]"),
        ("known to every gate first", both().unacknowledged(), "Awaiting"),
        ("written over the old one", both(), "Replace(2) 1 retires 1010"),
        ("then the old one retires", replaced(), "Declare [1 retires 1010, 2]"),
        ("and both are in force", replaced().retires(1, SOON), "InForce(2)"),
        ("for every gate", replaced().retires(1, SOON).unacknowledged(), "Awaiting"),
        ("during the overlap", overlapping(), "InForce(2)"),
        (
            "whose end is the old one's by Redis' clock",
            overlapping().directory(|directory| directory.now = at(SOON)),
            "Declare [2]",
        ),
        ("an overlap that is taken back ends at once", overlapping().declared(cut), "Declare [2]"),
        (
            "though something hinders",
            overlapping().declared(cut).with(|case| case.admission = Admission::Hindered),
            "Declare [2]",
        ),
        ("without an overlap it retires at once", both().declared(cut), "Replace(2) 1 retires 1000"),
        ("and is cut", rotating().held(&[1, 2]).secret(2, Some((1, NOW))), "Declare [2]"),
        ("a suspended key rotates too", suspended(both()), "Replace(2) 1 retires 1010"),
        ("not one whose revision stays", issued(), "InForce(1)"),
        (
            "nor again for the same revision",
            issued()
                .declared(raised)
                .with(|case| case.issue = Some(Issue { revision: 1, time: at(NOW) })),
            "InForce(1)",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn an_old_key_never_outlives_its_own_end() {
    let later = |spec: &mut Spec<u8, u8>| spec.rules.expires = Some(at(9000));
    let both = |end| until(rotating().held(&[1, 2]), 1, end).declared(later);
    let next = |case| until(case, 2, 9000);
    check(&[
        ("an end before the overlap's", next(both(1005)), "Replace(2) 1 retires 1005"),
        ("an end after it", next(both(2000)), "Replace(2) 1 retires 1010"),
        ("it is not put off with the new one's", both(2000), "Declare [1 until 2000, 2 until 9000]"),
        ("without a rotation it is", until(issued(), 1, 2000).declared(later), "Declare [1 until 9000]"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_period_is_judged_by_redis_clock() {
    let aged = |age: i64| {
        let issued = issued().with(|case| case.issue = Some(Issue { revision: 0, time: at(NOW - age) }));
        issued.declared(|spec| spec.rotation.period = Some(Duration::from_millis(60)))
    };
    let ends = |time| move |spec: &mut Spec<u8, u8>| spec.rules.expires = Some(at(time));
    check(&[
        ("too old", aged(60), "Make"),
        ("not yet", aged(59), "InForce(1)"),
        ("not without a period", aged(60).declared(|spec| spec.rotation.period = None), "InForce(1)"),
        ("not after its end", until(aged(60), 1, NOW).declared(ends(NOW)), "InForce(1)"),
        ("but before it", until(aged(60), 1, NOW + 1).declared(ends(NOW + 1)), "Make"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_rotation_waits_for_nothing_but_hindrances_and_is_carried_through() {
    let lost = || issued().announced(&[1, 2]).held(&[1, 2]);
    let again = || overlapping().declared(raised);
    let restored = |case: Case| case.with(|case| case.secret = Secret::Edited);
    check(&[
        ("a hindrance", issued().declared(raised).hindered(), "Refused(NotAdmitted)"),
        ("which leaves both published", rotating().held(&[1, 2]).hindered(), "Refused(NotAdmitted)"),
        ("but the old one's end acts", replaced().hindered(), "Declare [1 retires 1010, 2]"),
        ("what a lost leader announced may yet be written: another is made", lost(), "Make"),
        ("beside it", lost().announced(&[1, 2, 3]).made(3), "Declare [1, 2, 3]"),
        (
            "then it cannot be written any more",
            lost()
                .announced(&[1, 2, 3])
                .held(&[1, 2, 3])
                .secret(3, Some((1, SOON))),
            "Declare [1 retires 1010, 3] withdraw {2}",
        ),
        (
            "nothing begins before the status tells of the Secret's key",
            replaced()
                .retires(1, SOON)
                .declared(|spec| spec.rotation.revision = 2),
            "InForce(2)",
        ),
        ("during an overlap too", again(), "Make"),
        ("which ends with the next one's publication", again().announced(&[2, 3, 1]).made(3), "Declare [2, 3]"),
        (
            "a revoked key is issued afresh",
            issued()
                .declared(raised)
                .held(&[])
                .directory(|directory| directory.barred.extend([(1, at(5))])),
            "Make",
        ),
        ("and retires nothing", rotating().held(&[2]).directory(|directory| directory.barred.extend([(1, at(5))])), "Replace(2)"),
        ("an edited Secret does not delay it", restored(issued().declared(raised)), "Make"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_secret_that_is_gone_or_edited_is_issued_again_with_overlap() {
    let lost = |secret| issued().with(|case| case.secret = secret);
    let next = |secret| lost(secret).announced(&[1, 2]).made(2);
    let content = |hash| Content {
        hash,
        retiring: None,
        is_as_declared: true,
    };
    check(&[
        ("gone", lost(Secret::Missing), "Make"),
        ("edited", lost(Secret::Edited), "Make"),
        ("it names a key that nobody announced", lost(Secret::Own(content(9))), "Make"),
        ("it names the key before", overlapping().secret(1, None), "Make"),
        ("counted", lost(Secret::Missing).made(2), "Announce(2) again"),
        ("both are published", next(Secret::Edited), "Declare [1, 2]"),
        ("created", next(Secret::Missing).held(&[1, 2]), "Reveal(2) 1 retires 1010"),
        ("or written over", next(Secret::Edited).held(&[1, 2]), "Replace(2) 1 retires 1010"),
        ("the first one is not issued again, but issued", generated().made(2), "Announce(2)"),
        (
            "labels, owner or base URL are brought up to date",
            issued().with(|case| {
                case.secret = Secret::Own(Content {
                    is_as_declared: false,
                    ..content(1)
                });
            }),
            "Amend",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_successor_that_is_lost_before_the_status_tells_of_it_ends_no_overlap() {
    let published = |case: Case, hashes: &[u8]| case.held(hashes).retires(1, 1005);
    let lost = || published(issued().announced(&[1, 2]), &[2]).with(|case| case.secret = Secret::Edited);
    let announced = || lost().announced(&[1, 2, 3]).made(3);
    let next = || published(announced(), &[2, 3]);
    check(&[
        ("another is made", lost(), "Make"),
        ("announced", lost().made(3), "Announce(3) again"),
        ("published beside both", announced(), "Declare [1 retires 1005, 2, 3]"),
        ("known to every gate first", next().unacknowledged(), "Awaiting"),
        ("written with the end that the old one has", next(), "Replace(3) 1 retires 1005"),
        ("the lost one goes", next().secret(3, Some((1, 1005))), "Declare [1 retires 1005, 3] withdraw {2}"),
        (
            "a terminating namespace gets no other",
            issued().with(|case| (case.secret, case.is_terminating) = (Secret::Missing, true)),
            "Held(Terminating)",
        ),
        ("a terminating namespace puts no end off", lost().with(|case| case.is_terminating = true), "Held(Terminating)"),
    ]);
}

/// Others may write a status: in these, nothing else knows key 7.
#[test]
#[rustfmt::skip]
fn a_key_that_only_the_status_names_is_not_published() {
    let missing = |case: Case| case.with(|case| case.secret = Secret::Missing);
    let announced = || issued().announced(&[1, 7]);
    let next = || issued().announced(&[1, 2, 7]).made(2);
    let current = || missing(issued().announced(&[7]).revealed(&[7]));
    let current_next = || missing(issued().announced(&[7, 2]).revealed(&[7]).made(2));
    let readmitted = || issued().declared(raised).held(&[]);
    check(&[
        ("announced: another is made", announced(), "Make"),
        ("published without it", next(), "Declare [1, 2]"),
        ("and written", next().held(&[1, 2]), "Replace(2) 1 retires 1010"),
        ("after which the status names it no more", next().held(&[2]).retires(1, SOON).secret(2, Some((1, SOON))), "InForce(2)"),
        ("before any key", generated().announced(&[7]), "Make"),
        ("the one in force, while the Secret is missing", current(), "Make"),
        ("neither with the next one", current_next(), "Declare [1, 2]"),
        ("nor for an overlap", current_next().held(&[1, 2]), "Reveal(2)"),
        ("in a directory of nothing", current_next().held(&[]), "Declare [2]"),
        ("but one that the Secret names, too, which was withdrawn", readmitted(), "Declare [1]"),
        ("and retires", readmitted().announced(&[1, 2]).held(&[1, 2]).made(2), "Replace(2) 1 retires 1010"),
    ]);
}

#[test]
#[rustfmt::skip]
fn three_reissues_in_ten_minutes_are_enough() {
    let minutes = |minutes: i64| at(NOW + minutes * 60_000);
    let lost = |reissued: &[i64], now: i64| {
        let reissues = reissued.iter().map(|time| minutes(*time)).collect();
        let lost = issued().with(|case| {
            case.secret = Secret::Missing;
            case.reissues = reissues;
        });
        lost.directory(|directory| directory.now = minutes(now))
    };
    check(&[
        ("two", lost(&[1, 2], 3), "Make"),
        ("a fourth", lost(&[1, 2, 3], 4), "Refused(ReissueLimit(Timestamp(661000)))"),
        ("until the first is ten minutes old", lost(&[1, 2, 3], 11), "Make"),
        ("the owner's word is no reissue", lost(&[1, 2, 3], 4).declared(raised), "Make"),
        ("not by times to come, which somebody wrote", lost(&[5, 6, 7], 4), "Make"),
        ("what was announced is carried through", lost(&[1, 2, 3], 4).announced(&[1, 2]).held(&[1, 2]), "Make"),
        (
            "restrictions act meanwhile",
            lost(&[1, 2, 3], 4).declared(|spec| spec.rules.suspended = true),
            "Declare [1 suspended]",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn an_edited_brought_hash_rotates_with_overlap() {
    let edited = || partner().declared(|spec| spec.material = Material::Brought(2));
    let begun = || edited().announced(&[1, 2]);
    let third = || begun().declared(|spec| spec.material = Material::Brought(3));
    let told = || {
        begun()
            .announced(&[2, 1])
            .revealed(&[1, 2])
            .held(&[2])
            .retires(1, SOON)
    };
    let retiring = || begun().held(&[1, 2]).noted(1, SOON);
    let back = || told().noted(1, SOON).declared(|spec| spec.material = Material::Brought(1));
    let revoked = |directory: &mut DirectoryContent<u8, u8>| directory.barred.extend([(2, at(5))]);
    let beside = || edited().retires(3, 1005).noted(3, 1005).directory(revoked);
    let taken = |directory: &mut DirectoryContent<u8, u8>| directory.taken.extend([2]);
    check(&[
        ("announced first", edited(), "Announce(2)"),
        ("then declared beside the old one", begun(), "Declare [1, 2]"),
        ("known to every gate", begun().held(&[1, 2]).unacknowledged(), "Awaiting"),
        ("then the status says when the old one retires", begun().held(&[1, 2]), "Retire(1) at 1010"),
        ("and the directory", retiring(), "Declare [1 retires 1010, 2]"),
        ("at that time, however late", retiring().noted(1, 1004), "Declare [1 retires 1004, 2]"),
        ("but never later than an overlap from now", retiring().noted(1, 9000), "Declare [1 retires 1010, 2]"),
        ("also where a rebuild knew no end", told().held(&[1, 2]).noted(1, 9000), "Declare [1 retires 1010, 2]"),
        ("even where a rebuild has lost the new one", retiring().held(&[1]), "Declare [1, 2]"),
        ("without an overlap it is cut", begun().held(&[1, 2]).declared(cut).noted(1, NOW), "Declare [2]"),
        ("which is told first, too", begun().held(&[1, 2]).declared(cut), "Retire(1) at 1000"),
        ("and where the overlap is ended since", retiring().declared(cut), "Declare [2]"),
        ("both are in force", begun().held(&[2]).retires(1, SOON), "InForce(2)"),
        ("and stay so", told(), "InForce(2)"),
        ("unless the overlap is ended", told().declared(cut), "Declare [2]"),
        ("until then", told().directory(|directory| directory.now = at(SOON)), "Declare [2]"),
        ("never past its own end", until(begun().held(&[1, 2]), 1, 1005), "Retire(1) at 1005"),
        ("corrected before it was in force", third(), "Announce(3)"),
        ("no hash is forgotten", third().announced(&[1, 2, 3]).held(&[1, 2]), "Declare [1, 3]"),
        (
            "another edit ends the overlap",
            told()
                .declared(|spec| spec.material = Material::Brought(3))
                .announced(&[2, 1, 3]),
            "Declare [2, 3]",
        ),
        ("an edit taken back", told().declared(|spec| spec.material = Material::Brought(1)), "Declare [1, 2]"),
        ("lets the other one retire", back().held(&[1, 2]), "Retire(2) at 1010"),
        ("the old one retires though the new one is revoked", edited().directory(revoked), "Retire(1) at 1010"),
        ("as the status says", edited().directory(revoked).noted(1, SOON), "Declare [1 retires 1010]"),
        ("but never later than an overlap from now", edited().directory(revoked).noted(1, 9000), "Declare [1 retires 1010]"),
        ("and though it is another's", edited().directory(taken).noted(1, SOON), "Declare [1 retires 1010]"),
        ("the end of another that still works is not forgotten for it", beside(), "Declare [1 retires 1010, 3 retires 1005]"),
        (
            "one that was never in force is cut at once, though something hinders its successor",
            third().announced(&[1, 2, 3]).held(&[2]).retires(1, SOON).noted(1, SOON).hindered(),
            "Declare [1 retires 1010]",
        ),
        (
            "and the one that was in force works on beside the third",
            third().announced(&[1, 2, 3]).held(&[]).retires(1, SOON).retires(2, SOON).noted(1, SOON),
            "Declare [1 retires 1010, 3]",
        ),
        ("one that was never in force goes at once", begun().revealed(&[]).held(&[1]), "Declare [2]"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_secret_of_an_apikey_that_is_gone_is_adopted() {
    let left = |case: &mut Case, is_collected| {
        let content = Content {
            hash: 5,
            retiring: None,
            is_as_declared: false,
        };
        case.secret = Secret::Orphan { content, is_requested: true, is_collected };
    };
    let secret = |case: &mut Case| left(case, false);
    let orphan = || generated().with(secret);
    let collected = || generated().with(|case| left(case, true));
    let planted = |case: &mut Case| {
        secret(case);
        if let Secret::Orphan { is_requested, .. } = &mut case.secret {
            *is_requested = false;
        }
    };
    let revoked = |directory: &mut DirectoryContent<_, _>| directory.barred.extend([(5, at(5))]);
    check(&[
        ("announced", orphan(), "Announce(5)"),
        ("then taken over", orphan().announced(&[5]), "Amend"),
        ("then published", orphan().announced(&[5]).secret(5, None), "Declare [5]"),
        ("though its owner is named", collected(), "Announce(5)"),
        ("not unless the ApiKey asks for it", generated().with(planted), "Refused(NotAdopted)"),
        ("or its own status names the key", generated().with(planted).announced(&[5]), "Amend"),
        ("not where its key was revoked: another is made", orphan().directory(revoked), "Make"),
        ("which is waited for where it went with its ApiKey", collected().directory(revoked), "Held(SecretRemains)"),
        ("nor where another has it", orphan().directory(|directory| directory.taken.extend([5])), "Refused(NotAdopted)"),
        ("nor in the place of another key", issued().with(secret), "Refused(NotAdopted)"),
        ("which stays published", issued().with(|case| left(case, true)), "Refused(NotAdopted)"),
        ("nor without admission", orphan().with(|case| case.admission = Admission::Refused), "Refused(NotAdmitted)"),
    ]);
}

/// The Secret of an ApiKey of this name that is gone holds key 5, which was revoked with it.
fn restored(case: Case) -> Case {
    let content = Content {
        hash: 5,
        retiring: None,
        is_as_declared: false,
    };
    let case = case.directory(|directory| directory.barred.extend([(5, at(5))]));
    case.with(|case| {
        case.secret = Secret::Orphan {
            content,
            is_requested: false,
            is_collected: false,
        };
    })
}

#[test]
#[rustfmt::skip]
fn a_restored_secret_whose_key_was_revoked_gets_another_key() {
    let first = || restored(generated().announced(&[1]).made(1));
    let lost = || restored(issued());
    let next = || restored(issued().announced(&[1, 2]).made(2));
    let told = || restored(generated().announced(&[5]).revealed(&[5]));
    let free = |directory: &mut DirectoryContent<_, _>| directory.barred.clear();
    check(&[
        ("it was there before its ApiKey", restored(generated()), "Make"),
        ("which is issued its first key", restored(generated()).made(1), "Announce(1)"),
        ("published", first(), "Declare [1]"),
        ("known to every gate first", first().held(&[1]).unacknowledged(), "Awaiting"),
        ("and written over", first().held(&[1]), "Replace(1)"),
        ("a status that was restored too names the revoked key", told(), "Make"),
        ("which is published no more", told().announced(&[5, 1]).made(1), "Declare [1]"),
        ("put over the ApiKey's other key", lost(), "Make"),
        ("counted", lost().made(2), "Announce(2) again"),
        ("both others are published", next(), "Declare [1, 2]"),
        ("the other key works for the overlap", next().held(&[1, 2]), "Replace(2) 1 retires 1010"),
        (
            "put there again and again",
            lost().with(|case| case.reissues = vec![at(NOW); 3]),
            "Refused(ReissueLimit(Timestamp(601000)))",
        ),
        ("not in a terminating namespace", lost().with(|case| case.is_terminating = true), "Held(Terminating)"),
        ("nor without admission", lost().with(|case| case.admission = Admission::Refused), "Declare [] withdraw {1}"),
        ("nor while something hinders it", lost().hindered(), "Refused(NotAdmitted)"),
        ("nor over a key that was not revoked", lost().directory(free), "Refused(NotAdopted)"),
    ]);
}
