//! Events: one for each transition, about the object that changed.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tracing::warn;

/// Who reports.
const CONTROLLER: &str = "water-operator";

/// Something that happened to an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happening {
    /// Whether somebody should look.
    pub warning: bool,
    /// One word, such as `KeyIssued`.
    pub reason: String,
    /// One sentence. Names no key's text and no account's data.
    pub note: String,
}

impl Happening {
    /// Something expected.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason: reason.into(),
            note: note.into(),
        }
    }

    /// Something that somebody should look at.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: true,
            reason: reason.into(),
            note: note.into(),
        }
    }
}

/// Writes events.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    /// Events that name this pod as their reporter.
    pub fn new(client: Client, pod: &str) -> Self {
        let reporter = Reporter {
            controller: CONTROLLER.into(),
            instance: Some(pod.into()),
        };
        Self(Recorder::new(client, reporter))
    }

    /// Reports what happened. An event that cannot be written is logged and not tried again: the
    /// status tells the same, and a terminating namespace accepts none.
    pub async fn report(&self, about: &ObjectReference, happenings: &[Happening]) {
        for happening in happenings {
            let event = Event {
                type_: if happening.warning {
                    EventType::Warning
                } else {
                    EventType::Normal
                },
                reason: happening.reason.clone(),
                note: Some(happening.note.clone()),
                action: happening.reason.clone(),
                secondary: None,
            };
            if let Err(error) = self.0.publish(&event, about).await {
                warn!(event = happening.reason, error = %error, "cannot write an event");
            }
        }
    }
}
