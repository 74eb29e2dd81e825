//! Problems of a key directory that is complete: nothing is refused for them, but somebody should know. Questions
//! first, then the pure judgement.

use std::collections::BTreeMap;

use kube::ResourceExt;
use water_domain::{AccountId, PlanName};
use water_keystore::{GateRights, Reason as StoreReason, StoreError};
use water_resources::ApiKey;
use water_resources::api_key::ApiName;

use super::secrets::Redis;
use crate::conditions::{Failure, Reason, bounded};
use crate::context::Context;
use crate::directories::OpenDirectory;

/// Largest number of accounts with different plans in a condition's message, which is bounded.
const ACCOUNTS_TOLD: usize = 4;

/// Separator of sentences.
const BETWEEN: &str = "; ";
/// Room for what follows the last sentence that is cut, with any number of further ones.
const LONGEST_END: usize = 32;

/// Largest number of revocations without an advice. Redis needs some 130 bytes for each.
const REVOCATIONS: u64 = 250_000;

/// Answers to the questions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Rights of the user of gate-url in Redis.
    pub gate: Option<GateRights>,
    pub eviction_policy: Option<String>,
    /// Refusal of a question that the operator has no right to ask.
    pub denied: Option<String>,
    pub is_unguarded: bool,
    /// Number of revocations that the directory remembers.
    pub revoked: u64,
    /// Two ApiKeys with different plans of each account, as `namespace/name (plan)`.
    pub differing_plans: Vec<[String; 2]>,
}

/// Problem that is reported and keeps nothing from its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    pub reason: Reason,
    pub sentence: String,
}

impl Advice {
    /// Part of the sentence that is news: names and numbers that follow change while the problem stays, and there may
    /// be more of them than a message has room for.
    pub fn news(&self) -> &str {
        let has_list = matches!(
            self.reason,
            Reason::GateWithoutLease | Reason::SweepHeld | Reason::DefinitionsOutdated
        );
        let begin = self.sentence.split_once(": ").filter(|_| has_list);
        begin.map_or(&*self.sentence, |(begin, _)| begin)
    }
}

/// Every sentence, in this order, in at most so many bytes: where they are more, the last that begins is cut unless it
/// has room, and the number of those that follow is said.
pub fn sentences(advice: &[Advice], bytes: usize) -> String {
    let sentences: Vec<&str> = advice.iter().map(|said| &*said.sentence).collect();
    let all = sentences.join(BETWEEN);
    if all.len() <= bytes {
        return all;
    }
    let cut = bounded(all, bytes.saturating_sub(LONGEST_END));
    let begins = sentences.iter().scan(0, |next, sentence| {
        let begin = *next;
        *next += sentence.len() + BETWEEN.len();
        Some(begin)
    });
    let begun = begins.take_while(|begin| *begin < cut.len()).count();
    let whole = sentences[..begun].join(BETWEEN);
    let cut = if whole.len() <= cut.len() {
        whole
    } else {
        cut + "…"
    };
    match sentences.len() - begun {
        0 => cut,
        more => format!("{cut}{BETWEEN}and {more} more"),
    }
}

/// Makes one problem of each cause, in the order in which causes come first: whatever fails for it shares a sentence.
pub fn by_cause(failures: impl IntoIterator<Item = Failure>) -> Vec<Advice> {
    let mut causes: Vec<((Reason, String), Vec<String>)> = Vec::new();
    for failure in failures {
        let Failure {
            reason,
            means,
            cause,
        } = failure;
        let cause = (reason, cause);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, all)) if all.contains(&means) => {}
            Some((_, all)) => all.push(means),
            None => causes.push((cause, vec![means])),
        }
    }
    let problem = |((reason, cause), means): ((Reason, String), Vec<String>)| {
        let means = enumerated(&means);
        let sentence = format!("{means}: {cause}; tried again until it works");
        Advice { reason, sentence }
    };
    causes.into_iter().map(problem).collect()
}

/// Sentences before their common cause, not separated as problems are: it is theirs alone.
fn enumerated(means: &[String]) -> String {
    match means {
        [others @ .., last] if !others.is_empty() => {
            let others = others.join(", ");
            format!("{others} and {last}, all because of this")
        }
        means => means.concat(),
    }
}

