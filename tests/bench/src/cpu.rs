//! What a process has used: CPU time and memory, from `/proc`, and this process by its own clocks.

use std::fs;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The CPU time of a process with all its threads, those that have ended too, and of its living children
/// (nginx' workers) likewise.
pub fn time(process: u32) -> Result<Duration> {
    let mut total = own_of(process)?;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let children = of_living(fs::read_to_string(thread?.path().join("children")))?;
        for child in children.unwrap_or_default().split_ascii_whitespace() {
            total += of_living(time(child.parse()?))?.unwrap_or_default();
        }
    }
    Ok(total)
}

fn own_of(process: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(process.try_into()?)).map_err(io::Error::from)?;
    // A process that has ended meanwhile has no such clock any more.
    let time = clock_gettime(clock).map_err(|_| io::Error::from(Errno::ESRCH))?;
    Ok(time.into())
}

/// What was read; `None` where the thread or process has ended meanwhile.
fn of_living<T, E: Into<anyhow::Error>>(read: Result<T, E>) -> Result<Option<T>> {
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

/// The CPU time of this process, all its threads.
pub fn own() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// The CPU time of the calling thread.
pub fn own_thread() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// The memory of a process that is resident, in bytes.
pub fn resident_memory(process: u32) -> Result<u64> {
    memory(process, "VmRSS:")
}

/// The most memory of a process that was ever resident, in bytes.
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
    use std::process::id;
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
            time(id()).unwrap();
        }
    }

    #[test]
    fn what_an_ended_thread_has_used_stays_counted() {
        const WORK: Duration = Duration::from_millis(20);
        let before = time(id()).unwrap();
        let working = thread::spawn(|| while own_thread().unwrap() < WORK {});
        working.join().unwrap();
        assert!(time(id()).unwrap() >= before + WORK);
    }

    #[test]
    fn this_process_has_used_some_of_both() {
        let numbers: Vec<u64> = (0..1_000_000).collect();
        assert!(time(id()).unwrap() > Duration::ZERO);
        assert!(own_thread().unwrap() > Duration::ZERO);
        assert!(own().unwrap() >= own_thread().unwrap());
        let resident = resident_memory(id()).unwrap();
        assert!(resident > size_of_val(&numbers[..]) as u64);
        assert!(peak_memory(id()).unwrap() >= resident);
    }
}
