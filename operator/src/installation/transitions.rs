//! The events between two statuses of a WaterDataApi: one for each transition.

use water_resources::condition::ConditionStatus;
use water_resources::water_data_api::WaterDataApiStatus;

use crate::conditions::{Aspect, Reason, find, holds};
use crate::events::Happening;

/// What does not keep a WaterDataApi from being ready, and is an event when it begins.
const ADVISED: [Reason; 8] = [
    Reason::GateMayWrite,
    Reason::ReplicasUnguarded,
    Reason::EvictionAllowed,
    Reason::PlansDiffer,
    Reason::GateWithoutLease,
    Reason::SweepHeld,
    Reason::ProviderUnusable,
    Reason::ClientRefused,
];

/// What happened between two statuses.
pub fn transitions(before: &WaterDataApiStatus, after: &WaterDataApiStatus) -> Vec<Happening> {
    let mut happened = Vec::new();
    if let Some(target) = after
        .target_version
        .as_ref()
        .filter(|_| after.target_version != before.target_version)
    {
        happened.push(Happening::normal(
            "RolloutStarted",
            format!("rolling out version {target}"),
        ));
    }
    let became = |aspect| holds(&after.conditions, aspect) && !holds(&before.conditions, aspect);
    if became(Aspect::MigrationsComplete) {
        happened.push(Happening::normal(
            "MigrationsComplete",
            "the database's schema is that of the version",
        ));
    }
    if let Some(version) = after
        .version
        .as_ref()
        .filter(|_| after.version != before.version)
    {
        happened.push(Happening::normal(
            "RolloutComplete",
            format!("every pod runs version {version}"),
        ));
    }
    if became(Aspect::DataLoaded) {
        happened.push(Happening::normal(
            "DataLoaded",
            "both public datasets are loaded",
        ));
    }
    for aspect in [
        Aspect::DirectorySynced,
        Aspect::Degraded,
        Aspect::SignInReady,
    ] {
        let advised = |status: &WaterDataApiStatus| {
            find(&status.conditions, aspect)
                .filter(|condition| {
                    ADVISED
                        .map(Reason::as_str)
                        .contains(&condition.reason.as_str())
                })
                .map(|condition| (condition.reason.clone(), condition.message.clone()))
        };
        if let Some((reason, message)) = advised(after)
            && advised(before).map(|(reason, _)| reason).as_ref() != Some(&reason)
        {
            happened.push(Happening::warning(reason, message));
        }
    }
    let stalled = |status: &WaterDataApiStatus| {
        find(&status.conditions, Aspect::Stalled)
            .filter(|stalled| stalled.status == ConditionStatus::True)
            .map(|stalled| (stalled.reason.clone(), stalled.message.clone()))
    };
    if let Some((reason, message)) = stalled(after)
        && stalled(before).map(|(reason, _)| reason).as_ref() != Some(&reason)
    {
        happened.push(Happening::warning(reason, message));
    }
    happened
}
