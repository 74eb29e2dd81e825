//! Conditions, their reasons and the field managers: the words in which the operator speaks.
//!
//! They follow kstatus, so that `helm --wait`, Flux and Argo CD understand them: `Ready` is true
//! when the declared state is in force; `Reconciling` while the operator works on it; `Stalled` when
//! it cannot go on without somebody's help.

use water_domain::Timestamp;
use water_resources::condition::{Condition, ConditionStatus};

/// The field manager of the objects that a WaterDataApi consists of.
pub const WORKLOAD_MANAGER: &str = "water-operator";
/// The field manager of status, finalizers and keys' Secrets.
pub const RECORD_MANAGER: &str = "water-operator-records";

/// Defines an enum whose variants are also the words that the API shows.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$word_doc])* $word),* }

        impl $name {
            /// The word as the API shows it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$word => stringify!($word)),* }
            }
        }
    };
}

words! {
    /// The aspects that conditions speak of.
    Aspect {
        /// An ApiKey: some WaterDataApi admits it.
        Accepted,
        /// An ApiKey: its Secret holds the key.
        SecretReady,
        /// An ApiKey: the directory holds what is declared.
        Synced,
        /// A WaterDataApi: requests for data are answered.
        Available,
        /// A WaterDataApi: every pod runs what is declared, or is on its way there.
        Progressing,
        /// A WaterDataApi: some pods are missing.
        Degraded,
        /// A WaterDataApi: the schema is that of the version.
        MigrationsComplete,
        /// A WaterDataApi: the key directory is complete and its plans are those declared.
        DirectorySynced,
        /// A WaterDataApi: both public datasets have rows.
        DataLoaded,
        /// A WaterDataApi: clients can reach the gate.
        ExposureReady,
        /// A WaterDataApi with a portal: its identity provider can be used.
        SignInReady,
        /// The declared state is in force.
        Ready,
        /// The operator works on it.
        Reconciling,
        /// Somebody's help is needed.
        Stalled,
    }
}

words! {
    /// Why a condition is as it is.
    Reason {
        Admitted,
        Active,
        Suspended,
        /// The key is answered 403: its plan does not open the API.
        PlanWithoutAccess,
        NotYetValid,
        Expired,
        Deleting,
        /// No WaterDataApi, or several, would accept the key.
        ApiAmbiguous,
        ApiNotFound,
        NamespaceNotAdmitted,
        /// The namespace may not name the account.
        AccountNotBound,
        PlanUnknown,
        /// The Secret's name is taken.
        SecretConflict,
        /// Another ApiKey has the same key.
        KeyConflict,
        /// The key was revoked and is not taken back.
        RevokedInStore,
        /// The Secret was gone or changed too often.
        ReissueLimit,
        /// There is no Secret, since the key was brought along.
        NotNeeded,
        Written,
        /// An earlier step is not done.
        Waiting,
        /// The directory holds what is declared.
        Published,
        /// The directory holds what is declared, on a Redis that could lose it in a failover.
        ReplicasUnguarded,
        /// The directory holds keys of more ApiKeys that are gone than a sweep removes by itself.
        SweepHeld,
        /// The directory holds what is declared, and the gates' Redis user could write key records.
        GateMayWrite,
        /// The directory holds what is declared, on a Redis that evicts keys when its memory is full.
        EvictionAllowed,
        /// The directory holds what is declared, and the operator may not ask Redis whether it evicts keys, or
        /// what the gates' user may do; or Redis does not know that user.
        Unverified,
        /// The directory holds what is declared, and keys of one account have different plans.
        PlansDiffer,
        /// A gate that serves does not follow this directory.
        GateWithoutLease,
        /// The API server refused or did not answer.
        ApiServerError,
        /// Gates may still act on what was declared before.
        AwaitingGates,
        /// Redis cannot be reached, or does not answer as it should.
        StoreUnavailable,
        /// Redis accepts no writes: it is a replica, or a primary without enough of them.
        StoreReadOnly,
        StoreOutOfMemory,
        /// Redis still reads its dump.
        StoreLoading,
        StoreWrongPassword,
        StoreClusterDown,
        StoreDenied,
        /// The directory belongs to another installation.
        DirectoryOwned,
        /// The spec asks for namespaces that the operator does not watch.
        ScopeTooNarrow,
        /// A Secret that the spec names is missing or lacks a key.
        SecretInvalid,
        PortalInvalid,
        NotSupported,
        /// The object is admitted by the schema, and cannot be read.
        Undecodable,
        Rejected,
        /// An object of a child's name belongs to somebody else.
        ObjectConflict,
        Paused,
        Complete,
        RollingOut,
        RolloutFailed,
        Migrating,
        MigrationFailed,
        PodsReady,
        PodsMissing,
        Loaded,
        NoData,
        NotAnswering,
        ProviderUsable,
        ProviderUnusable,
        ClientRefused,
        /// Nothing was asked for.
        NotConfigured,
        AddressPending,
        AddressAssigned,
        Healthy,
    }
}

