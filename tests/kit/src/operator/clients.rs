//! Clients that ask a gate all the time, each with one key, and count every answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use water_domain::{KeyHash, Timestamp};

use super::gate::Gate;

/// Pause between two questions about one key.
const PAUSE: Duration = Duration::from_millis(2);

/// Required answer of the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The key is valid.
    Accepted,
    /// The key is revoked, suspended or expired.
    Refused,
    /// A change is under way.
    Either,
}

/// Required answer of the gate during a while of its clock; before and after it may answer either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation {
    expected: Expected,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl From<Expected> for Expectation {
    fn from(expected: Expected) -> Self {
        Self {
            expected,
            from: None,
            until: None,
        }
    }
}

impl Expectation {
    /// Whether the key is accepted meanwhile.
    pub fn accepts(self) -> bool {
        self.expected == Expected::Accepted
    }

    /// Limits the expectation to the time from then on.
    pub fn after(self, from: Option<Timestamp>) -> Self {
        Self { from, ..self }
    }

    /// Limits the expectation to the time until the earliest of these times.
    pub fn until(self, until: impl IntoIterator<Item = Timestamp>) -> Self {
        let until = self.until.into_iter().chain(until).min();
        Self { until, ..self }
    }

    /// Returns the required answer to a question asked and answered at these times. A gate without a clock
    /// answers nothing.
    pub fn at(self, asked: Option<Timestamp>, answered: Option<Timestamp>) -> Expected {
        // The clock may be set meanwhile, ahead or back.
        let mut times = [asked, answered].into_iter().flatten();
        let is_within = |now: Timestamp| {
            self.from.is_none_or(|from| from <= now) && self.until.is_none_or(|until| now < until)
        };
        if times.all(is_within) {
            self.expected
        } else {
            Expected::Either
        }
    }
}

/// The answers to one client.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Questions asked.
    pub sent: u64,
    /// The key was accepted, and could be.
    pub accepted: u64,
    /// The key was refused, and could be.
    pub refused: u64,
    /// A valid key was refused.
    pub wrongly_refused: u64,
    /// A dead key was accepted.
    pub wrongly_accepted: u64,
}

impl Tally {
    fn count(&mut self, accepted: bool, expected: Expected) {
        let counter = match (accepted, expected) {
            (true, Expected::Refused) => &mut self.wrongly_accepted,
            (false, Expected::Accepted) => &mut self.wrongly_refused,
            (true, _) => &mut self.accepted,
            (false, _) => &mut self.refused,
        };
        *counter += 1;
    }
}

type Asked = BTreeMap<KeyHash, (Expectation, Tally)>;

/// Clients of one gate.
pub struct Clients {
    asked: Arc<Mutex<Asked>>,
    asking: JoinHandle<()>,
}

impl Clients {
    /// No client yet.
    pub fn at(gate: &Arc<Gate>) -> Self {
        let asked = Arc::<Mutex<Asked>>::default();
        let (gate, shared) = (Arc::clone(gate), Arc::clone(&asked));
        let asking = tokio::spawn(async move {
            loop {
                ask(&gate, &mut lock(&shared));
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { asked, asking }
    }

    /// Lets a client ask with this key from now on, which must be answered so.
    pub fn expect(&self, hash: KeyHash, expected: impl Into<Expectation>) {
        let expected = expected.into();
        let mut asked = lock(&self.asked);
        asked.entry(hash).or_insert((expected, Tally::default())).0 = expected;
    }

    /// Ends all clients.
    pub fn forget(&self) {
        lock(&self.asked).clear();
    }

    /// Returns the tally of each key.
    pub fn tallies(&self) -> BTreeMap<KeyHash, Tally> {
        let asked = lock(&self.asked);
        asked
            .iter()
            .map(|(hash, (_, tally))| (*hash, *tally))
            .collect()
    }
}

/// Asks with every key. An expectation cannot change between a question and its answer: this holds the lock.
fn ask(gate: &Gate, asked: &mut Asked) {
    for (hash, (expected, tally)) in asked {
        tally.sent += 1;
        let asked = gate.now();
        if let Ok(account) = gate.account(hash) {
            tally.count(account.is_some(), expected.at(asked, gate.now()));
        }
    }
}

fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.asking.abort();
    }
}
