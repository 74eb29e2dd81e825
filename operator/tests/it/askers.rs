//! Clients that never stop asking gates' processes with keys, each of which has to be accepted or
//! refused. A wrong answer at any time is remembered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;
use water_harness::{HttpClient, wait_until};

use crate::gate_process::GateProcess;
use crate::world::PATIENCE;

const TARGET: &str = "/api/v1/stress?dept=34";
/// Between two questions to one gate: it answers 40 wrong keys a second.
const PAUSE: Duration = Duration::from_millis(40);

/// Refused; or while the directory is rebuilt, when nobody can say whether a key that the gate does not
/// know is wrong.
const NOT_ACCEPTED: [&str; 2] = ["401", "503"];

/// What every gate must answer to a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// It is valid.
    Accepted,
    /// It is revoked or suspended.
    Refused,
    /// A change is under way.
    Either,
}

#[derive(Default)]
struct Asked {
    /// By the key's name: its text, and what is expected.
    keys: BTreeMap<String, (String, Expected)>,
    /// By the gate's name: how often all keys were asked for.
    rounds: BTreeMap<String, u64>,
    answers: u64,
    wrong: Vec<String>,
}

impl Asked {
    fn note(&mut self, gate: &str, key: &str, expected: Expected, status: &str) {
        self.answers += 1;
        let is_right = match expected {
            Expected::Accepted => status == "200",
            Expected::Refused => NOT_ACCEPTED.contains(&status),
            Expected::Either => status == "200" || NOT_ACCEPTED.contains(&status),
        };
        // What is expected may have changed between the question and its answer.
        let is_still = self.keys.get(key).is_some_and(|now| now.1 == expected);
        if !is_right && is_still {
            let wrong = format!("{gate} answered {status} to {key}, expected {expected:?}");
            self.wrong.push(wrong);
        }
    }
}

/// One client of each gate.
#[derive(Default)]
pub struct Askers {
    asked: Arc<Mutex<Asked>>,
    asking: Vec<JoinHandle<()>>,
}

impl Askers {
    /// A gate of this name is asked, too.
    pub async fn ask(&mut self, name: &str, gate: &GateProcess) -> Result<()> {
        let (mut client, name) = (gate.connect().await?, name.to_owned());
        let asked = Arc::clone(&self.asked);
        self.asking.push(tokio::spawn(async move {
            loop {
                round(&name, &mut client, &asked).await;
                *lock(&asked).rounds.entry(name.clone()).or_default() += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }));
        Ok(())
    }

    /// From here on every gate is asked with this text.
    pub fn know(&self, key: &str, text: &str) {
        let of_key = (text.to_owned(), Expected::Either);
        lock(&self.asked).keys.insert(key.to_owned(), of_key);
    }

    /// From here on every gate has to answer so to the key of this name.
    pub fn expect(&self, key: &str, expected: Expected) {
        if let Some(of_key) = lock(&self.asked).keys.get_mut(key) {
            of_key.1 = expected;
        }
    }

    /// Waits until every gate was asked with every key once more. Returns how many answers were right
    /// so far; an error names the wrong ones.
    pub async fn all_right(&self) -> Result<u64> {
        let before = lock(&self.asked).rounds.clone();
        let asked = async || {
            let asked = lock(&self.asked);
            // The round that was under way may have begun with fewer keys.
            let mut all = before.iter();
            let done = all.all(|(gate, rounds)| asked.rounds[gate] >= rounds + 2);
            ensure!(done, "asked {:?} times", asked.rounds);
            Ok(())
        };
        wait_until("two rounds of every client", PATIENCE, asked).await?;
        let asked = lock(&self.asked);
        ensure!(asked.wrong.is_empty(), "{:#?}", asked.wrong);
        Ok(asked.answers)
    }
}

impl Drop for Askers {
    fn drop(&mut self) {
        self.asking.iter().for_each(JoinHandle::abort);
    }
}

/// Asks with every key once.
async fn round(gate: &str, client: &mut HttpClient, asked: &Mutex<Asked>) {
    let keys = lock(asked).keys.clone();
    for (key, (text, expected)) in keys {
        let answer = client.get(TARGET, &text).await;
        let status = answer.map_or_else(|error| format!("{error:#}"), |it| it.status.to_string());
        lock(asked).note(gate, &key, expected, &status);
        tokio::time::sleep(PAUSE).await;
    }
}

fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}
