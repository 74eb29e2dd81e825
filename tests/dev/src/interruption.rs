//! Ctrl-C in a command that has to clean up: the programs that it runs end, the command itself goes
//! on to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Whether the command was asked to stop.
#[derive(Clone)]
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// From here on SIGINT and SIGTERM do not end this process. Programs that it starts get them as
    /// usual: a terminal sends Ctrl-C to all of them. So the signals are caught, not blocked: a
    /// program inherits what is blocked, and every server that a test starts could no longer be
    /// asked to stop.
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

    use anyhow::ensure;
    use nix::sys::signal::{Signal, kill, raise};
    use nix::unistd::Pid;
    use water_harness::wait_until;

    use super::*;

    #[tokio::test]
    async fn the_command_goes_on_and_its_programs_can_be_stopped() {
        let interruption = Interruption::watch().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        kill(
            Pid::from_raw(i32::try_from(child.id()).unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
        assert!(!interruption.has_come());

        raise(Signal::SIGTERM).unwrap();
        let noticed = async || {
            ensure!(interruption.has_come(), "not noticed");
            Ok(())
        };
        wait_until("the signal", Duration::from_secs(60), noticed)
            .await
            .unwrap();
    }
}