/// What the operator found out about one aspect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub aspect: Aspect,
    pub status: ConditionStatus,
    pub reason: Reason,
    /// Why, in a sentence; what to do about it when it is somebody's turn.
    pub message: String,
}

/// A condition's message may be this long (metav1.Condition allows 32 KiB; ours are sentences).
const LONGEST_MESSAGE: usize = 1024;

impl Finding {
    pub fn holds(aspect: Aspect, reason: Reason, message: impl Into<String>) -> Self {
        Self::new(aspect, ConditionStatus::True, reason, message)
    }

    pub fn lacks(aspect: Aspect, reason: Reason, message: impl Into<String>) -> Self {
        Self::new(aspect, ConditionStatus::False, reason, message)
    }

    pub fn unknown(aspect: Aspect, reason: Reason, message: impl Into<String>) -> Self {
        Self::new(aspect, ConditionStatus::Unknown, reason, message)
    }

    fn new(
        aspect: Aspect,
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

/// At most so many bytes of a text, cut at a whole character.
pub fn bounded(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// How far the operator is, which decides the three conditions of kstatus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// The declared state is in force.
    InForce(Reason, String),
    /// The operator works on it or waits for something that comes by itself.
    Underway(Reason, String),
    /// Somebody has to do something.
    Stuck(Reason, String),
}

impl Readiness {
    /// What it means that no WaterDataApi accepts an ApiKey. One that is missing may be on its way:
    /// both kinds are often applied together, and kstatus calls what is `Stalled` failed.
    pub fn refused(reason: Reason, message: impl Into<String>) -> Self {
        match reason {
            Reason::ApiAmbiguous | Reason::ApiNotFound => Self::Underway(reason, message.into()),
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
            | Self::Stuck(reason, message) => (*reason, message.as_str()),
        }
    }

    /// `Ready`, `Reconciling` and `Stalled`, in this order.
    pub fn findings(&self) -> [Finding; 3] {
        let (reason, message) = self.words();
        let finding = |aspect, holds: bool| match holds {
            true => Finding::holds(aspect, reason, message),
            false => Finding::lacks(aspect, reason, message),
        };
        [
            finding(Aspect::Ready, matches!(self, Self::InForce(..))),
            finding(Aspect::Reconciling, matches!(self, Self::Underway(..))),
            finding(Aspect::Stalled, matches!(self, Self::Stuck(..))),
        ]
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

pub fn find(conditions: &[Condition], aspect: Aspect) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.kind == aspect.as_str())
}

/// Whether the condition about an aspect is there and true.
pub fn holds(conditions: &[Condition], aspect: Aspect) -> bool {
    find(conditions, aspect).is_some_and(|condition| condition.status == ConditionStatus::True)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    fn ready(message: &str) -> Vec<Finding> {
        vec![Finding::holds(Aspect::Ready, Reason::Active, message)]
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
        let lost = vec![Finding::lacks(Aspect::Ready, Reason::Expired, "")];
        assert_eq!(
            stated(&second, lost, 2, at(3))[0].last_transition_time,
            at(3)
        );
    }

    #[test]
    fn exactly_one_of_the_three_conditions_of_kstatus_holds() {
        let outcome =
            |make: fn(Reason, String) -> Readiness| make(Reason::Active, String::new()).findings();
        for findings in [
            outcome(Readiness::InForce),
            outcome(Readiness::Underway),
            outcome(Readiness::Stuck),
        ] {
            let holding = findings
                .iter()
                .filter(|finding| finding.status == ConditionStatus::True);
            assert_eq!(holding.count(), 1);
        }
    }
}
