//! A rebuild, which knows only what Kubernetes says, publishes what passes have declared: after each event of a short
//! life, and wherever a leader may stop between two steps of a pass.

use std::collections::HashSet;
use std::time::Duration;

use super::rules::earlier;
use super::tests::{Case, NOW, OVERLAP, at, brought, generated, rules};
use super::*;
use crate::key::facts::{Content, Issue, KeyRules, Secret};
use crate::key::ledger::Ledger;
use crate::key::step::Handover;

/// Keys with their rules.
type Keys = BTreeMap<u8, KeyRules<u8>>;

/// Events that one life may have.
const EVENTS: usize = 3;

/// Events in the life of an ApiKey.
#[derive(Clone, Copy)]
enum Event {
    /// Another key is asked for.
    Rotate,
    /// The Secret is deleted.
    LoseSecret,
    /// The text in the Secret is changed.
    EditSecret,
    /// The Secret with the key before is put back.
    RestoreSecret,
    /// Another hash is brought along, or the first one.
    Bring(u8),
    /// The operator shall make the key.
    Generate,
    /// The keys are refused until they are resumed.
    Suspend,
    /// A lower plan is declared.
    Lower,
    /// A key that is replaced ends at once.
    Cut,
    /// The plan is missing, or there again.
    Hinder,
    /// The overlap passes.
    Wait,
}

const ALL: [Event; 12] = [
    Event::Rotate,
    Event::LoseSecret,
    Event::EditSecret,
    Event::RestoreSecret,
    Event::Bring(1),
    Event::Bring(2),
    Event::Generate,
    Event::Suspend,
    Event::Lower,
    Event::Cut,
    Event::Hinder,
    Event::Wait,
];

impl Event {
    /// Whether it is compared. What a declaration has ended and no status names yet is known by tombstones alone, or by
    /// the Secret: if these are lost then, a rebuild publishes the key before it until the next pass.
    fn may_happen(self, case: &Case) -> bool {
        let is_unreported = match (decide(case), case.secret) {
            (Report(Verdict::InForce(hash)), _) => case.ledger != case.confirmed(hash),
            (_, Secret::Own(content)) => case.ledger.shown() != Some(content.hash),
            _ => false,
        };
        let loses = matches!(
            self,
            Self::Bring(_)
                | Self::Generate
                | Self::LoseSecret
                | Self::EditSecret
                | Self::RestoreSecret
        );
        !(is_unreported && loses)
    }

    fn happens(self, case: &mut Case) {
        let spec = case.spec.as_mut().unwrap();
        match self {
            Self::Rotate => spec.rotation.revision += 1,
            Self::LoseSecret => case.secret = Secret::Missing,
            Self::EditSecret => {
                if case.secret != Secret::Missing {
                    case.secret = Secret::Edited;
                }
            }
            Self::RestoreSecret => {
                if case.secret != Secret::Missing
                    && let Some((hash, _)) = case.ledger.retiring
                {
                    case.secret = Secret::Own(Content {
                        hash,
                        retiring: None,
                        is_as_declared: true,
                    });
                }
            }
            Self::Bring(hash) => {
                spec.material = Material::Brought(hash);
                case.restrictions.brought = Some((hash, spec.rotation.overlap));
                case.named.insert(hash);
                // Its Secret is deleted with the switch.
                case.secret = Secret::Missing;
            }
            Self::Generate => {
                spec.material = Material::Generated;
                case.restrictions.brought = None;
            }
            Self::Suspend => {
                spec.rules.suspended = true;
                case.restrictions.suspended = true;
            }
            Self::Lower => spec.rules.plan = 0,
            Self::Cut => spec.rotation.overlap = Duration::ZERO,
            Self::Hinder => {
                case.admission = if case.admission == Admission::Hindered {
                    Admission::Admitted
                } else {
                    Admission::Hindered
                };
            }
            Self::Wait => {
                let directory = open(case);
                directory.now = directory.now.plus(Duration::from_millis(OVERLAP as u64));
            }
        }
    }
}

fn open(case: &mut Case) -> &mut DirectoryContent<u8, u8> {
    match &mut case.directory {
        Directory::Open(directory) => directory,
        _ => panic!("the directory is not open"),
    }
}

