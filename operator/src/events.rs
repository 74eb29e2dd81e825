//! Events: one for each transition, about the object that changed. Each is also a log line, since the API server keeps
//! events for an hour only.
//!
//! Each transition is a separate event: kube's recorder, as client-go's, counts a second one of the same reason up and
//! keeps the words of the first, so that a second rotation would show the key ids of the first.
//!
//! They are events of core/v1: events.k8s.io/v1 refuses one with `lastTimestamp`, by which people sort.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::poll_fn;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::backoff::{chance, spread};
use crate::client::ApiFailure;
use crate::clock;
use crate::conditions::bounded;

const CONTROLLER: &str = "water-operator";
/// Longest message that the API server allows, in bytes.
const LONGEST_MESSAGE: usize = 1024;
/// Longest name of a reporter that the API server allows, in bytes.
const LONGEST_INSTANCE: usize = 128;
/// Events that may wait for the API server; one more is lost, and only logged.
const CAPACITY: usize = 4096;
/// Events written at once.
const AT_ONCE: usize = 8;
/// Time limit of a write with its repetitions. Nobody waits for it.
const WITHIN: Duration = Duration::from_secs(30);
/// Pause before a write is tried again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// Whether somebody should check the object.
    pub warning: bool,
    /// Reason in one word, such as `KeyIssued`.
    pub reason: String,
    /// Sentence that describes the transition. Names no key's text and no account's data.
    pub note: String,
}

impl Transition {
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason: reason.into(),
            note: note.into(),
        }
    }

    /// Creates a transition that somebody should check.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: true,
            ..Self::normal(reason, note)
        }
    }
}

/// Takes events for [`write`] to write. Its clones share one bounded queue.
#[derive(Clone, Debug)]
pub struct Events {
    queue: mpsc::Sender<Event>,
    pod: String,
}

/// A queue of events that name `pod` as their reporter.
pub fn queue(pod: &str) -> (Events, mpsc::Receiver<Event>) {
    let (queue, waiting) = mpsc::channel(CAPACITY);
    let pod = pod.into();
    (Events { queue, pod }, waiting)
}

impl Events {
    /// Logs what happened and queues it. Waits for nobody: an API server that hangs must not hold up
    /// a revocation.
    pub fn report(&self, about: &ObjectReference, transitions: &[Transition]) {
        for transition in transitions {
            log(about, transition);
            if self
                .queue
                .try_send(event(about, transition, &self.pod))
                .is_err()
            {
                warn!(
                    reason = transition.reason,
                    "an event is lost, since too many wait for the API server"
                );
            }
        }
    }
}

fn log(about: &ObjectReference, transition: &Transition) {
    let (kind, namespace, name) = (&about.kind, &about.namespace, &about.name);
    let Transition { reason, note, .. } = transition;
    if transition.warning {
        warn!(kind, namespace, name, reason, "{note}");
    } else {
        info!(kind, namespace, name, reason, "{note}");
    }
}

/// Builds an event named by its time, as client-go does: `kubectl describe` shows events of one second by their names.
fn event(about: &ObjectReference, transition: &Transition, pod: &str) -> Event {
    let time = clock::shown_time();
    let object = about.name.as_deref().unwrap_or_default();
    let word = if transition.warning {
        "Warning"
    } else {
        "Normal"
    };
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{object}.{:x}", time.0.as_nanosecond())),
            namespace: about.namespace.clone(),
            ..ObjectMeta::default()
        },
        first_timestamp: Some(Time(time.0)),
        last_timestamp: Some(Time(time.0)),
        count: Some(1),
        event_time: Some(time),
        type_: Some(word.into()),
        reason: Some(transition.reason.clone()),
        action: Some(transition.reason.clone()),
        message: Some(bounded(transition.note.clone(), LONGEST_MESSAGE)),
        involved_object: about.clone(),
        source: Some(EventSource {
            component: Some(CONTROLLER.into()),
            host: None,
        }),
        reporting_component: Some(CONTROLLER.into()),
        reporting_instance: Some(bounded(pod.into(), LONGEST_INSTANCE)),
        ..Event::default()
    }
}

/// Writes the queued events, until no [`Events`] is left that could queue more.
pub async fn write(client: &Client, mut queue: mpsc::Receiver<Event>) {
    poll_fn(|context| queue.poll_recv(context))
        .for_each_concurrent(AT_ONCE, |event| create(client, event))
        .await;
}

/// Creates an event. Where the API server gives no answer or is overloaded, it is tried again under the same name, so
/// that the event is there once; what it refuses, such as events in a terminating namespace, is not.
async fn create(client: &Client, event: Event) {
    let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let (params, reason) = (PostParams::default(), &event.reason);
    let attempts = async {
        loop {
            match api.create(&params, &event).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.is_already_exists() => return Ok(()),
                Err(error) if !is_transient(&error) => return Err(error),
                Err(_) => sleep(spread(PAUSE, chance())).await,
            }
        }
    };
    match timeout(WITHIN, attempts).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(namespace, reason, error = %error, "cannot write an event"),
        Err(_) => warn!(
            namespace,
            reason, "the API server did not take an event in time"
        ),
    }
}

fn is_transient(error: &kube::Error) -> bool {
    let kind = ApiFailure::kind(error);
    matches!(kind, Some(ApiFailure::Failed | ApiFailure::Unanswered))
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    use hyper::http::{Request, Response};
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    fn about() -> ObjectReference {
        ObjectReference {
            name: Some("acme".into()),
            namespace: Some("team".into()),
            ..ObjectReference::default()
        }
    }

    /// Writes an event to an API server that gives these answers, and returns those that are left.
    async fn left_of(answers: &[u16]) -> Vec<u16> {
        let left = Arc::new(Mutex::new(answers.to_vec()));
        let given = Arc::clone(&left);
        let server = service_fn(move |_: Request<kube::client::Body>| {
            let code = given.lock().unwrap().remove(0);
            let reason = if code == 409 { "AlreadyExists" } else { "" };
            let status =
                json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason });
            let answer = Response::builder().status(code);
            ready(answer.body(kube::client::Body::from(status.to_string().into_bytes())))
        });
        let written = event(&about(), &Transition::normal("KeyIssued", ""), "operator-0");
        create(&Client::new(server, "team"), written).await;
        left.lock().unwrap().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_overloaded_api_server_did_not_take_is_written_again_and_what_it_refuses_is_not()
     {
        assert_eq!(left_of(&[503, 429, 409, 500]).await, [500], "it exists");
        assert_eq!(left_of(&[500, 403, 500]).await, [500]);
        // Pauses of a second, give or take a quarter, in thirty seconds.
        let given_up = 60 - left_of(&[503; 60]).await.len();
        assert!((24..=41).contains(&given_up), "{given_up}");
    }

    #[test]
    fn a_note_is_cut_at_a_whole_character() {
        let transition = Transition::normal("KeyIssued", "é".repeat(1000));
        let event = event(&about(), &transition, "operator-0");
        assert_eq!(event.message.unwrap().len(), LONGEST_MESSAGE);
    }

    #[tokio::test]
    async fn a_full_queue_holds_nobody_up() {
        let (events, mut queue) = queue("operator-0");
        for _ in 0..=CAPACITY {
            events.report(&about(), &[Transition::normal("KeyIssued", "")]);
        }
        drop(events);
        let mut waiting = 0;
        while queue.recv().await.is_some() {
            waiting += 1;
        }
        assert_eq!(waiting, CAPACITY);
    }
}
