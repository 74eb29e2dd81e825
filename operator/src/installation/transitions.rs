//! The events between two statuses of a WaterDataApi: one for each transition.

use water_resources::condition::explanations::{OF_WATER_DATA_APIS, Severity};
use water_resources::condition::{Condition, ConditionStatus};
use water_resources::water_data_api::WaterDataApiStatus;

use super::advice::Advice;
use crate::conditions::{ConditionType, Reason, find, holds};
use crate::events::Transition;

pub fn transitions(
    before: &WaterDataApiStatus,
    after: &WaterDataApiStatus,
    advice: &[Advice],
) -> Vec<Transition> {
    let mut happened = Vec::new();
    if after.target_version != before.target_version
        && let Some(target) = &after.target_version
    {
        happened.push(Transition::normal(
            "RolloutStarted",
            format!("rolling out version {target}"),
        ));
    }
    let became = |aspect| holds(&after.conditions, aspect) && !holds(&before.conditions, aspect);
    if became(ConditionType::MigrationsComplete) {
        happened.push(Transition::normal(
            "MigrationsComplete",
            "the database's schema is that of the version",
        ));
    }
    if after.version != before.version
        && let Some(version) = &after.version
    {
        happened.push(Transition::normal(
            "RolloutComplete",
            format!("every pod runs version {version}"),
        ));
    }
    if became(ConditionType::DataLoaded) {
        happened.push(Transition::normal(
            "DataLoaded",
            "both public datasets are loaded",
        ));
    }
    // A condition that is reported for another reason than before, or for the first time.
    let warning = |aspect, is_told: fn(&Condition) -> bool| {
        let told = |conditions| find(conditions, aspect).filter(|condition| is_told(condition));
        let now = told(&after.conditions)?;
        let is_new = told(&before.conditions).is_none_or(|before| before.reason != now.reason);
        is_new.then(|| Transition::warning(&now.reason, &now.message))
    };
    let is_advised = |condition: &Condition| {
        let reason = Reason::parse(&condition.reason);
        reason.and_then(|reason| reason.severity(OF_WATER_DATA_APIS)) == Some(Severity::Warning)
    };
    happened.extend(new_advice(before, after, advice));
    happened.extend(warning(ConditionType::SignInReady, is_advised));
    happened.extend(warning(ConditionType::Stalled, |stalled| {
        stalled.status == ConditionStatus::True
    }));
    happened
}

/// A warning for each problem whose [`Advice::news`] neither `DirectorySynced` nor `Degraded` had before. What the
/// message has no room for waits until it has.
fn new_advice(
    before: &WaterDataApiStatus,
    after: &WaterDataApiStatus,
    advice: &[Advice],
) -> impl Iterator<Item = Transition> {
    let says = |status: &WaterDataApiStatus, sentence: &str| {
        let aspects = [ConditionType::DirectorySynced, ConditionType::Degraded];
        let mut conditions = aspects
            .iter()
            .filter_map(|aspect| find(&status.conditions, *aspect));
        conditions.any(|condition| condition.message.contains(sentence))
    };
    advice
        .iter()
        .filter(move |said| says(after, said.news()) && !says(before, said.news()))
        .map(|Advice { reason, sentence }| Transition::warning(reason.as_str(), sentence))
}
