//! Conditions and field managers, as the operator writes them.
//!
//! They follow kstatus, so that `helm --wait`, Flux and Argo CD understand them: `Ready` is true
//! when the declared state is in force; `Reconciling` while the operator works on it; `Stalled` when
//! it cannot go on without somebody's help.

use std::array;

use water_domain::Timestamp;
use water_resources::condition::explanations::{OF_API_KEYS, Severity};
use water_resources::condition::{Condition, ConditionStatus};
pub use water_resources::condition::{ConditionType, Reason};

/// The field manager of the objects that a WaterDataApi consists of.
pub const WORKLOAD_MANAGER: &str = "water-operator";
/// The field manager of status, finalizers and keys' Secrets.
pub const RECORD_MANAGER: &str = "water-operator-records";

/// Finding of the operator about one aspect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub aspect: ConditionType,
    pub status: ConditionStatus,
    pub reason: Reason,
    /// Reason in a sentence, with the remedy when somebody has to act.
    pub message: String,
}

/// Failure of work that is tried again until it works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub reason: Reason,
    /// Consequence in a sentence, to which the cause is added.
    pub means: String,
    pub cause: String,
}

/// A condition's message may be this long (metav1.Condition allows 32 KiB; ours are sentences).
pub const LONGEST_MESSAGE: usize = 1024;

impl Finding {
    pub fn holds(aspect: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self::new(aspect, ConditionStatus::True, reason, message)
    }

    pub fn lacks(aspect: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self::new(aspect, ConditionStatus::False, reason, message)
    }

    pub fn unknown(aspect: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self::new(aspect, ConditionStatus::Unknown, reason, message)
    }

    fn new(
        aspect: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            aspect,
            status,
            reason,
            message: bounded(message.into(), LONGEST_MESSAGE),
        }
    }
}

/// Cuts a text to at most so many bytes, at a whole character.
pub fn bounded(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// Progress of the operator, which decides the three conditions of kstatus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// The declared state is in force.
    InForce(Reason, String),
    /// The operator works on it or waits for something that comes by itself.
    Underway(Reason, String),
    /// The declared state was in force, and nobody knows whether it still is: the operator goes on asking.
    Unknown(Reason, String),
    /// Somebody has to do something.
    Stuck(Reason, String),
}

impl Readiness {
    /// Readiness of an ApiKey that no WaterDataApi accepts. A missing WaterDataApi may be on its way: both kinds are
    /// often applied together, and kstatus calls what is `Stalled` failed.
    pub fn refused(reason: Reason, message: impl Into<String>) -> Self {
        match reason.severity(OF_API_KEYS) {
            Some(Severity::Waiting) => Self::Underway(reason, message.into()),
            _ => Self::Stuck(reason, message.into()),
        }
    }

    pub fn reason(&self) -> Reason {
        self.words().0
    }

    pub fn message(&self) -> &str {
        self.words().1
    }

    fn words(&self) -> (Reason, &str) {
        match self {
            Self::InForce(reason, message)
            | Self::Underway(reason, message)
            | Self::Unknown(reason, message)
            | Self::Stuck(reason, message) => (*reason, message.as_str()),
        }
    }

    /// `Ready`, `Reconciling` and `Stalled`, in this order.
    pub fn findings(&self) -> [Finding; 3] {
        let (reason, message) = self.words();
        use ConditionStatus::{False, True, Unknown};
        let statuses = match self {
            Self::InForce(..) => [True, False, False],
            Self::Underway(..) => [False, True, False],
            Self::Unknown(..) => [Unknown, True, False],
            Self::Stuck(..) => [False, False, True],
        };
        let aspects = [
            ConditionType::Ready,
            ConditionType::Reconciling,
            ConditionType::Stalled,
        ];
        array::from_fn(|at| Finding::new(aspects[at], statuses[at], reason, message))
    }
}

/// The conditions that state `findings` about `generation`. A condition whose status is that of
/// `previous` keeps its transition time.
pub fn stated(
    previous: &[Condition],
    findings: Vec<Finding>,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let since = |finding: &Finding| {
        find(previous, finding.aspect)
            .filter(|condition| condition.status == finding.status)
            .map_or(now, |condition| condition.last_transition_time)
    };
    findings
        .into_iter()
        .map(|finding| Condition {
            kind: finding.aspect.as_str().into(),
            status: finding.status,
            reason: finding.reason.as_str().into(),
            last_transition_time: since(&finding),
            message: finding.message,
            observed_generation: generation,
        })
        .collect()
}

pub fn find(conditions: &[Condition], aspect: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.kind == aspect.as_str())
}

/// Whether the condition about an aspect is there and true.
pub fn holds(conditions: &[Condition], aspect: ConditionType) -> bool {
    find(conditions, aspect).is_some_and(|condition| condition.status == ConditionStatus::True)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    fn ready(message: &str) -> Vec<Finding> {
        vec![Finding::holds(
            ConditionType::Ready,
            Reason::Active,
            message,
        )]
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let first = stated(&[], ready("one"), 1, at(1));
        let second = stated(&first, ready("two"), 2, at(2));
        assert_eq!(second[0].last_transition_time, at(1));
        assert_eq!(
            (second[0].message.as_str(), second[0].observed_generation),
            ("two", 2)
        );
        let lacks = |reason| vec![Finding::lacks(ConditionType::Ready, reason, "")];
        let expired = stated(&second, lacks(Reason::Expired), 2, at(3));
        assert_eq!(expired[0].last_transition_time, at(3));
        // Another reason is no transition.
        let suspended = stated(&expired, lacks(Reason::Suspended), 2, at(4));
        assert_eq!(suspended[0].last_transition_time, at(3));
    }

    #[test]
    fn only_a_water_data_api_that_may_be_on_its_way_does_not_stall_a_refused_apikey() {
        let refusals = [
            Reason::ApiAmbiguous,
            Reason::ApiNotFound,
            Reason::ApiMismatch,
            Reason::NamespaceNotAdmitted,
            Reason::AccountNotBound,
            Reason::PlanUnknown,
        ];
        let waiting = refusals.into_iter().filter(|reason| {
            let [_, _, stalled] = Readiness::refused(*reason, "").findings();
            stalled.status == ConditionStatus::False
        });
        let waiting: Vec<Reason> = waiting.collect();
        assert_eq!(waiting, [Reason::ApiAmbiguous, Reason::ApiNotFound]);
    }

    #[test]
    fn exactly_one_of_the_three_conditions_of_kstatus_holds() {
        let outcome =
            |make: fn(Reason, String) -> Readiness| make(Reason::Active, String::new()).findings();
        for findings in [
            outcome(Readiness::InForce),
            outcome(Readiness::Underway),
            outcome(Readiness::Unknown),
            outcome(Readiness::Stuck),
        ] {
            let holding = findings
                .iter()
                .filter(|finding| finding.status == ConditionStatus::True);
            assert_eq!(holding.count(), 1);
        }
    }
}
