//! Cores that programs run on, where a comparison gives one of them a core for itself.

use std::fs;

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Separation of cores: one program has a core for itself; this program, and what it starts from then on, has
/// the others. Dropped, both may run on all of them again.
#[derive(Debug)]
pub struct Apart {
    program: u32,
    all: CpuSet,
}

impl Apart {
    /// Gives the program of that process id the first core that this one may use. Its later children share it.
    pub fn new(program: u32) -> Result<Self> {
        let all = sched_getaffinity(Pid::this())?;
        let (mut own, mut others) = (CpuSet::new(), all);
        let first = (0..CpuSet::count()).find(|core| all.is_set(*core).unwrap_or(false));
        let first = first.context("this program has no core")?;
        own.set(first)?;
        others.unset(first)?;
        ensure!(others != CpuSet::new(), "two programs need two cores");
        let apart = Self { program, all };
        keep_to(program, &own)?;
        keep_to(std::process::id(), &others)?;
        Ok(apart)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        for process in [self.program, std::process::id()] {
            // A program that has ended needs none.
            let _ = keep_to(process, &self.all);
        }
    }
}

/// Moves all threads of a process; later ones inherit that.
fn keep_to(process: u32, cores: &CpuSet) -> Result<()> {
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let name = thread?.file_name();
        let id: i32 = name.to_str().context("a thread's id")?.parse()?;
        sched_setaffinity(Pid::from_raw(id), cores)?;
    }
    Ok(())
}
