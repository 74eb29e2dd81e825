//! ApiKeys that a fault meets: keys in each of their states, and each change of a key under way, while
//! clients ask with all of them.

use anyhow::{Context, Result, ensure};
use futures::future::{try_join, try_join_all};
use tokio::time::Instant;
use water_domain::KeyHash;
use water_kit::operator::objects::shown;
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::PATIENCE;

use super::scenario::{Scenario, Subject};

const CHANGES: [Scenario; 5] = [
    Scenario::Create,
    Scenario::Rotate,
    Scenario::Reissue,
    Scenario::Suspend,
    Scenario::Delete,
];
/// A key that was provided and is in force …
const PARTNER: &str = "partner";
/// … and one that was deleted.
const FORMER: &str = "former";

/// ApiKeys of a stage, except those that a fault is about.
pub struct Population {
    /// Changes that were through before the fault. The keys are in force, in an overlap, suspended and gone.
    early: Vec<Subject>,
    /// Changes that begin with the fault.
    late: Vec<Subject>,
    /// The keys in the Secrets of the early ones, which no fault replaces.
    kept: Vec<(String, KeyHash)>,
}

impl Population {
    /// Makes all of them. No change is under way yet.
    pub async fn make(stage: &Stage) -> Result<Self> {
        let (early, late) = (prepared(stage, "early"), prepared(stage, "late"));
        let (early, late) = try_join(early, late).await?;
        early.iter().try_for_each(|subject| subject.begin(stage))?;
        let mut kept = Vec::new();
        for subject in &early {
            subject.ends(stage).await?;
            if subject.scenario != Scenario::Delete {
                let text = stage.objects.text_hash(&subject.name)?;
                kept.push((subject.name.clone(), text.context("a key in a Secret")?));
            }
        }
        stage.bring(PARTNER, 'a').await?;
        let former = stage.bring(FORMER, 'f').await?;
        stage.revoke(FORMER, former).await?;
        Ok(Self { early, late, kept })
    }

    /// Asks for all changes at once.
    pub fn change(&self, stage: &Stage) -> Result<()> {
        self.late
            .iter()
            .try_for_each(|subject| subject.begin(stage))
    }

    /// Waits until one of the changes is through.
    pub async fn ended(&self, stage: &Stage, change: Scenario) -> Result<()> {
        let mut late = self.late.iter();
        let late = late.find(|subject| subject.scenario == change);
        late.context("no such change")?.ends(stage).await
    }

    /// Waits until the changes are through and everything else is as it was, and prints the time that
    /// took since `healed`. A violation that nothing makes good ends the wait.
    pub async fn rest(&self, stage: &Stage, healed: Instant) -> Result<()> {
        let violations = async || stage.violations().await;
        let is_as_declared = async || self.is_as_declared(stage);
        stage.rests(PATIENCE, violations, is_as_declared).await?;
        converged(healed);
        Ok(())
    }

    fn is_as_declared(&self, stage: &Stage) -> Result<()> {
        for subject in self.early.iter().chain(&self.late) {
            let ended = subject.has_ended(stage);
            ended.with_context(|| subject.name.clone())?;
        }
        for (name, kept) in &self.kept {
            let text = stage.objects.text_hash(name)?;
            ensure!(text == Some(*kept), "{name} has another key: {text:?}");
        }
        let partner = stage.objects.key(PARTNER)?.context("no ApiKey")?;
        let ready = shown(&partner, "Ready");
        ensure!(ready == "True/Active", "{ready}: {:?}", partner.status);
        Ok(())
    }
}

async fn prepared(stage: &Stage, when: &str) -> Result<Vec<Subject>> {
    let prepared = CHANGES.map(|scenario| async move {
        let name = format!("{when}-{scenario:?}").to_lowercase();
        Subject::prepare(stage, scenario, &name).await
    });
    try_join_all(prepared).await
}
