//! Requests of a user, from the audit log of an API server, read on from the last time.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Requests of a user that an API server has answered. A look reads what was appended to the audit log since the last
/// look. The log only grows: it is never rotated, and an API server that starts again appends to it.
pub struct AuditEvents {
    log: PathBuf,
    user: String,
    /// Length of the lines that were read.
    read: u64,
    events: Vec<Value>,
}

impl AuditEvents {
    pub(super) fn new(log: PathBuf, user: &str) -> Self {
        Self {
            log,
            user: user.to_owned(),
            read: 0,
            events: Vec::new(),
        }
    }

    /// Returns all that the log has by now, in its order.
    pub fn all(&mut self) -> Result<&[Value]> {
        let lines = lines_from(&self.log, self.read).context("read the audit log")?;
        let events = events_in(&lines, &self.user)?;
        // Nothing fails from here on: what a look that failed has read, the next one reads again.
        self.events.extend(events);
        self.read += lines.len() as u64;
        Ok(&self.events)
    }
}

/// Reads the lines that a log has from an offset on. The last one may be half written: it is left for the next look.
fn lines_from(log: &Path, offset: u64) -> Result<String> {
    let mut log = File::open(log)?;
    let length = log.metadata()?.len();
    ensure!(length >= offset, "{length} bytes, {offset} of it were read");
    log.seek(SeekFrom::Start(offset))?;
    let mut lines = Vec::new();
    log.read_to_end(&mut lines)?;
    let last = lines.iter().rposition(|byte| *byte == b'\n');
    lines.truncate(last.map_or(0, |last| last + 1));
    Ok(String::from_utf8(lines)?)
}

/// Finds the events of a user. Where tests share a server, most lines are of others.
fn events_in(lines: &str, user: &str) -> Result<Vec<Value>> {
    let of_user = lines.lines().filter(|line| line.contains(user));
    let events: Result<Vec<Value>> = of_user
        .map(|line| serde_json::from_str(line).context("an audit event"))
        .collect();
    let mut events = events?;
    events.retain(|event| event["user"]["username"] == user);
    Ok(events)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::scratch;

    fn line(user: &str, verb: &str) -> String {
        let event =
            json!({ "user": { "username": user }, "verb": verb, "objectRef": { "name": "é" } });
        format!("{event}\n")
    }

    fn verbs(events: &mut AuditEvents) -> Vec<String> {
        let events = events.all().unwrap().iter();
        let verbs = events.map(|event| event["verb"].as_str().unwrap().to_owned());
        verbs.collect()
    }

    #[test]
    fn each_line_is_read_once_when_it_is_whole() {
        let log = scratch::directory("audit").unwrap().join("audit.log");
        let whole = line("another", "watch") + &line("reader", "get");
        let next = line("reader", "list");
        fs::write(&log, "").unwrap();
        let mut events = AuditEvents::new(log.clone(), "reader");
        assert!(verbs(&mut events).is_empty());
        for length in 0..next.len() {
            let begun = [whole.as_bytes(), &next.as_bytes()[..length]].concat();
            fs::write(&log, begun).unwrap();
            assert_eq!(verbs(&mut events), ["get"], "{length}");
        }
        fs::write(&log, format!("{whole}{next}")).unwrap();
        for _ in 0..2 {
            assert_eq!(verbs(&mut events), ["get", "list"]);
        }
        assert_eq!(events.read, (whole.len() + next.len()) as u64);
    }

    #[test]
    fn a_user_whose_name_begins_with_anothers_is_another() {
        let lines = line("reader-2", "get") + &line("reader", "list");
        let events = events_in(&lines, "reader").unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["verb"], "list");
    }

    #[test]
    fn what_a_failed_look_has_read_is_read_again_and_a_log_that_has_shrunk_is_an_error() {
        let log = scratch::directory("audit").unwrap().join("audit.log");
        let first = line("reader", "get");
        fs::write(&log, format!("{first}reader\n")).unwrap();
        let mut events = AuditEvents::new(log.clone(), "reader");
        assert!(events.all().is_err());
        fs::write(&log, &first).unwrap();
        assert_eq!(verbs(&mut events), ["get"]);
        fs::write(&log, "").unwrap();
        assert!(events.all().is_err());
    }
}
