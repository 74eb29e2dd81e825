//! Metrics of ApiKeys and of what they wait for, read when somebody asks. The leader alone has them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use kube::Resource;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use water_domain::Timestamp;
use water_resources::ApiKey;

use crate::caches::Key;
use crate::clock;
use crate::conditions::{ConditionType, Reason, find, holds};
use crate::context::Context;
use crate::lock::lock;

/// States that a status reports; any other word there is no label.
const STATES: [Reason; 5] = [
    Reason::Active,
    Reason::Suspended,
    Reason::NotYetValid,
    Reason::Expired,
    Reason::PlanWithoutAccess,
];
/// State of an ApiKey without a key in force.
const NO_STATE: &str = "None";

/// The leader of this process, while there is one.
#[derive(Clone, Default)]
pub struct Leader(Arc<Mutex<Weak<Context>>>);

impl Leader {
    /// Reads from this leadership from now on, until it ends.
    pub fn follow(&self, context: &Arc<Context>) {
        *lock(&self.0) = Arc::downgrade(context);
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Leader")
    }
}

impl Collector for Leader {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let context = lock(&self.0).upgrade();
        context.map_or(Ok(()), |context| Numbers::read(&context).encode(encoder))
    }
}

/// Numbers of a leader at one moment.
#[derive(Default, Debug)]
pub struct Numbers {
    census: Census,
    silent_gates: u64,
    revocations: u64,
}

impl Numbers {
    fn read(context: &Context) -> Self {
        Self {
            census: Census::count(context.keys.state().iter().map(|key| &**key)),
            silent_gates: silent_gates(context),
            revocations: revocations(context),
        }
    }
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let census = &self.census;
        let help = "ApiKeys by the last state that every gate has acknowledged";
        let mut states = encoder.encode_descriptor("api_keys", help, None, MetricType::Gauge)?;
        for (state, count) in &census.states {
            ConstGauge::new(*count).encode(states.encode_family(&[("state", *state)])?)?;
        }
        let gauges = [
            (
                "pending_changes",
                "ApiKeys whose declared state is not in force at every gate yet, deleted ones among them",
                census.pending,
            ),
            (
                "oldest_pending_change_seconds",
                "Age of the oldest of them, as far as its status shows",
                census.oldest_age(clock::now()),
            ),
            (
                "silent_gates",
                "Gates' pods that changes wait for",
                self.silent_gates,
            ),
            (
                "revocations",
                "Revoked keys and ApiKeys that key directories remember, for 90 days each",
                self.revocations,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}

/// Pods by directory, since two may have pods of one name.
fn silent_gates(context: &Context) -> u64 {
    let open = context.directories.all();
    let pods = open.iter().map(|open| open.pending.silent().len() as u64);
    pods.sum()
}

/// Number of revocations that the last check of each directory has found.
fn revocations(context: &Context) -> u64 {
    let open = context.directories.all();
    let metas = open.iter().filter_map(|open| open.observed()?.meta);
    metas.map(|meta| meta.counts.revoked).sum()
}

/// Counts of ApiKeys at one moment.
#[derive(PartialEq, Eq, Default, Debug)]
struct Census {
    states: BTreeMap<&'static str, u64>,
    pending: u64,
    oldest: Option<Timestamp>,
}

impl Census {
    fn count<'a>(keys: impl Iterator<Item = &'a Key>) -> Self {
        let states = STATES.map(Reason::as_str).into_iter().chain([NO_STATE]);
        let mut census = Self {
            states: states.map(|state| (state, 0)).collect(),
            pending: 0,
            oldest: None,
        };
        for key in keys {
            *census.states.entry(state(key)).or_default() += 1;
            if is_pending(key) {
                census.pending += 1;
                let since = pending_since(key);
                let oldest = census.oldest.into_iter().chain(since).min();
                census.oldest = oldest;
            }
        }
        census
    }

    fn oldest_age(&self, now: Timestamp) -> u64 {
        let age = |since: Timestamp| now.as_millis().saturating_sub(since.as_millis());
        let age = self.oldest.map_or(0, age);
        u64::try_from(age).unwrap_or(0) / 1000
    }
}

fn state(key: &Key) -> &'static str {
    let status = key.0.as_ref().ok().and_then(|key| key.status.as_ref());
    let acknowledged = status.and_then(|status| status.last_acknowledged_state.as_deref());
    let mut states = STATES.map(Reason::as_str).into_iter();
    states
        .find(|state| acknowledged == Some(*state))
        .unwrap_or(NO_STATE)
}

