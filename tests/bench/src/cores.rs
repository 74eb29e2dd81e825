//! Which cores programs run on, where a comparison gives one of them a core of its own.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// One program has a core of its own; this program, and what it starts from here on, has the others.
/// When this is dropped, both may run on all of them again.
#[derive(Debug)]
pub struct Apart {
    program: u32,
    all: CpuSet,
}

impl Apart {
    /// Gives the program of that process id the first core that this one may use. What it forks from here
    /// on shares that core with it.
    pub fn of(program: u32) -> Result<Self> {
        let all = sched_getaffinity(Pid::this())?;
        let usable = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false));
        let usable: Vec<usize> = usable.collect();
        let (own, others) = usable.split_first().context("this program has no core")?;
        ensure!(
            !others.is_empty(),
            "one core alone cannot be given to one program: the others need another"
        );
        let apart = Self { program, all };
        keep_to(program, &set(&[*own])?)?;
        keep_to(std::process::id(), &set(others)?)?;
        Ok(apart)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        for process in [self.program, std::process::id()] {
            // One that has ended needs none.
            let _ = keep_to(process, &self.all);
        }
    }
}

fn set(cores: &[usize]) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)?;
    }
    Ok(set)
}

/// All threads that the process has now; those to come inherit it.
fn keep_to(process: u32, cores: &CpuSet) -> Result<()> {
    let threads = Path::new("/proc").join(process.to_string()).join("task");
    let threads = fs::read_dir(&threads).with_context(|| threads.display().to_string())?;
    for thread in threads {
        let name = thread?.file_name();
        let id: i32 = name.to_str().context("a thread's id")?.parse()?;
        sched_setaffinity(Pid::from_raw(id), cores)?;
    }
    Ok(())
}