pub async fn ask(open: &OpenDirectory, redis: &Redis, place: &ApiName, context: &Context) -> Facts {
    let directory = open.directory();
    let mut denied = None;
    let gate = match &redis.gate {
        Some(gate) => answer(directory.gate_rights(gate).await, &mut denied),
        None => None,
    };
    let eviction_policy = answer(directory.eviction_policy().await, &mut denied);
    let observed = open.observed();
    let meta = observed.as_ref().and_then(|seen| seen.meta.as_ref());
    let keys = context.keys.state();
    let keys = keys.iter().filter_map(|key| key.0.as_ref().ok());
    Facts {
        gate,
        eviction_policy: eviction_policy.flatten(),
        denied,
        is_unguarded: observed.as_ref().is_some_and(|seen| seen.is_unguarded),
        revoked: meta.map_or(0, |meta| meta.counts.revoked),
        differing_plans: differing_plans(place, keys),
    }
}

/// Returns the answer; notes a missing right in `denied`. Failures other than a missing right pass by themselves, or
/// are reported by whatever else meets them.
fn answer<T>(answered: Result<T, StoreError>, denied: &mut Option<String>) -> Option<T> {
    if let Err(error) = &answered
        && error.reason() == StoreReason::Denied
    {
        *denied = Some(error.to_string());
    }
    answered.ok()
}

/// First two ApiKeys with different plans of each account that has such. Both are judged on the account's counters,
/// each by the limits of its plan.
fn differing_plans<'a>(
    place: &ApiName,
    keys: impl Iterator<Item = &'a ApiKey>,
) -> Vec<[String; 2]> {
    let issued = |key: &&ApiKey| {
        let status = key.status.as_ref();
        status.is_some_and(|status| status.api.as_ref() == Some(place))
    };
    let mut by_account: BTreeMap<&AccountId, BTreeMap<&PlanName, String>> = BTreeMap::new();
    for key in keys.filter(issued) {
        let plan = &key.spec.plan;
        let name = format!(
            "{}/{} ({plan})",
            key.namespace().unwrap_or_default(),
            key.name_any()
        );
        let names = by_account.entry(&key.spec.account_id).or_default();
        // The same one whatever the order of the keys.
        let first = names.entry(plan).or_insert_with(|| name.clone());
        *first = first.clone().min(name);
    }
    let first_two = |names: BTreeMap<_, String>| -> Option<[String; 2]> {
        let mut names = names.into_values();
        Some([names.next()?, names.next()?])
    };
    by_account
        .into_values()
        .filter_map(first_two)
        .take(ACCOUNTS_TOLD)
        .collect()
}

