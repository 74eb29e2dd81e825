//! Repetition of requests to the API server that a busy machine kept from it, or from their answer.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::Budget;

/// Time within which a request is sent again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(250);

/// Words, in small letters, about a request that did not reach the API server or that nobody answered: of kubectl, of
/// the API server about etcd, and of this machine's sockets.
const UNANSWERED: [&str; 17] = [
    "connection refused",
    // What kubectl says instead of that.
    "did you specify the right host or port",
    "connection reset by peer",
    "broken pipe",
    "tls handshake timeout",
    "i/o timeout",
    // A socket's own, once the time to read is over.
    "resource temporarily unavailable",
    "unexpected eof",
    // Of kubectl, and of a reader of JSON that has half an answer.
    ": eof",
    "http2: client connection lost",
    "http2: server sent goaway",
    "net/http: request canceled",
    "client.timeout exceeded",
    "etcdserver: request timed out",
    "etcdserver: leader changed",
    "request did not complete within",
    "unable to return a response in the time allotted",
];

/// Sends a request again while nobody answers it, which must mean the same however often it arrives. A refusal is an
/// answer. The error is that of the last time, as it is.
///
/// The thread is blocked meanwhile, as it is by each request.
pub fn until_answered<T>(mut send: impl FnMut() -> Result<T>) -> Result<T> {
    let mut budget = Budget::of(PATIENCE);
    loop {
        let is_last = budget.left().is_zero();
        let begun = Instant::now();
        let answer = send();
        match &answer {
            Err(error) if !is_last && is_unanswered(&format!("{error:#}")) => {}
            _ => return answer,
        }
        budget.looked(begun.elapsed());
        let begun = Instant::now();
        thread::sleep(PAUSE);
        budget.paused(PAUSE, begun.elapsed());
    }
}

/// Whether an error says that nobody answered.
pub fn is_unanswered(error: &str) -> bool {
    let error = error.to_lowercase();
    UNANSWERED.iter().any(|words| error.contains(words))
}

/// Whether a call of kubectl means the same however often it is made.
pub fn is_repeatable(arguments: &[&str]) -> bool {
    let has = |argument: &str| arguments.contains(&argument);
    match command(arguments) {
        Some("get" | "wait" | "apply") => true,
        Some("auth") => has("can-i"),
        Some("patch") => has("--type=merge"),
        Some("annotate" | "label") => has("--overwrite"),
        // Without that, the second one fails for what the first one has deleted.
        Some("delete") => has("--ignore-not-found"),
        _ => false,
    }
}

/// Returns the first argument that is neither an option nor the value of one.
fn command<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut arguments = arguments.iter().copied();
    while let Some(argument) = arguments.next() {
        match argument {
            "--kubeconfig" | "--namespace" | "-n" => {
                arguments.next();
            }
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, bail};

    use super::*;

    #[test]
    fn what_nobody_answered_is_told_from_what_was_refused() {
        for unanswered in [
            "Unable to connect to the server: net/http: TLS handshake timeout",
            "Unable to connect to the server: dial tcp 127.0.0.1:6443: i/o timeout",
            "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
            "Error from server: etcdserver: request timed out",
            "Error from server: etcdserver: leader changed",
            "Error from server (Timeout): Timeout: request did not complete within requested timeout",
            "error: Get \"https://127.0.0.1:6443/api\": unexpected EOF",
            "Get \"https://127.0.0.1:6443/api\": EOF",
            "error: http2: client connection lost",
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "net/http: request canceled while waiting for connection",
            "GET /api/v1: Connection refused (os error 111)",
            "GET /api/v1: Resource temporarily unavailable (os error 11)",
        ] {
            assert!(is_unanswered(unanswered), "{unanswered}");
        }
        for refused in [
            "Error from server (NotFound): apikeys.waterdata.dev \"acme\" not found",
            "Error from server (Forbidden): secrets is forbidden",
            "Error from server (Invalid): the plan may not be changed",
            "Error from server: etcdserver: mvcc: database space exceeded",
            "Error from server (Conflict): Apply failed with 1 conflict",
            "error: timed out waiting for the condition on customresourcedefinitions/apikeys",
            // The answer to `auth can-i`, on standard error.
            "",
        ] {
            assert!(!is_unanswered(refused), "{refused}");
        }
    }

    #[test]
    fn calls_that_mean_the_same_when_made_twice_are_repeated() {
        let is_repeated = |call: &str| is_repeatable(&call.split(' ').collect::<Vec<_>>());
        for call in [
            "get pods",
            "--namespace water get apikey/acme",
            "--kubeconfig=file -n delete get secrets",
            "--namespace water --kubeconfig file auth can-i list pods",
            "apply --server-side -f manifests.yaml",
            "wait --for=condition=Established --timeout=60s crd/apikeys",
            "patch apikey acme --type=merge --patch {}",
            "label apikey acme a=b --overwrite",
            "--namespace water annotate apikey acme a=b --overwrite",
            "delete secret probe --ignore-not-found",
        ] {
            assert!(is_repeated(call), "{call}");
        }
        for call in [
            "create -f object.json",
            "--namespace get create -f object.json",
            "delete apikey acme",
            "patch crd apikeys --type=json --patch []",
            "label secret acme-apikey backup=done",
            "replace -f object.json",
            "auth reconcile -f rights.yaml",
            "exec pod -- get",
            "run pod --image=image",
            "--namespace water",
        ] {
            assert!(!is_repeated(call), "{call}");
        }
    }

    #[test]
    fn a_request_is_sent_again_until_somebody_answers_it() {
        let mut sent = 0;
        let answer = until_answered(|| {
            sent += 1;
            match sent {
                1 => Err(anyhow::anyhow!("connection refused")).context("GET /api"),
                _ => Ok("answer"),
            }
        });
        assert_eq!((answer.unwrap(), sent), ("answer", 2));

        let mut sent = 0;
        let refused = until_answered(|| -> Result<()> {
            sent += 1;
            bail!("Forbidden")
        });
        assert_eq!(refused.unwrap_err().to_string(), "Forbidden");
        assert_eq!(sent, 1);
    }
}
