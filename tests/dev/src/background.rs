//! Work in the background, where other work leaves a core idle.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use anyhow::Result;

use crate::progress::Step;

/// Work in a thread of its own, which is shown as a step once somebody waits for it.
pub struct Background {
    messages: Receiver<String>,
    ended: JoinHandle<Result<()>>,
}

impl Background {
    /// Begins `work`.
    pub fn start(work: impl FnOnce(&Step) -> Result<()> + Send + 'static) -> Self {
        let (told, messages) = channel();
        let ended = thread::spawn(move || work(&Step::told_to(told)));
        Self { messages, ended }
    }

    /// Waits for its end, saying what it does.
    pub fn finish(self, step: &Step) -> Result<()> {
        for message in self.messages {
            step.say(&message);
        }
        self.ended
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}
