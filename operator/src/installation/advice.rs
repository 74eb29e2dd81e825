//! What is wrong with a key directory that is complete: nothing is refused for it, but somebody should
//! know. Questions first, then the pure judgement.

use std::collections::BTreeMap;

use kube::ResourceExt;
use water_domain::{AccountId, PlanName};
use water_resources::ApiKey;
use water_resources::api_key::ApiName;

use super::secrets::Redis;
use crate::conditions::Reason;
use crate::context::Context;
use crate::directories::OpenDirectory;

/// What the answers were. What could not be answered is not complained of.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    pub gate_may_write: bool,
    pub eviction_policy: Option<String>,
    pub is_unguarded: bool,
    /// Two ApiKeys of one account with different plans, each as `namespace/name (plan)`.
    pub differing_plans: Option<[String; 2]>,
}

pub async fn ask(open: &OpenDirectory, redis: &Redis, place: &ApiName, context: &Context) -> Facts {
    let directory = open.directory();
    let gate_may_write = match &redis.gate {
        Some(gate) => directory.lets_write(gate).await.unwrap_or(false),
        None => false,
    };
    let keys = context.keys.state();
    let keys = keys.iter().filter_map(|key| key.0.as_ref().ok());
    Facts {
        gate_may_write,
        eviction_policy: directory.eviction_policy().await.unwrap_or(None),
        is_unguarded: open.observed().is_some_and(|seen| seen.is_unguarded),
        differing_plans: differing_plans(place, keys),
    }
}

/// The first two ApiKeys of one account that name different plans. Both are judged on the account's
/// counters, each by its own plan's limits.
fn differing_plans<'a>(
    place: &ApiName,
    keys: impl Iterator<Item = &'a ApiKey>,
) -> Option<[String; 2]> {
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
    by_account.into_values().filter_map(first_two).min()
}

/// All that is to be said, and in one word the worst of it.
pub fn advice(facts: &Facts) -> Option<(Reason, String)> {
    let evicting = facts
        .eviction_policy
        .as_deref()
        .filter(|policy| *policy != "noeviction");
    let sentences = [
        facts.gate_may_write.then(|| {
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
        facts.differing_plans.as_ref().map(|[one, other]| {
            let sentence = format!(
                "ApiKeys of one account have different plans, and share its counters: {one} and {other}"
            );
            (Reason::PlansDiffer, sentence)
        }),
    ];
    let said: Vec<(Reason, String)> = sentences.into_iter().flatten().collect();
    let (reason, _) = said.first()?;
    let sentences: Vec<&str> = said.iter().map(|(_, sentence)| sentence.as_str()).collect();
    Some((*reason, sentences.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_directory_in_order_needs_no_advice() {
        assert_eq!(advice(&Facts::default()), None);
        let kept = Facts {
            eviction_policy: Some("noeviction".into()),
            ..Facts::default()
        };
        assert_eq!(advice(&kept), None);
    }

    #[test]
    fn the_worst_gives_the_reason_and_all_is_said() {
        let facts = Facts {
            gate_may_write: true,
            eviction_policy: Some("allkeys-lru".into()),
            is_unguarded: true,
            differing_plans: Some(["a".into(), "b".into()]),
        };
        let (reason, message) = advice(&facts).unwrap();
        assert_eq!(reason, Reason::GateMayWrite);
        for words in ["redis-acl", "min-replicas", "allkeys-lru", "a and b"] {
            assert!(message.contains(words), "{message}");
        }
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
        assert_eq!(differing_plans(&place, apart.iter()), None);
        let both = [key("a", "acme", "Free"), key("b", "acme", "Enterprise")];
        let told = ["team/b (Enterprise)", "team/a (Free)"].map(str::to_owned);
        assert_eq!(differing_plans(&place, both.iter()), Some(told.clone()));
        assert_eq!(differing_plans(&place, both.iter().rev()), Some(told));
    }
}
