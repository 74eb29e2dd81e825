//! Ctrl-C in a command that has to clean up: the programs that it runs end, the command itself goes on to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};

/// Whether the command was asked to stop.
#[derive(Clone)]
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// From here on SIGINT and SIGTERM do not end this process. Programs that it starts get them as usual: a terminal
    /// sends Ctrl-C to all of them. To be called before there are other threads.
    pub fn watch() -> Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block().context("cannot hold back signals")?;
        let come = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&come);
        thread::spawn(move || {
            while signals.wait().is_ok() {
                eprintln!("interrupted: cleaning up");
                noticed.store(true, Ordering::Relaxed);
            }
        });
        Ok(Self(come))
    }

    /// Whether a signal has come.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
