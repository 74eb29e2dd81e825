//! The rotation of the identity keys, without a refused request.
//!
//! At rest the services know the key that comes next. *Swap*: both keys change places, so that the
//! gates are rolled and sign with the new one, which every service accepts. *Renew*: the old key,
//! which no gate signs with any more, gives way to a fresh one, and the services are rolled. Each
//! step waits until no pod is left that was made before the last.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use water_domain::Timestamp;
use water_resources::WaterDataApi;

use super::children::Children;
use super::identity::{self, Identity};
use super::manifest::ChildKind;
use super::render::{CONFIG_HASH, Part};
use super::{InstallationError, place};
use crate::context::Context;
use crate::events::Transition;
use crate::gate_pods;

/// Annotation. On the WaterDataApi: any word that was not there before asks for a rotation. On the Secret: the word
/// that was read last.
const ROTATE: &str = "waterdata.dev/rotate-identity";
/// Annotation of the Secret with the time at which the current key became that.
const SINCE: &str = "waterdata.dev/identity-since";
/// Annotation of the Secret between the two steps.
const RETIRING: &str = "waterdata.dev/identity-retiring";
/// Age at which a key is rotated; it never leaves the cluster, so once a quarter is plenty.
const PERIOD: Duration = Duration::from_secs(90 * 86_400);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Current and next key change places.
    Swap,
    /// The retiring key goes.
    Renew,
}

/// Step that is due, by the Secret's metadata and the word with which the WaterDataApi asks for one.
pub fn due(secret: &ObjectMeta, asked: Option<&str>, now: Timestamp) -> Option<Step> {
    let annotation = |name: &str| secret.annotations.as_ref()?.get(name).map(String::as_str);
    if annotation(RETIRING).is_some() {
        return Some(Step::Renew);
    }
    let since = annotation(SINCE).and_then(|text| Timestamp::parse(text).ok());
    let made = secret.creation_timestamp.as_ref();
    let since = since
        .map(Timestamp::as_millis)
        .or(made.map(|made| made.0.as_millisecond()));
    let is_old = since.is_some_and(|since| now.as_millis() - since >= PERIOD.as_millis() as i64);
    let is_asked = asked.is_some() && asked != annotation(ROTATE);
    (is_old || is_asked).then_some(Step::Swap)
}

/// Takes the step that is due, if one is and every pod knows of the last. Called once the rollout is complete.
pub async fn advance(
    api: &WaterDataApi,
    identity: &Identity,
    children: &Children,
    context: &Context,
    now: Timestamp,
) -> Result<(), InstallationError> {
    let asked = api.annotations().get(ROTATE);
    let Some(step) = due(identity.metadata(), asked.map(String::as_str), now) else {
        return Ok(());
    };
    if !is_settled(api, children, context).await? {
        return Ok(());
    }
    let changed = match step {
        Step::Swap => identity.swapped().annotated([
            (RETIRING, Some(true.to_string())),
            (SINCE, Some(now.to_string())),
            (ROTATE, asked.cloned()),
        ]),
        Step::Renew => identity.renewed()?.annotated([(RETIRING, None)]),
    };
    identity::write(changed, context).await?;
    let happened = match step {
        Step::Swap => Transition::normal(
            "IdentityRotating",
            "the gates are rolled to sign with the next identity key",
        ),
        Step::Renew => Transition::normal(
            "IdentityRotated",
            "the old identity key has ended: the services are rolled to refuse it",
        ),
    };
    context.events.report(&api.object_ref(&()), &[happened]);
    Ok(())
}

/// Checks that every serving pod, terminating ones included, was made of its Deployment's present template.
async fn is_settled(
    api: &WaterDataApi,
    children: &Children,
    context: &Context,
) -> Result<bool, InstallationError> {
    for part in Part::SERVING {
        let name = format!("{}-{}", api.name_any(), part.component());
        let deployment: Option<Deployment> = children.get(ChildKind::Deployment, &name)?;
        let wanted = deployment.as_ref().and_then(template_hash);
        let pods = gate_pods::list(&context.client, &place(api), part).await?;
        if pods.iter().any(|pod| is_of_another_template(pod, wanted)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn template_hash(deployment: &Deployment) -> Option<&str> {
    let template = deployment.spec.as_ref()?.template.metadata.as_ref()?;
    let annotations = template.annotations.as_ref()?;
    annotations.get(CONFIG_HASH).map(String::as_str)
}

fn is_of_another_template(pod: &Pod, wanted: Option<&str>) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    !has_ended && pod.annotations().get(CONFIG_HASH).map(String::as_str) != wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installation::identity::tests::identity;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    const NOW: &str = "2026-06-01T00:00:00Z";

    fn since(text: &str) -> Identity {
        identity().annotated([(SINCE, Some(text.to_owned()))])
    }

    fn is_due(identity: &Identity, asked: Option<&str>) -> Option<Step> {
        due(identity.metadata(), asked, at(NOW))
    }

    #[test]
    fn a_rotation_is_due_after_ninety_days_and_not_before() {
        assert_eq!(is_due(&since("2026-03-03T00:00:00.001Z"), None), None);
        assert_eq!(
            is_due(&since("2026-03-03T00:00:00Z"), None),
            Some(Step::Swap)
        );
    }

    #[test]
    fn a_new_word_asks_for_a_rotation_and_the_same_word_for_none() {
        let heard = since("2026-05-01T00:00:00Z").annotated([(ROTATE, Some("one".into()))]);
        assert_eq!(is_due(&heard, Some("one")), None);
        assert_eq!(is_due(&heard, Some("two")), Some(Step::Swap));
        assert_eq!(is_due(&heard, None), None);
    }

    #[test]
    fn a_rotation_that_has_begun_is_ended_before_another_begins() {
        let begun = since("2020-01-01T00:00:00Z").annotated([(RETIRING, Some("true".into()))]);
        assert_eq!(is_due(&begun, Some("word")), Some(Step::Renew));
    }

    #[test]
    fn an_identity_without_a_date_is_as_old_as_its_secret() {
        assert_eq!(is_due(&identity(), None), None, "it was not written yet");
    }

    #[test]
    fn a_pod_of_another_template_holds_a_step_up_until_it_has_ended() {
        let pod = |phase: &str| -> Pod {
            let pod = serde_json::json!({
                "metadata": { "annotations": { CONFIG_HASH: "old" } }, "status": { "phase": phase },
            });
            serde_json::from_value(pod).unwrap()
        };
        assert!(is_of_another_template(&pod("Running"), Some("new")));
        assert!(!is_of_another_template(&pod("Running"), Some("old")));
        assert!(!is_of_another_template(&pod("Failed"), Some("new")));
        assert!(is_of_another_template(&Pod::default(), Some("new")));
    }
}
