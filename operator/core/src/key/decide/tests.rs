//! Each clause of the table of events in the operator's design, and its negation, as a row.

use std::time::Duration;

use water_domain::Timestamp;

use super::*;
use crate::key::facts::{
    Admission, Content, DirectoryContent, Issue, KeyRules, Restrictions, Rotation, Secret, Spec,
};
use crate::key::ledger::Ledger;
use crate::key::step::Handover;

pub(super) type Case = Facts<u8, u8>;

/// Redis' time.
pub(super) const NOW: i64 = 1000;
/// The overlap.
pub(super) const OVERLAP: i64 = 10;
/// The declared plan; 2 is another, and 3 one that the declared plan does not exceed.
const PLAN: u8 = 1;

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

pub(super) fn rules() -> KeyRules<u8> {
    KeyRules {
        plan: PLAN,
        suspended: false,
        not_before: None,
        expires: None,
        retires: None,
    }
}

/// A key with finalizer that is admitted and of which nothing is published.
fn new(material: Material<u8>) -> Case {
    Facts {
        is_deleting: false,
        has_finalizer: true,
        is_terminating: false,
        spec: Some(Spec {
            rules: rules(),
            material,
            rotation: Rotation {
                revision: 0,
                period: None,
                overlap: Duration::from_millis(OVERLAP as u64),
            },
            reinstate: None,
        }),
        restrictions: Restrictions::default(),
        named: BTreeSet::new(),
        ledger: Ledger::default(),
        issue: None,
        reissues: Vec::new(),
        admission: Admission::Admitted,
        wider_plans: BTreeSet::from([PLAN, 3]),
        secret: Secret::Missing,
        made: None,
        is_id_taken: false,
        directory: Directory::Open(DirectoryContent {
            number: 7,
            held: BTreeMap::new(),
            barred: BTreeMap::new(),
            taken: BTreeSet::new(),
            is_gone: false,
            is_acknowledged: true,
            now: at(NOW),
        }),
    }
}

pub(super) fn generated() -> Case {
    new(Material::Generated)
}

pub(super) fn brought() -> Case {
    new(Material::Brought(1))
}

/// Key 1 is in force.
pub(super) fn issued() -> Case {
    generated()
        .announced(&[1])
        .revealed(&[1])
        .held(&[1])
        .secret(1, None)
}

/// Hash 1 is in force.
pub(super) fn partner() -> Case {
    brought().announced(&[1]).revealed(&[1]).held(&[1])
}

impl Case {
    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn directory(self, change: impl FnOnce(&mut DirectoryContent<u8, u8>)) -> Self {
        self.with(|case| match &mut case.directory {
            Directory::Open(directory) => change(directory),
            _ => panic!("the directory is not open"),
        })
    }

    /// The status names these, the current one first.
    pub(super) fn announced(self, hashes: &[u8]) -> Self {
        self.with(|case| {
            case.ledger.current = hashes.first().copied();
            case.ledger.candidates = hashes.iter().skip(1).copied().collect();
            case.named.extend(hashes);
        })
    }

    /// Puts these of them in force: the current one, and the one before it.
    pub(super) fn revealed(self, hashes: &[u8]) -> Self {
        self.with(|case| {
            let ledger = &mut case.ledger;
            ledger.is_shown = ledger
                .current
                .is_some_and(|current| hashes.contains(&current));
            let before = hashes.iter().find(|hash| ledger.current != Some(**hash));
            ledger.retiring = before.map(|before| (*before, at(NOW + OVERLAP / 2)));
            ledger.candidates.retain(|hash| !hashes.contains(hash));
        })
    }

    /// The status names this end of a key.
    pub(super) fn noted(self, hash: u8, time: i64) -> Self {
        self.with(|case| case.ledger.retiring = Some((hash, at(time))))
    }

    pub(super) fn held(self, hashes: &[u8]) -> Self {
        let held = |hash: &u8| (*hash, Some(rules()));
        self.directory(|directory| directory.held = hashes.iter().map(held).collect())
    }

    pub(super) fn made(self, hash: u8) -> Self {
        self.with(|case| case.made = Some(hash))
    }

