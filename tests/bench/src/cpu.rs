//! What a process has used: CPU time and memory, from `/proc`, and this process by its own clocks.

use std::fs::{self, ReadDir};
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};

/// The CPU time of a process, all its threads and its children (nginx' workers), from the
/// scheduler's own account in nanoseconds (the first word of `schedstat`). Threads and children that
/// have ended are not in it.
pub fn time(process: u32) -> Result<Duration> {
    of_threads(fs::read_dir(format!("/proc/{process}/task"))?)
}

fn of_threads(threads: ReadDir) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in threads {
        let folder = thread?.path();
        let Some(schedstat) = of_living(fs::read_to_string(folder.join("schedstat")))? else {
            continue;
        };
        let on_cpu = schedstat.split(' ').next().unwrap_or_default().parse();
        total += Duration::from_nanos(on_cpu.context("schedstat begins with a time")?);
        let children = of_living(fs::read_to_string(folder.join("children")))?;
        for child in children.unwrap_or_default().split_ascii_whitespace() {
            if let Some(threads) = of_living(fs::read_dir(format!("/proc/{child}/task")))? {
                total += of_threads(threads)?;
            }
        }
    }
    Ok(total)
}

/// What was read; `None` where the thread or process has ended meanwhile.
fn of_living<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    let has_ended = |error: &io::Error| {
        let no_such_process = error.raw_os_error() == Some(Errno::ESRCH as i32);
        error.kind() == io::ErrorKind::NotFound || no_such_process
    };
    match read {
        Err(error) if has_ended(&error) => Ok(None),
        read => read.map(Some),
    }
}

/// The CPU time of this process, all its threads, to the microsecond at any moment: a running thread's
/// `schedstat` is as old as the scheduler's last tick.
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