/// Problems that the facts show, the worst first.
pub fn advice(facts: &Facts) -> Vec<Advice> {
    let evicting = facts
        .eviction_policy
        .as_deref()
        .filter(|policy| *policy != "noeviction");
    let sentences = [
        (facts.gate == Some(GateRights::Writes)).then(|| {
            let sentence = "the Redis user of gate-url may change the key directory, so that whoever takes over a gate \
                could make keys: set the ACL lines of water-operator redis-acl";
            (Reason::GateMayWrite, sentence.to_owned())
        }),
        facts.is_unguarded.then(|| {
            let sentence = "a failover could undo revocations: set min-replicas-to-write 1 and \
                min-replicas-max-lag 5 in the Redis that has replicas";
            (Reason::ReplicasUnguarded, sentence.to_owned())
        }),
        evicting.map(|policy| {
            let sentence = format!(
                "Redis may evict keys and counters when its memory is full: set maxmemory-policy noeviction in the \
                 place of {policy}"
            );
            (Reason::EvictionAllowed, sentence)
        }),
        (facts.gate == Some(GateRights::NoUser)).then(|| {
            let sentence = "Redis does not know the user of gate-url: correct the URL, or set the ACL lines of \
                water-operator redis-acl";
            (Reason::Unverified, sentence.to_owned())
        }),
        facts.denied.as_ref().map(|error| {
            let sentence = format!(
                "whether Redis is safe to keep keys in cannot be checked ({error}): set the ACL lines of water-operator \
                 redis-acl"
            );
            (Reason::Unverified, sentence)
        }),
        (facts.revoked > REVOCATIONS).then(|| {
            // The number itself would be news with each revocation.
            let sentence = format!(
                "Redis remembers more than {REVOCATIONS} revocations of the last 90 days: replace keys less often \
                 (spec.rotation.periodSeconds), and do not delete and create ApiKeys again and again"
            );
            (Reason::ManyRevocations, sentence)
        }),
    ];
    let differing = facts.differing_plans.iter().map(|[one, other]| {
        let sentence = format!(
            "ApiKeys of one account have different plans, and share its counters: {one} and {other}"
        );
        (Reason::PlansDiffer, sentence)
    });
    sentences
        .into_iter()
        .flatten()
        .chain(differing)
        .map(|(reason, sentence)| Advice { reason, sentence })
        .collect()
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use water_keystore::connection::Purpose;
    use water_keystore::{ConnectionSettings, Directory, Instance, WriteError};

    use super::*;
    use crate::directories::DirectoryError;
    use crate::directories::duties::{Duty, DutyFailure};
    use crate::inquiry::Inquiry;
    use crate::metrics::Metrics;
    use crate::sample;

    #[test]
    fn a_directory_in_order_needs_no_advice() {
        assert_eq!(advice(&Facts::default()), []);
        let kept = Facts {
            eviction_policy: Some("noeviction".into()),
            revoked: REVOCATIONS,
            ..Facts::default()
        };
        assert_eq!(advice(&kept), []);
    }

    #[test]
    fn a_gates_user_that_redis_does_not_know_is_told_of() {
        let facts = |gate| Facts {
            gate: Some(gate),
            ..Facts::default()
        };
        assert_eq!(advice(&facts(GateRights::Reads)), []);
        let said = advice(&facts(GateRights::NoUser));
        assert_eq!(said[0].reason, Reason::Unverified);
        assert!(
            said[0]
                .sentence
                .contains("does not know the user of gate-url")
        );
    }

    #[test]
    fn the_worst_is_said_first_and_all_is_said() {
        let facts = Facts {
            gate: Some(GateRights::Writes),
            eviction_policy: Some("allkeys-lru".into()),
            denied: Some("no right".into()),
            is_unguarded: true,
            revoked: REVOCATIONS + 1,
            differing_plans: vec![["a".into(), "b".into()], ["c".into(), "d".into()]],
        };
        let said = advice(&facts);
        let words = [
            (Reason::GateMayWrite, "redis-acl"),
            (Reason::ReplicasUnguarded, "min-replicas"),
            (Reason::EvictionAllowed, "allkeys-lru"),
            (Reason::Unverified, "no right"),
            (Reason::ManyRevocations, "more than 250000"),
            (Reason::PlansDiffer, "a and b"),
            (Reason::PlansDiffer, "c and d"),
        ];
        assert_eq!(said.len(), words.len());
        for (advice, (reason, word)) in said.iter().zip(words) {
            assert_eq!(advice.reason, reason);
            assert!(advice.sentence.contains(word), "{advice:?}");
        }
    }

    #[test]
    fn sentences_without_room_are_cut_at_a_whole_character_and_the_others_counted() {
        let said = |sentence: &str| Advice {
            reason: Reason::PlansDiffer,
            sentence: sentence.into(),
        };
        let first = "é".repeat(20);
        let advice = [said(&first), said("second"), said("third")];
        let all = format!("{first}; second; third");
        assert_eq!(sentences(&advice, all.len()), all);
        let cut = sentences(&advice, all.len() - 1);
        assert_eq!(cut, "ééééééééééé…; and 2 more");
        let long = "é".repeat(100);
        let cut = sentences(&[said("first"), said(&long), said("third")], 100);
        assert_eq!(cut, format!("first; {}…; and 1 more", "é".repeat(30)));
        let after = [said("first"), said("second"), said(&long)];
        for bytes in ["first".len(), "first;".len(), "first; ".len()] {
            let cut = sentences(&after, LONGEST_END + bytes);
            assert_eq!(cut, "first; and 2 more");
        }
        let cut = sentences(&after, LONGEST_END + "first; s".len());
        assert_eq!(cut, "first; s…; and 1 more");
        let only = sentences(&[said(&long)], 101);
        assert_eq!(only, format!("{}…", "é".repeat(34)));
        let many: Vec<Advice> = (0..1000).map(|_| said(&long)).collect();
        let many = sentences(&many, 101);
        assert_eq!(many, format!("{only}; and 999 more"));
        assert!(many.len() <= 101);
    }

    #[test]
    fn what_fails_for_one_cause_shares_a_sentence() {
        let failure = |reason, means: &str, cause: &str| Failure {
            reason,
            means: means.into(),
            cause: cause.into(),
        };
        let (down, slow) = (Reason::StoreUnavailable, Reason::ApiServerError);
        let failures = [
            failure(down, "nobody counts", "no route"),
            failure(slow, "nobody lists", "no answer"),
            failure(down, "nobody reads", "no route"),
            failure(down, "nobody reads", "no route"),
            failure(down, "nobody writes", "no route"),
            failure(slow, "nobody compares", "no route"),
        ];
        let said = by_cause(failures);
        let said: Vec<_> = said
            .iter()
            .map(|said| (said.reason, &*said.sentence))
            .collect();
        let wanted = [
            (
                down,
                "nobody counts, nobody reads and nobody writes, all because of this: no route; tried again until it \
                 works",
            ),
            (slow, "nobody lists: no answer; tried again until it works"),
            (
                slow,
                "nobody compares: no route; tried again until it works",
            ),
        ];
        assert_eq!(said, wanted);
        assert_eq!(by_cause([]), []);
    }

    #[tokio::test]
    async fn a_redis_that_is_away_and_a_refusal_of_the_api_server_are_one_cause_for_each_attempt() {
        let settings = ConnectionSettings::new("redis://127.0.0.1:9", None).unwrap();
        let instance = Instance::new("water", "water-data").unwrap();
        let redis = Directory::new(settings.connect(Purpose::Directory), instance);
        let plans = DirectoryError::from(redis.plans().await.unwrap_err());
        let policy = redis.eviction_policy().await.unwrap_err();
        let policy = DirectoryError::from(WriteError::from(policy));
        assert_ne!(plans.to_string(), policy.to_string());
        let refused = || {
            let status = Status::failure("no right", "Forbidden").with_code(403);
            kube::Error::Api(status.boxed())
        };
        let list = Inquiry::new("nobody lists", &Metrics::default());
        list.note(&Err::<(), _>(refused()));
        let sweep = DirectoryError::from(refused());
        let of = |duty: Duty, error: &DirectoryError| DutyFailure::from(error).of(duty);
        let failures = [
            of(Duty::Count, &plans),
            of(Duty::Sweep, &sweep),
            of(Duty::ReadUses, &policy),
            list.failure().unwrap(),
        ];
        let said = by_cause(failures).into_iter().map(|said| said.reason);
        let wanted = [Reason::StoreUnavailable, Reason::ApiServerError];
        assert_eq!(said.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn plans_differ_within_an_account_only() {
        let place = ApiName {
            namespace: "water".into(),
            name: "water-data".into(),
        };
        let key = |name: &str, account: &str, plan: &str| {
            let mut key = sample::key(name, "team");
            key.spec.account_id = account.parse().unwrap();
            key.spec.plan = plan.parse().unwrap();
            key.status = Some(water_resources::ApiKeyStatus {
                api: Some(place.clone()),
                ..Default::default()
            });
            key
        };
        let apart = [key("a", "acme", "Free"), key("b", "globex", "Enterprise")];
        assert!(differing_plans(&place, apart.iter()).is_empty());
        let both = [key("a", "acme", "Free"), key("b", "acme", "Enterprise")];
        let told = ["team/b (Enterprise)", "team/a (Free)"].map(str::to_owned);
        assert_eq!(
            differing_plans(&place, both.iter()),
            std::slice::from_ref(&told)
        );
        assert_eq!(differing_plans(&place, both.iter().rev()), [told]);
    }
}