    pub(super) fn unacknowledged(self) -> Self {
        self.directory(|directory| directory.is_acknowledged = false)
    }

    pub(super) fn declared(self, change: impl FnOnce(&mut Spec<u8, u8>)) -> Self {
        self.with(|case| change(case.spec.as_mut().unwrap()))
    }

    /// Puts this key into its Secret, which held that one, which retires then.
    pub(super) fn secret(self, hash: u8, retiring: Option<(u8, i64)>) -> Self {
        let content = Content {
            hash,
            retiring: retiring.map(|(before, time)| (before, at(time))),
            is_as_declared: true,
        };
        self.with(|case| case.secret = Secret::Own(content))
    }

    /// Holds this key, which retires then.
    pub(super) fn retires(self, hash: u8, time: i64) -> Self {
        let rules = KeyRules {
            retires: Some(at(time)),
            ..rules()
        };
        self.directory(|directory| directory.held.extend([(hash, Some(rules))]))
    }

    fn deleting(self) -> Self {
        self.with(|case| case.is_deleting = true)
    }

    pub(super) fn hindered(self) -> Self {
        self.with(|case| {
            case.admission = Admission::Hindered;
            case.wider_plans.clear();
        })
    }
}

/// Decision in words: the step, or without one the verdict.
fn decided(case: &Case) -> String {
    match decide(case) {
        Report(verdict) => format!("{verdict:?}"),
        Do(Step::Declare(declaration)) => told(&declaration),
        Do(Step::Make(issue)) => {
            let (revision, time) = (case.spec.as_ref().unwrap().rotation.revision, now(case));
            assert_eq!(issue, Issue { revision, time });
            "Make".into()
        }
        Do(Step::Announce { hash, reissued }) => {
            assert!(reissued.is_none_or(|at| at == now(case)));
            format!("Announce({hash}){}", reissued.map_or("", |_| " again"))
        }
        Do(Step::Retire { hash, at }) => format!("Retire({hash}) at {}", at.as_millis()),
        Do(Step::Reveal(handover)) => format!("Reveal{}", pair(&handover)),
        Do(Step::Replace(handover)) => format!("Replace{}", pair(&handover)),
        Do(step) => format!("{step:?}"),
    }
}

fn now(case: &Case) -> Timestamp {
    match &case.directory {
        Directory::Open(directory) => directory.now,
        _ => panic!("the directory is not open"),
    }
}

fn pair(handover: &Handover<u8>) -> String {
    let retiring = handover.retiring.map_or_else(String::new, |(before, at)| {
        format!(" {before} retires {}", at.as_millis())
    });
    format!("({}){retiring}", handover.hash)
}

pub(super) fn told(declaration: &Declaration<u8, u8>) -> String {
    assert_eq!(declaration.number, 7);
    let record = |(hash, rules): (&u8, &KeyRules<u8>)| {
        let mut told = format!("{hash}");
        if rules.plan != PLAN {
            told += &format!(" on {}", rules.plan);
        }
        if rules.suspended {
            told += " suspended";
        }
        for (word, time) in [
            ("from", rules.not_before),
            ("until", rules.expires),
            ("retires", rules.retires),
        ] {
            if let Some(time) = time {
                told += &format!(" {word} {}", time.as_millis());
            }
        }
        told
    };
    let records: Vec<String> = declaration.records.iter().map(record).collect();
    let mut told = format!("Declare [{}]", records.join(", "));
    if !declaration.withdrawn.is_empty() {
        told += &format!(" withdraw {:?}", declaration.withdrawn);
    }
    if !declaration.revoked.is_empty() {
        told += &format!(" revoke {:?}", declaration.revoked);
    }
    if !declaration.reinstated.is_empty() {
        told += &format!(" reinstate {:?}", declaration.reinstated.keys());
    }
    if declaration.is_last {
        told += " for good";
    }
    told
}

pub(super) fn check(rows: &[(&str, Case, &str)]) {
    for (clause, case, wanted) in rows {
        assert_eq!(decided(case), *wanted, "{clause}");
    }
}