/// Carries out the next step, and returns whether there was one.
fn steps(case: &mut Case) -> bool {
    match decide(case) {
        Report(Verdict::InForce(hash)) => {
            let confirmed = case.confirmed(hash);
            let is_news = case.ledger != confirmed;
            if is_news && case.ledger.shown() != Some(hash) {
                case.issue = Some(Issue {
                    revision: case.spec.as_ref().unwrap().rotation.revision,
                    time: open(case).now,
                });
            }
            case.ledger = confirmed;
            return is_news;
        }
        Report(_) => return false,
        Do(Step::Finalize | Step::Release(_)) => panic!("{case:?}"),
        // Key 10 is the first one that is made.
        Do(Step::Make(_)) => {
            let last = case.named.iter().max().copied();
            case.made = Some(last.unwrap_or(0).max(9) + 1);
        }
        Do(Step::Announce { hash, .. }) => {
            case.ledger = case.ledger.clone().announce(hash);
            case.named.insert(hash);
        }
        Do(Step::Retire { hash, at }) => {
            let declared = case.restrictions.brought.map(|(hash, _)| hash);
            case.ledger = case.ledger.clone().retire(hash, at, declared);
        }
        Do(Step::Declare(declaration)) => {
            let directory = open(case);
            let records = declaration.records.into_iter();
            let held: BTreeMap<_, _> = records.map(|(hash, rules)| (hash, Some(rules))).collect();
            for hash in directory.held.keys() {
                if !held.contains_key(hash) && !declaration.withdrawn.contains(hash) {
                    directory.barred.insert(*hash, directory.now);
                }
            }
            directory.held = held;
        }
        Do(
            Step::Reveal(Handover { hash, retiring }) | Step::Replace(Handover { hash, retiring }),
        ) => {
            case.made = None;
            case.secret = Secret::Own(Content {
                hash,
                retiring,
                is_as_declared: true,
            });
        }
        Do(Step::Amend) => panic!("{case:?}"),
    }
    true
}

/// Keys that work after the directory was rebuilt with these former rules.
fn rebuilt(case: &mut Case, former: &Keys) -> Keys {
    let content = match case.secret {
        Secret::Own(content) => Some(content),
        _ => None,
    };
    let mut published = published(&Evidence {
        spec: case.spec.as_ref().unwrap(),
        ledger: &case.ledger,
        in_secret: content.map(|content| content.hash),
        retiring: content.and_then(|content| content.retiring),
        former,
        is_hindered: case.admission == Admission::Hindered,
    });
    let is_generated = case.spec.as_ref().unwrap().material == Material::Generated;
    if is_generated || case.admission == Admission::Hindered {
        // Nobody has a key that was announced and is not held: a rebuild cannot know that it was not declared.
        let held = open(case).held.keys().copied().collect::<BTreeSet<_>>();
        published.retain(|hash, _| held.contains(hash) || case.ledger.is_revealed(hash));
    }
    // Only tombstones bar a removed hash that is brought along again, and an announced key that nobody has.
    let material = case.spec.as_ref().unwrap().material;
    let barred = open(case).barred.clone();
    published.retain(|hash, _| {
        let is_revealed = case.ledger.is_revealed(hash) && material != Material::Brought(*hash);
        is_revealed || !barred.contains_key(hash)
    });
    working(published, case)
}

fn working(mut keys: Keys, case: &mut Case) -> Keys {
    let now = open(case).now;
    keys.retain(|_, rules| rules.retires.is_none_or(|retires| retires > now));
    keys
}

