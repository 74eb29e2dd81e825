//! Two operators on one stage: one leads, the other is ready to take over. A leader can be held until the other leads,
//! and both can be stopped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use tokio::time::Instant;
use water_harness::Process;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::PATIENCE;

const NAMES: [&str; 2] = ["operator-0", "operator-1"];

pub struct Operators {
    processes: [Arc<Process>; 2],
    away: Mutex<Away>,
}

/// Operators that do not run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Away {
    #[default]
    Nobody,
    Held(usize),
    Everybody,
}

impl Operators {
    /// Starts another operator next to the stage's.
    pub fn start(stage: &Stage) -> Result<Self> {
        Ok(Self {
            processes: [Arc::clone(&stage.operator), stage.operator(NAMES[1])?],
            away: Mutex::default(),
        })
    }

    /// The one that the Lease names.
    pub fn leader(&self, stage: &Stage) -> Result<&Process> {
        Ok(&self.processes[leading(stage)?])
    }

    /// Stops the leader, and waits until the Lease names the other one. Only one is held at a time.
    pub async fn hold(&self, stage: &Stage) -> Result<()> {
        if *self.away() != Away::Nobody {
            return Ok(());
        }
        let leader = leading(stage)?;
        self.processes[leader].signal(Signal::SIGSTOP)?;
        *self.away() = Away::Held(leader);
        let stopped = Instant::now();
        leads(stage, NAMES[1 - leader]).await?;
        let took = stopped.elapsed().as_secs_f64();
        println!("{} was succeeded after {took:.3} s", NAMES[leader]);
        Ok(())
    }

    /// Stops both, and waits until they have ended.
    pub async fn stop(&self) -> Result<()> {
        if !self.run() {
            return Ok(());
        }
        self.go_on()?;
        *self.away() = Away::Everybody;
        for operator in &self.processes {
            operator.stop(PATIENCE).await?;
        }
        Ok(())
    }

    /// Whether any of them runs.
    pub fn run(&self) -> bool {
        *self.away() != Away::Everybody
    }

    /// Lets the one that is held go on, or starts both again.
    pub fn go_on(&self) -> Result<()> {
        match std::mem::take(&mut *self.away()) {
            Away::Held(held) => self.processes[held].signal(Signal::SIGCONT),
            Away::Everybody => self.processes.iter().try_for_each(|one| one.start_again()),
            Away::Nobody => Ok(()),
        }
    }

    /// Stops the second one, and waits until the Lease names the first.
    pub async fn leave_to_first(&self, stage: &Stage) -> Result<()> {
        self.processes[1].stop(PATIENCE).await?;
        leads(stage, NAMES[0]).await
    }

    fn away(&self) -> MutexGuard<'_, Away> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the Lease names that operator.
async fn leads(stage: &Stage, name: &str) -> Result<()> {
    let leads = async || {
        let leader = stage.objects.leader()?;
        ensure!(leader.as_deref() == Some(name), "{leader:?} leads");
        Ok(())
    };
    stage
        .wait(&format!("{name} to lead"), PATIENCE, leads)
        .await
}

/// The place of the leader in the list of names; the first one's while nobody leads.
fn leading(stage: &Stage) -> Result<usize> {
    let leader = stage.objects.leader()?;
    Ok(usize::from(leader.as_deref() == Some(NAMES[1])))
}