/// Whether the operator has something left to do: not for an ApiKey that waits for somebody's help.
fn is_pending(key: &Key) -> bool {
    let is_underway = |key: &ApiKey| {
        key.status.as_ref().is_none_or(|status| {
            status.observed_generation != key.metadata.generation
                || holds(&status.conditions, ConditionType::Reconciling)
        })
    };
    key.meta().deletion_timestamp.is_some() || key.0.as_ref().is_ok_and(is_underway)
}

/// Time of the deletion, of the beginning of the reconciliation, or of the creation of an ApiKey that has no status; an
/// edit that no pass has seen has no time.
fn pending_since(key: &Key) -> Option<Timestamp> {
    let meta = key.meta();
    if let Some(deleted) = &meta.deletion_timestamp {
        return Timestamp::from_millis(deleted.0.as_millisecond());
    }
    let status = key.0.as_ref().ok().and_then(|key| key.status.as_ref());
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    if holds(conditions, ConditionType::Reconciling) {
        return Some(find(conditions, ConditionType::Reconciling)?.last_transition_time);
    }
    let created = meta.creation_timestamp.as_ref();
    let created = created.filter(|_| conditions.is_empty())?;
    Timestamp::from_millis(created.0.as_millisecond())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::core::DeserializeGuard;
    use water_resources::api_key::ApiKeyStatus;

    use super::*;
    use crate::conditions::{Readiness, stated};
    use crate::sample;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    fn time(seconds: i64) -> Option<Time> {
        Some(Time(jiff::Timestamp::from_second(seconds).unwrap()))
    }

    /// An ApiKey of generation 1 with that outcome and state since so many seconds.
    fn key(outcome: &Readiness, acknowledged: &str, seconds: i64) -> ApiKey {
        let mut key = sample::key("acme", "team");
        key.metadata.generation = Some(1);
        key.status = Some(ApiKeyStatus {
            observed_generation: Some(1),
            last_acknowledged_state: Some(acknowledged.into()),
            conditions: stated(&[], outcome.findings().into(), 1, at(seconds)),
            ..ApiKeyStatus::default()
        });
        key
    }

    fn census(keys: Vec<ApiKey>) -> Census {
        let keys: Vec<Key> = keys
            .into_iter()
            .map(|key| DeserializeGuard(Ok(key)))
            .collect();
        Census::count(keys.iter())
    }

    #[test]
    fn keys_are_counted_by_their_state_and_a_word_that_is_none_is_no_label() {
        let active = Readiness::InForce(Reason::Active, String::new());
        let census = census(vec![
            key(&active, "Active", 1),
            key(&active, "Active", 1),
            key(&active, "Suspended", 1),
            key(&active, "somebody's", 1),
        ]);
        let counted: Vec<_> = census
            .states
            .iter()
            .filter(|(_, count)| **count > 0)
            .collect();
        assert_eq!(
            counted,
            [(&"Active", &2), (&"None", &1), (&"Suspended", &1)]
        );
        assert_eq!((census.states.len(), census.pending), (6, 0));
        assert_eq!(census.oldest_age(at(100)), 0);
    }

    #[test]
    fn a_change_is_pending_from_its_deletion_creation_or_reconciliation_on() {
        let underway = Readiness::Underway(Reason::AwaitingGates, String::new());
        let active = Readiness::InForce(Reason::Active, String::new());
        let stuck = Readiness::Stuck(Reason::SecretConflict, String::new());
        let waits = key(&underway, "Active", 70);
        let mut edited = key(&active, "Active", 1);
        edited.metadata.generation = Some(2);
        let mut deleted = key(&stuck, "Active", 1);
        deleted.metadata.deletion_timestamp = time(40);
        let mut new = sample::key("new", "team");
        new.metadata.creation_timestamp = time(50);
        let stalled = key(&stuck, "Active", 1);
        for (keys, pending, age) in [
            (vec![stalled.clone()], 0, 0),
            (vec![waits.clone(), stalled], 1, 30),
            (vec![edited.clone()], 1, 0),
            (vec![new.clone()], 1, 50),
            (vec![waits, edited, new, deleted], 4, 60),
        ] {
            let census = census(keys);
            assert_eq!((census.pending, census.oldest_age(at(100))), (pending, age));
        }
    }
}
