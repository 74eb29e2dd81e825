//! CPU time and memory of a process, as the kernel counts them.

use std::fs;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// CPU time of a process and of its living children (nginx' workers), with that of threads that have ended.
pub fn time(process: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(process.try_into()?)).map_err(io::Error::from)?;
    // A process that has ended meanwhile has no such clock.
    let time = clock_gettime(clock).map_err(|_| io::Error::from(Errno::ESRCH))?;
    let mut total = Duration::from(time);
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let children = unless_ended(fs::read_to_string(thread?.path().join("children")))?;
        for child in children.unwrap_or_default().split_ascii_whitespace() {
            total += unless_ended(time_of_child(child))?.unwrap_or_default();
        }
    }
    Ok(total)
}

fn time_of_child(child: &str) -> Result<Duration> {
    time(child.parse()?)
}

/// Result of a read, or `None` for a thread or process that has ended meanwhile.
fn unless_ended<T, E: Into<anyhow::Error>>(read: Result<T, E>) -> Result<Option<T>> {
    let has_ended = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| {
            let no_such_process = error.raw_os_error() == Some(Errno::ESRCH as i32);
            error.kind() == io::ErrorKind::NotFound || no_such_process
        })
    };
    match read.map_err(Into::into) {
        Err(error) if has_ended(&error) => Ok(None),
        read => read.map(Some),
    }
}

/// Resident memory of a process, in bytes.
pub fn resident_memory(process: u32) -> Result<u64> {
    memory(process, "VmRSS:")
}

/// Most memory of a process that was ever resident, in bytes.
pub fn peak_memory(process: u32) -> Result<u64> {
    memory(process, "VmHWM:")
}

fn memory(process: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let found = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = found.and_then(|text| text.trim().strip_suffix(" kB"));
    let kibibytes = kibibytes.with_context(|| format!("a process has a line {name}"))?;
    Ok(kibibytes.parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_that_end_meanwhile_are_no_error() {
        let ending = thread::spawn(|| {
            for _ in 0..2_000 {
                thread::spawn(|| {}).join().unwrap();
            }
        });
        while !ending.is_finished() {
            time(std::process::id()).unwrap();
        }
    }
}
