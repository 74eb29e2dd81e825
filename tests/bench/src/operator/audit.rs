//! Requests of the operator that the API server has answered, from its audit log, read on from the last time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use water_harness::{ControlPlane, wait_until};

/// User of the operator.
const OPERATOR: &str = "system:serviceaccount:water:water-operator";

/// Audit log from some moment on.
pub struct Audit {
    log: File,
    /// Line of which only the beginning is written.
    rest: Vec<u8>,
    /// Time without a write after which the operator is at rest.
    quiet: Duration,
}

/// Event of the audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    stage: String,
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Status,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
}

impl Request {
    /// Kind of a request, such as `update apikeys/status`.
    fn kind(&self) -> String {
        let Object {
            resource,
            subresource,
            ..
        } = &self.object_ref;
        let slash = if subresource.is_empty() { "" } else { "/" };
        format!("{} {resource}{slash}{subresource}", self.verb)
    }

    /// Kind and object.
    pub fn described(&self) -> String {
        format!("{} {}", self.kind(), self.object_ref.name)
    }

    /// Whether etcd holds what it asked for. A write that changed nothing counts too.
    pub fn is_write(&self) -> bool {
        (200..300).contains(&self.response_status.code)
            && ["create", "update", "patch", "delete"].contains(&&*self.verb)
    }

    /// Whether a leader has renewed its Lease by it.
    pub fn is_renewal(&self) -> bool {
        self.object_ref.resource == "leases"
    }

    /// Whether the operator has sent it. Watches are logged when they begin, too; only their end counts.
    fn is_counted(&self) -> bool {
        self.user.username == OPERATOR && self.stage == "ResponseComplete"
    }
}

impl Audit {
    /// Log from here on.
    pub fn from_now(control_plane: &ControlPlane, quiet: Duration) -> Result<Self> {
        let mut log = File::open(control_plane.audit_log()).context("open the audit log")?;
        log.seek(SeekFrom::End(0))?;
        let rest = Vec::new();
        Ok(Self { log, rest, quiet })
    }

    /// Requests of the operator since the last time.
    pub fn next(&mut self) -> Result<Vec<Request>> {
        self.log.read_to_end(&mut self.rest)?;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self.rest.drain(..end.map_or(0, |end| end + 1)).collect();
        let lines = whole.split(|byte| *byte == b'\n');
        let events = lines
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice);
        let events: Vec<Request> = events.collect::<Result<_, _>>().context("an audit event")?;
        Ok(events.into_iter().filter(Request::is_counted).collect())
    }

    /// Waits until the operator has made so many writes of this kind.
    pub async fn until_written(
        &mut self,
        kind: &str,
        count: usize,
        within: Duration,
    ) -> Result<()> {
        let mut written = 0;
        wait_until(&format!("{count} × {kind}"), within, async || {
            let requests = self.next()?;
            let writes = requests.iter().filter(|request| request.is_write());
            written += writes.filter(|request| request.kind() == kind).count();
            ensure!(written >= count, "{written} so far");
            Ok(())
        })
        .await
    }

    /// Waits until the operator writes no more.
    pub async fn until_quiet(&mut self, within: Duration) -> Result<()> {
        wait_until("the operator to be at rest", within, async || {
            self.next()?;
            tokio::time::sleep(self.quiet).await;
            let requests = self.next()?;
            let written = writes_but_renewals(&requests).count();
            ensure!(written == 0, "{written} writes in {:?}", self.quiet);
            Ok(())
        })
        .await
    }
}

/// Writes of the operator but for its Lease.
pub fn writes_but_renewals(requests: &[Request]) -> impl Iterator<Item = &Request> {
    let counted = |request: &&Request| request.is_write() && !request.is_renewal();
    requests.iter().filter(counted)
}

/// Number of requests of each kind, for a reader who wonders.
pub fn summary(requests: &[Request]) -> String {
    let mut kinds = BTreeMap::<_, usize>::new();
    for request in requests {
        *kinds.entry(request.kind()).or_default() += 1;
    }
    let kinds = kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
    kinds.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(user: &str, stage: &str, code: u16) -> Request {
        let event = serde_json::json!({
            "stage": stage, "verb": "update", "user": { "username": user },
            "objectRef": { "resource": "apikeys", "subresource": "status", "name": "acme" },
            "responseStatus": { "code": code },
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn an_answered_request_of_the_operator_counts_once_and_a_refused_write_is_none() {
        let written = read(OPERATOR, "ResponseComplete", 200);
        assert!(written.is_counted() && written.is_write());
        assert_eq!(written.described(), "update apikeys/status acme");
        assert!(!read(OPERATOR, "ResponseComplete", 409).is_write());
        assert!(!read(OPERATOR, "ResponseStarted", 200).is_counted());
        assert!(!read("admin", "ResponseComplete", 200).is_counted());
    }
}
