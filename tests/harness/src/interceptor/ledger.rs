//! Orders of faults, and the requests that have passed: shared by all listeners of an interceptor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::framing::Protocol;
use crate::Process;

/// Time of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The request does not reach the server.
    BeforeDelivery,
    /// The server has carried the request out; its answer does not reach the client.
    AfterDelivery,
}

/// Requests to which a fault happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// The request of this number, counted from 1 and from the order on.
    Number(usize),
    /// Requests whose method and target, or whose command, hold this text.
    Every(&'static str),
    /// Requests whose method and target end with this text.
    Ending(&'static str),
}

/// Fault of the sender of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The sender's connection ends.
    Cut,
    /// The process is killed (SIGKILL).
    Kill(Arc<Process>),
    /// No answer comes, and the connection stays open.
    Hang,
    /// Delivery after this long. Before delivery only.
    Late(Duration),
    /// Answer instead of the server's, after which the connection ends. Before delivery only.
    Answer(Bytes),
}

/// Sees each request before it is delivered.
pub type Witness = Box<dyn FnMut(Protocol, &[u8]) + Send>;

/// Decides before the delivery of each request which fault happens to it.
pub type Judge = Box<dyn FnMut(Protocol, &[u8]) -> Option<(Moment, Fault)> + Send>;

/// Counts requests, and knows at which of them a fault happens.
#[derive(Default)]
pub struct Ledger(Mutex<State>);

#[derive(Default)]
struct State {
    /// Requests since the last order, each in a few words.
    requests: Vec<String>,
    order: Option<Order>,
    witness: Option<Witness>,
    judge: Option<Judge>,
}

struct Order {
    which: Which,
    moment: Moment,
    fault: Fault,
}

impl Ledger {
    /// Notes a request. A fault that is due at it is the caller's to carry out.
    pub fn note(&self, protocol: Protocol, request: &[u8]) -> Option<(Moment, Fault)> {
        let mut state = self.state();
        if let Some(witness) = &mut state.witness {
            witness(protocol, request);
        }
        let judged = state.judge.as_mut();
        let judged = judged.and_then(|judge| judge(protocol, request));
        let summary = protocol.summary(request);
        let number = state.requests.len() + 1;
        let order = state.order.as_ref();
        let is_due = order.is_some_and(|order| order.which.is(number, &summary));
        state.requests.push(summary);
        if judged.is_some() {
            return judged;
        }
        let order = state.order.as_ref().filter(|_| is_due)?;
        let due = (order.moment, order.fault.clone());
        if order.which == Which::Number(number) {
            state.order = None;
        }
        Some(due)
    }

    /// Counts from 0 again, and orders a fault.
    pub fn order(&self, which: Which, moment: Moment, fault: Fault) {
        let mut state = self.state();
        state.requests.clear();
        state.order = Some(Order {
            which,
            moment,
            fault,
        });
    }

    /// Takes the order back and counts from 0 again. Returns the requests until then, and whether an order
    /// is left.
    pub fn recall(&self) -> (Vec<String>, bool) {
        let mut state = self.state();
        let is_left = state.order.take().is_some();
        (std::mem::take(&mut state.requests), is_left)
    }

    /// Shows `witness` every request from now on.
    pub fn show(&self, witness: Witness) {
        self.state().witness = Some(witness);
    }

    /// Asks `judge` from now on; an order counts where it names no fault.
    pub fn judge(&self, judge: Judge) {
        self.state().judge = Some(judge);
    }

    /// Returns the requests since the last order.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Which {
    fn is(&self, number: usize, summary: &str) -> bool {
        match self {
            Self::Number(wanted) => *wanted == number,
            Self::Every(text) => summary.contains(text),
            Self::Ending(text) => summary.ends_with(text),
        }
    }
}
