//! What the API server was asked, from its audit log, read on from where it was read to before.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use water_harness::{ControlPlane, wait_until};

/// The operator's user.
const OPERATOR: &str = "system:serviceaccount:water:water-operator";
/// The operator is at rest when it has written nothing for so long.
const QUIET: Duration = Duration::from_secs(5);

/// The audit log.
pub struct Audit {
    log: File,
    /// A line of which only the beginning is written.
    rest: Vec<u8>,
}

/// A request of the operator that was answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// Such as `create`.
    pub verb: String,
    /// Such as `apikeys/status`.
    pub resource: String,
    /// Of the object, if it names one.
    pub name: String,
    is_done: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
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
    /// Whether etcd holds what it asked for. One that changed nothing counts too.
    pub fn is_write(&self) -> bool {
        self.is_done && ["create", "update", "patch", "delete"].contains(&&*self.verb)
    }

    /// Whether it wrote an object of this kind.
    pub fn wrote(&self, verb: &str, resource: &str) -> bool {
        self.is_write() && self.verb == verb && self.resource == resource
    }

    /// Whether it is how a leader says that it still leads.
    pub fn is_of_lease(&self) -> bool {
        self.resource == "leases"
    }
}

impl Audit {
    /// From here on.
    pub fn from_now(control_plane: &ControlPlane) -> Result<Self> {
        let mut log = File::open(control_plane.audit_log()).context("open the audit log")?;
        log.seek(SeekFrom::End(0))?;
        Ok(Self {
            log,
            rest: Vec::new(),
        })
    }

    /// The operator's requests since the last time.
    pub fn next(&mut self) -> Result<Vec<Request>> {
        self.log.read_to_end(&mut self.rest)?;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = self.rest.drain(..end.map_or(0, |end| end + 1)).collect();
        let lines = whole.split(|byte| *byte == b'\n');
        let mut requests = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            requests.extend(request(line)?);
        }
        Ok(requests)
    }

    /// Waits until the operator has made so many writes of this kind.
    pub async fn until_written(
        &mut self,
        verb: &str,
        resource: &str,
        count: usize,
        within: Duration,
    ) -> Result<()> {
        let mut written = 0;
        let what = format!("{count} × {verb} {resource}");
        wait_until(&what, within, async || {
            let requests = self.next()?;
            written += requests
                .iter()
                .filter(|request| request.wrote(verb, resource))
                .count();
            ensure!(written >= count, "{written} so far");
            Ok(())
        })
        .await
    }

    /// Waits until the operator writes no more.
    pub async fn until_quiet(&mut self, within: Duration) -> Result<()> {
        wait_until("the operator to be at rest", within, async || {
            self.next()?;
            tokio::time::sleep(QUIET).await;
            let requests = self.next()?;
            let written = requests
                .iter()
                .filter(|request| request.is_write() && !request.is_of_lease());
            let written = written.count();
            ensure!(written == 0, "{written} writes in {QUIET:?}");
            Ok(())
        })
        .await
    }
}

/// How many of each kind, for a reader who wonders.
pub fn summary<'a>(requests: impl IntoIterator<Item = &'a Request>) -> String {
    let mut kinds = BTreeMap::<_, usize>::new();
    for request in requests {
        *kinds.entry((&request.verb, &request.resource)).or_default() += 1;
    }
    let kinds = kinds
        .iter()
        .map(|((verb, resource), count)| format!("{count} {verb} {resource}"));
    kinds.collect::<Vec<_>>().join(", ")
}

/// A watch is told of when it begins, too; only its end is counted.
fn request(line: &[u8]) -> Result<Option<Request>> {
    let event: Event = serde_json::from_slice(line).context("an audit event")?;
    if event.user.username != OPERATOR || event.stage != "ResponseComplete" {
        return Ok(None);
    }
    let object = event.object_ref;
    let subresource = match &*object.subresource {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    Ok(Some(Request {
        verb: event.verb,
        resource: object.resource + &subresource,
        name: object.name,
        is_done: (200..300).contains(&event.response_status.code),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(user: &str, stage: &str, code: u16) -> Option<Request> {
        let event = serde_json::json!({
            "stage": stage, "verb": "update", "user": { "username": user },
            "objectRef": { "resource": "apikeys", "subresource": "status", "name": "acme" },
            "responseStatus": { "code": code },
        });
        request(event.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_the_operator_was_answered_is_counted_once_and_a_refused_write_is_none() {
        let written = read(OPERATOR, "ResponseComplete", 200).unwrap();
        assert!(written.wrote("update", "apikeys/status"));
        assert!(!read(OPERATOR, "ResponseComplete", 409).unwrap().is_write());
        assert!(read(OPERATOR, "ResponseStarted", 200).is_none());
        assert!(read("admin", "ResponseComplete", 200).is_none());
    }
}
