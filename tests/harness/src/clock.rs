//! A clock for a server under test: wrong by as much as a test says, while it runs.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use crate::{Program, scratch};

/// The time of day of the programs that run on it; their measure of passing time is right.
pub struct Clock {
    library: String,
    offset: PathBuf,
    /// Limit of the programs' reading of the offset: a variable of libfaketime.
    reading: (&'static str, &'static str),
}

impl Clock {
    /// Makes a clock that is right. Its programs notice at once when it is put ahead or behind: they read a
    /// file whenever they ask for the time.
    pub fn new() -> Result<Self> {
        Self::reading(("FAKETIME_NO_CACHE", "1"))
    }

    /// Makes a clock whose programs read the file once a second, and notice a change within a second. That
    /// takes most of the CPU off a Redis that has little to do.
    pub fn read_every_second() -> Result<Self> {
        Self::reading(("FAKETIME_CACHE_DURATION", "0"))
    }

    /// Makes a clock at noon in UTC, so that no day ends within a test. Its programs read the file once a second.
    #[allow(
        clippy::disallowed_methods,
        reason = "the programs' clock is this one, put ahead or behind"
    )]
    pub fn at_noon() -> Result<Self> {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let clock = Self::read_every_second()?;
        clock.set(until_noon(since_epoch.as_secs())?)?;
        Ok(clock)
    }

    fn reading(reading: (&'static str, &'static str)) -> Result<Self> {
        let library = format!("/usr/lib/{ARCH}-linux-gnu/faketime/libfaketime.so.1");
        ensure!(
            Path::new(&library).exists(),
            "libfaketime is missing: install the Debian package libfaketime"
        );
        let offset = scratch::directory("clock")?.join("offset");
        let clock = Self {
            library,
            offset,
            reading,
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// Puts it ahead by so many seconds, or behind.
    pub fn set(&self, ahead: i64) -> Result<()> {
        let written = self.offset.with_extension("written");
        fs::write(&written, format!("{ahead:+}s\n"))
            .and_then(|()| fs::rename(&written, &self.offset))
            .with_context(|| format!("write {}", self.offset.display()))
    }

    /// Returns the program as it runs on this clock. It must be linked dynamically.
    pub fn under(&self, program: Program) -> Program {
        // The second library allocates instead of jemalloc, which asks for the time while it starts;
        // libfaketime allocates when it is asked first, and would go round in a circle.
        let libraries = format!("{} libc_malloc_debug.so.0", self.library);
        program
            .env("LD_PRELOAD", libraries)
            .env("FAKETIME_TIMESTAMP_FILE", &self.offset)
            .env(self.reading.0, self.reading.1)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }
}

/// Returns the seconds from a moment, in seconds since the epoch, to noon of its day in UTC: negative in the afternoon.
fn until_noon(since_epoch: u64) -> Result<i64> {
    const DAY: u64 = 86_400;
    let passed = i64::try_from(since_epoch % DAY)?;
    Ok(i64::try_from(DAY / 2)? - passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noon_is_ahead_in_the_morning_and_behind_in_the_afternoon() {
        let midnight = 20_000 * 86_400;
        for (passed, ahead) in [(0, 43_200), (43_199, 1), (43_200, 0), (86_399, -43_199)] {
            assert_eq!(until_noon(midnight + passed).unwrap(), ahead, "{passed}");
        }
    }
}