/// Compares both answers where no declaration is due.
fn agree(case: &mut Case) {
    let held = open(case).held.clone().into_iter();
    let former: Keys = held.map(|(hash, rules)| (hash, rules.unwrap())).collect();
    let mut held = former.clone();
    // An end that the status names holds for a rebuild before passes have declared it, but for a hash that is
    // brought along again, and where the Secret is newer.
    let is_older =
        matches!(case.secret, Secret::Own(content) if case.ledger.shown() != Some(content.hash));
    if let Some((hash, at)) = case.ledger.retiring
        && case.spec.as_ref().unwrap().material != Material::Brought(hash)
        && !is_older
        && let Some(rules) = held.get_mut(&hash)
    {
        rules.retires = earlier(rules.retires, Some(at));
    }
    let held = working(held, case);
    let decision = decide(case);
    if matches!(decision, Do(Step::Declare(_))) {
        return;
    }
    let is_hindered = case.admission == Admission::Hindered;
    // Until the status names the next key, the end of one or, of brought ones, the one in force, a rebuild may hold
    // less.
    let may_hold_less = match decision {
        Do(Step::Announce { .. } | Step::Retire { .. }) => true,
        Report(Verdict::InForce(hash)) => {
            case.secret == Secret::Missing && case.ledger != case.confirmed(hash)
        }
        _ => is_hindered,
    };
    let mut compared = vec![(former, held.clone())];
    if !is_hindered {
        // An end that only the directory names is lost with it, until the next pass.
        let named = case.ledger.retiring.into_iter().chain(match case.secret {
            Secret::Own(content) => content.retiring,
            _ => None,
        });
        let named: BTreeSet<u8> = named.map(|(hash, _)| hash).collect();
        let mut expected = held;
        for (_, rules) in expected
            .iter_mut()
            .filter(|(hash, _)| !named.contains(hash))
        {
            rules.retires = None;
        }
        compared.push((Keys::new(), expected));
    }
    for (former, expected) in compared {
        let rebuilt = rebuilt(case, &former);
        let context = || format!("{rebuilt:?} for {expected:?}, {decision:?} at {case:#?}");
        if may_hold_less {
            let is_held = |(hash, rules): (&u8, &KeyRules<u8>)| expected.get(hash) == Some(rules);
            assert!(rebuilt.iter().all(is_held), "{}", context());
            // The key in force works on, unless its owner has ended the overlap.
            let is_cut = case.spec.as_ref().unwrap().rotation.overlap.is_zero();
            let in_force = case.ledger.shown().filter(|_| !is_cut);
            let in_force = in_force.filter(|hash| expected.contains_key(hash));
            assert!(
                in_force.is_none_or(|hash| rebuilt.contains_key(&hash)),
                "{}",
                context()
            );
        } else {
            assert_eq!(rebuilt, expected, "{decision:?} at {case:#?}");
        }
    }
}

#[test]
fn a_rebuild_publishes_what_passes_have_declared_wherever_they_stop() {
    let mut known = HashSet::new();
    let mut open_ends = vec![(generated(), EVENTS), (brought(), EVENTS)];
    while let Some((mut case, left)) = open_ends.pop() {
        if !known.insert((format!("{case:?}"), left)) {
            continue;
        }
        agree(&mut case);
        if left > 0 {
            for event in ALL.into_iter().filter(|event| event.may_happen(&case)) {
                let mut next = case.clone();
                event.happens(&mut next);
                open_ends.push((next, left - 1));
            }
        }
        if steps(&mut case) {
            open_ends.push((case, left));
        }
    }
    assert!(known.len() > 10_000, "only {} states", known.len());
}

#[test]
fn a_replaced_key_keeps_its_own_expiry_though_a_later_one_is_declared() {
    let ends = at(NOW + OVERLAP);
    let own = KeyRules {
        expires: Some(at(NOW + 1)),
        ..rules()
    };
    let retiring = KeyRules {
        retires: Some(ends),
        ..own.clone()
    };
    let replaced = generated().secret(2, Some((1, NOW + OVERLAP)));
    let replaced = replaced.with(|case| case.ledger = Ledger::confirm(2, Some((1, ends))));
    let begun = |case: Case| case.announced(&[1, 2]).revealed(&[1]);
    let brought = brought().declared(|spec| spec.material = Material::Brought(2));
    for (before, case) in [
        (retiring, replaced),
        (own.clone(), begun(brought)),
        (own, begun(generated()).made(2).secret(1, None)),
    ] {
        let former = Keys::from([(1, before), (2, rules())]);
        let held = former.clone().into_iter();
        let held = held.map(|(hash, rules)| (hash, Some(rules)));
        let mut case = case.directory(|directory| directory.held = held.collect());
        let decision = decide(&case);
        assert!(!matches!(decision, Do(Step::Declare(_))), "{decision:?}");
        assert_eq!(rebuilt(&mut case, &former), former, "{decision:?}");
    }
}
