//! Ctrl-C in a command that has to clean up: the programs that it runs end, the command itself goes
//! on to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Request to stop the command, once it has come.
#[derive(Clone, Default)]
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Keeps SIGINT and SIGTERM from ending this process. Programs that it starts get them as usual: a
    /// terminal sends Ctrl-C to all of them. So the signals are caught, not blocked: a program inherits what
    /// is blocked, and every server that a test starts could no longer be asked to stop.
    pub fn watch() -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot catch signals")?;
        let come = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&come);
        thread::spawn(move || {
            for _ in &mut signals {
                eprintln!("interrupted: cleaning up");
                noticed.store(true, Ordering::Relaxed);
            }
        });
        Ok(Self(come))
    }

    /// Returns one that has come.
    #[cfg(test)]
    pub fn come() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// Whether a signal has come.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill, raise};
    use nix::unistd::Pid;

    use super::*;
    use crate::wait;

    #[test]
    fn the_command_goes_on_and_its_programs_can_be_stopped() {
        let interruption = Interruption::watch().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap());
        kill(id, Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
        assert!(!interruption.has_come());

        raise(Signal::SIGTERM).unwrap();
        wait::until(Duration::from_secs(60), "the signal", || {
            Ok(interruption.has_come().then_some(()))
        })
        .unwrap();
    }
}