#[test]
#[rustfmt::skip]
fn create() {
    check(&[
        ("finalizer first", generated().with(|case| case.has_finalizer = false), "Finalize"),
        ("then a key is made", generated(), "Make"),
        ("announced before it is published", generated().made(1), "Announce(1)"),
        ("then published", generated().made(1).announced(&[1]), "Declare [1]"),
        (
            "no Secret before every gate has acknowledged",
            generated().made(1).announced(&[1]).held(&[1]).unacknowledged(),
            "Awaiting",
        ),
        ("then the Secret", generated().made(1).announced(&[1]).held(&[1]), "Reveal(1)"),
        ("then it is in force", issued(), "InForce(1)"),
        ("not before every gate has acknowledged", issued().unacknowledged(), "Awaiting"),
        (
            "nothing is created in a terminating namespace",
            generated().with(|case| case.is_terminating = true),
            "Held(Terminating)",
        ),
        ("a brought key is announced too", brought(), "Announce(1)"),
        ("then published", brought().announced(&[1]), "Declare [1]"),
        ("it needs no Secret", partner(), "InForce(1)"),
        ("in force at every gate only", partner().unacknowledged(), "Awaiting"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_leader_that_was_lost_may_still_reveal_its_key() {
    let lost = || generated().announced(&[2]).held(&[2]);
    let next = || generated().announced(&[3, 2]).made(3);
    let late = |secret| next().held(&[2, 3]).secret(secret, None);
    check(&[
        ("another key is made beside it", lost(), "Make"),
        ("one that was not declared never comes into the Secret, and is not published", generated().announced(&[2]), "Make"),
        ("nor is it beside the next one", next(), "Declare [3]"),
        ("both are published", next().held(&[2]), "Declare [2, 3]"),
        ("the later one is revealed", next().held(&[2, 3]), "Reveal(3)"),
        ("its Secret stands: the other is withdrawn", late(3), "Declare [3] withdraw {2}"),
        ("the lost one's stands: that counts", late(2), "Declare [2] withdraw {3}"),
        (
            "what only the index knows stays while no Secret stands",
            generated().announced(&[2]).held(&[2, 4]).made(2),
            "Reveal(2)",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn suspend_resume_plan_and_expiry_are_one_write() {
    let suspend = |spec: &mut Spec<u8, u8>| spec.rules.suspended = true;
    let held = |change: fn(&mut KeyRules<u8>)| {
        partner().directory(|directory| change(directory.held.get_mut(&1).unwrap().as_mut().unwrap()))
    };
    check(&[
        ("suspend", issued().declared(suspend), "Declare [1 suspended]"),
        ("resume", held(|rules| rules.suspended = true), "Declare [1]"),
        ("another plan", partner().declared(|spec| spec.rules.plan = 2), "Declare [1 on 2]"),
        ("expiry", partner().declared(|spec| spec.rules.expires = Some(at(5000))), "Declare [1 until 5000]"),
        ("a later one", held(|rules| rules.expires = Some(at(5000))), "Declare [1]"),
        ("notBefore", partner().declared(|spec| spec.rules.not_before = Some(at(5))), "Declare [1 from 5]"),
        ("nothing changed", partner(), "InForce(1)"),
        (
            "a record that cannot be read is written again",
            partner().directory(|directory| directory.held = BTreeMap::from([(1, None)])),
            "Declare [1]",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn delete() {
    let gone = |case: Case| {
        case.deleting().directory(|directory| {
            directory.held.clear();
            directory.is_gone = true;
        })
    };
    let named = || issued().announced(&[3, 2, 1]).held(&[1, 4]).deleting();
    let directory = |directory| issued().deleting().with(|case| case.directory = directory);
    check(&[
        ("all that status, Secret and index name", named(), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("whether it is there or not", named().held(&[]), "Declare [] revoke {1, 2, 3} for good"),
        ("before the first status", brought().deleting(), "Declare [] for good"),
        ("not before every gate has acknowledged", gone(issued()).unacknowledged(), "Awaiting"),
        ("then the finalizer goes", gone(issued()), "Release(Revoked)"),
        ("somebody else removed it", named().with(|case| case.has_finalizer = false), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("and other finalizers keep the ApiKey", gone(issued()).unacknowledged().with(|case| case.has_finalizer = false), "Released"),
        ("without it nothing is left to do", gone(issued()).with(|case| case.has_finalizer = false), "Released"),
        ("Redis away: it waits", directory(Directory::Away), "Held(Directory)"),
        ("nothing was ever declared", directory(Directory::Unnamed), "Release(NeverDeclared)"),
        ("no WaterDataApi, gates left: it waits", directory(Directory::Lost { gates: true }), "Held(GatesRemain)"),
        ("no WaterDataApi and no gate", directory(Directory::Lost { gates: false }), "Release(Unreachable)"),
        ("an object that cannot be decoded", named().with(|case| case.spec = None), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("a plan that is gone", named().hindered(), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("no Secret", named().with(|case| case.secret = Secret::Missing), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("a namespace that goes", named().with(|case| case.is_terminating = true), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("a foreign Secret", named().with(|case| case.secret = Secret::Foreign), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("lost admission", named().with(|case| case.admission = Admission::Refused), "Declare [] revoke {1, 2, 3, 4} for good"),
        ("back under its uid", gone(issued()).with(|case| case.is_deleting = false), "Refused(OwnerRevoked)"),
    ]);
}

#[test]
#[rustfmt::skip]
fn redis_or_the_api_is_away() {
    let directory = |directory| issued().with(|case| case.directory = directory);
    check(&[
        ("nothing is decided without the directory", directory(Directory::Away), "Held(Directory)"),
        ("nor without a WaterDataApi", directory(Directory::Lost { gates: false }), "Refused(NotAdmitted)"),
        ("none was ever named", directory(Directory::Unnamed), "Refused(NotAdmitted)"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_foreign_secret_is_never_touched() {
    let foreign = |case: Case| case.with(|case| case.secret = Secret::Foreign);
    let reissued = || issued().announced(&[1, 2]).held(&[1, 2]).made(2);
    check(&[
        ("nothing is made", foreign(generated()), "Refused(SecretConflict)"),
        ("nothing published is taken away", foreign(reissued()), "Refused(SecretConflict)"),
    ]);
}

#[test]
#[rustfmt::skip]
fn two_keys_with_one_hash() {
    let taken = || brought().directory(|directory| directory.taken.extend([1]));
    check(&[
        ("the loser announces nothing", taken(), "Refused(Taken)"),
        ("and takes over", brought(), "Announce(1)"),
        ("a generated key cannot be published", issued().directory(|directory| {
            directory.held.clear();
            directory.taken.extend([1]);
        }), "Refused(Taken)"),
        ("the same for a key id", brought().with(|case| case.is_id_taken = true), "Refused(Taken)"),
        (
            "which takes away what is published",
            partner().with(|case| case.is_id_taken = true),
            "Declare [] withdraw {1}",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_revoked_hash_comes_back() {
    let revoked = |case: Case| case.directory(|directory| directory.barred.extend([(1, at(5))]));
    let asked = |time| revoked(brought()).declared(|spec| spec.reinstate = Some(at(time)));
    let time = "Refused(Revoked(Timestamp(5)))";
    check(&[
        ("it stalls", revoked(brought()), time),
        ("its tombstone is lifted when asked for", asked(5), "Announce(1)"),
        ("that one", asked(5).announced(&[1]), "Declare [1] reinstate [1]"),
        ("no other", asked(4), time),
        ("what is published goes", revoked(partner()), "Declare []"),
        ("a generated one stalls", revoked(issued().held(&[])), time),
        ("and is issued afresh", revoked(generated().announced(&[1]).revealed(&[1])), "Make"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_namespace_that_is_no_longer_admitted() {
    let refused = |case: Case| case.with(|case| case.admission = Admission::Refused);
    check(&[
        ("withdrawn", refused(partner()), "Declare [] withdraw {1}"),
        ("generated keys too", refused(issued()), "Declare [] withdraw {1}"),
        ("then nothing", refused(partner()).held(&[]), "Refused(NotAdmitted)"),
        ("admitted again: published again", partner().held(&[]), "Declare [1]"),
        ("with its Secret", issued().held(&[]), "Declare [1]"),
    ]);
}
