//! Two operators on one stage: one leads, the other stands by. A leader can be held until the other has
//! taken its place, and both can be stopped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use tokio::time::{Instant, timeout};
use water_harness::Process;

use crate::stage::Stage;
use crate::world::PATIENCE;

const NAMES: [&str; 2] = ["operator-0", "operator-1"];

pub struct Operators {
    processes: [Arc<Process>; 2],
    away: Mutex<Away>,
}

/// Who does not run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Away {
    #[default]
    Nobody,
    Held(usize),
    Everybody,
}

impl Operators {
    /// The stage's operator, and another beside it.
    pub fn of(stage: &Stage) -> Result<Self> {
        Ok(Self {
            processes: [Arc::clone(&stage.operator), stage.standby()?],
            away: Mutex::default(),
        })
    }

    /// The one that the Lease names.
    pub async fn leader(&self, stage: &Stage) -> Result<&Process> {
        Ok(&self.processes[leading(stage).await?])
    }

    /// Stops the leader, and waits until the Lease names the other one. Only one is held at a time.
    pub async fn hold(&self, stage: &Stage) -> Result<()> {
        if self.away() != Away::Nobody {
            return Ok(());
        }
        let leader = leading(stage).await?;
        self.processes[leader].signal(Signal::SIGSTOP)?;
        *self.lock() = Away::Held(leader);
        let stopped = Instant::now();
        let followed = stage.objects.led(|now| now == NAMES[1 - leader]);
        let followed = timeout(PATIENCE, followed).await;
        followed.with_context(|| format!("{} leads\n{}", NAMES[leader], self.log_ends()))??;
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
        *self.lock() = Away::Everybody;
        for operator in &self.processes {
            operator.stop(PATIENCE).await?;
        }
        Ok(())
    }

    /// Whether any of them runs.
    pub fn run(&self) -> bool {
        self.away() != Away::Everybody
    }

    /// Lets the one that is held go on, or starts both again.
    pub fn go_on(&self) -> Result<()> {
        match std::mem::take(&mut *self.lock()) {
            Away::Held(held) => self.processes[held].signal(Signal::SIGCONT),
            Away::Everybody => self.processes.iter().try_for_each(|one| one.start_again()),
            Away::Nobody => Ok(()),
        }
    }

    /// Stops the second one, and waits until the Lease names the first.
    pub async fn leave_to_first(&self, stage: &Stage) -> Result<()> {
        self.processes[1].stop(PATIENCE).await?;
        let leads = async || {
            let leader = stage.objects.leader().await?;
            ensure!(leader.as_deref() == Some(NAMES[0]), "{leader:?} leads");
            Ok(())
        };
        stage.wait("the first to lead", PATIENCE, leads).await
    }

    /// The ends of both logs.
    pub fn log_ends(&self) -> String {
        self.processes
            .each_ref()
            .map(|operator| operator.log_end())
            .join("\n\n")
    }

    fn away(&self) -> Away {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Away> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of the leader in the list of names; the first one's while nobody leads.
async fn leading(stage: &Stage) -> Result<usize> {
    let leader = stage.objects.leader().await?;
    Ok(usize::from(leader.as_deref() == Some(NAMES[1])))
}
