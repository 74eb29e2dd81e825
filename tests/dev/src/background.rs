//! Work in the background, where other work leaves a core idle.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use anyhow::Result;

use crate::progress::Step;
use crate::timeline::Timeline;

/// Work in a separate thread, shown as a step once another step waits for its result.
pub struct Background<T = ()> {
    messages: Receiver<String>,
    ended: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> Background<T> {
    /// Begins `work`, which the timeline records under `name`.
    pub fn start(
        timeline: &Timeline,
        name: &'static str,
        work: impl FnOnce(&Step) -> Result<T> + Send + 'static,
    ) -> Self {
        let (sender, messages) = channel();
        let timeline = timeline.clone();
        let ended = thread::spawn(move || timeline.record(name, || work(&Step::sent_to(sender))));
        Self { messages, ended }
    }

    /// Waits for its end and shows its messages.
    pub fn finish(self, step: &Step) -> Result<T> {
        for message in self.messages {
            step.say(&message);
        }
        self.ended
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}
