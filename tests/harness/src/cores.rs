//! Threads that keep to a core and come before all ordinary ones.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, gettid};

/// Returns the cores that this thread may use.
pub fn usable() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).context("cannot read the usable cores")?;
    let is_allowed = |core: &usize| allowed.is_set(*core).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(is_allowed).collect())
}

/// Keeps this thread to a core, with a real-time priority from 1 to 99, if the machine allows both.
pub fn take(core: usize, priority: u8) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &only))
        .with_context(|| format!("cannot keep a thread to core {core}"))?;
    let mut command = Command::new("chrt");
    command.args([
        "--fifo",
        "--pid",
        &priority.to_string(),
        &gettid().to_string(),
    ]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.context("cannot start `chrt`")?;
    ensure!(status.success(), "this machine refuses real-time priority");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_keeps_to_the_core_that_it_takes() {
        let core = usable().unwrap()[0];
        let thread = thread::spawn(move || {
            // The core is kept, whether this machine allows the priority or not.
            let _refused = take(core, 1);
            usable().unwrap()
        });
        assert_eq!(thread.join().unwrap(), [core]);
    }
}
