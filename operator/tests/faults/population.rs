//! What a fault is put to: keys in each of their states, and each change of a key under way, while
//! clients ask with all of them.

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;
use water_domain::KeyHash;

use crate::clients::Expected;
use crate::objects::shown;
use crate::scenario::{Scenario, Subject};
use crate::stage::Stage;
use crate::world::{PATIENCE, brought};

const CHANGES: [Scenario; 5] = [
    Scenario::Create,
    Scenario::Rotate,
    Scenario::Reissue,
    Scenario::Suspend,
    Scenario::Delete,
];
/// A key that was brought along and is in force …
const PARTNER: &str = "partner";
/// … and one that was deleted.
const FORMER: &str = "former";

/// All ApiKeys of a stage but those that a fault is about.
pub struct Population {
    /// These changes were through before the fault. The keys are in force, in an overlap, suspended
    /// and gone.
    early: Vec<(Scenario, Subject)>,
    /// These begin with the fault.
    late: Vec<(Scenario, Subject)>,
    /// The keys in the Secrets of the early ones, which no fault replaces.
    kept: Vec<(String, KeyHash)>,
}

impl Population {
    /// Makes all of them. No change is under way yet.
    pub async fn of(stage: &Stage) -> Result<Self> {
        let mut population = Self {
            early: prepared(stage, "early").await?,
            late: prepared(stage, "late").await?,
            kept: Vec::new(),
        };
        for (scenario, subject) in &population.early {
            scenario.begin(stage, subject).await?;
            let through = async || scenario.has_ended(stage, subject).await;
            stage.wait(&subject.name, PATIENCE, through).await?;
            if *scenario != Scenario::Delete {
                let text = stage.objects.text_hash(&subject.name).await?;
                let text = text.context("a key in a Secret")?;
                population.kept.push((subject.name.clone(), text));
            }
        }
        in_force(stage, PARTNER, 'a').await?;
        let former = in_force(stage, FORMER, 'f').await?;
        delete(stage, FORMER, former).await?;
        Ok(population)
    }

    /// Asks for all changes at once.
    pub async fn change(&self, stage: &Stage) -> Result<()> {
        for (scenario, subject) in &self.late {
            scenario.begin(stage, subject).await?;
        }
        Ok(())
    }

    /// Waits until one of the changes is through.
    pub async fn ended(&self, stage: &Stage, change: Scenario) -> Result<()> {
        let mut late = self.late.iter();
        let late = late.find(|(scenario, _)| *scenario == change);
        let (_, subject) = late.context("no such change")?;
        let ended = async || change.has_ended(stage, subject).await;
        stage.wait(&subject.name, PATIENCE, ended).await
    }

    /// Waits until the changes are through and everything else is as it was, and tells how long
    /// that took since `healed`. A violation that nothing makes good ends the wait.
    pub async fn rest(&self, stage: &Stage, healed: Instant) -> Result<()> {
        let rests = async || {
            let found = stage.violations().await?;
            let lasting = found.iter().find(|violation| violation.invariant > 3);
            if let Some(lasting) = lasting {
                return Ok(Some(lasting.clone()));
            }
            ensure!(found.is_empty(), "{found:?}");
            self.is_as_declared(stage).await?;
            Ok(None)
        };
        if let Some(violation) = stage.wait("rest", PATIENCE, rests).await? {
            bail!("{violation}");
        }
        println!("converged after {:.3} s", healed.elapsed().as_secs_f64());
        Ok(())
    }

    async fn is_as_declared(&self, stage: &Stage) -> Result<()> {
        for (scenario, subject) in self.early.iter().chain(&self.late) {
            let ended = scenario.has_ended(stage, subject).await;
            ended.with_context(|| subject.name.clone())?;
        }
        for (name, kept) in &self.kept {
            let text = stage.objects.text_hash(name).await?;
            ensure!(text == Some(*kept), "{name} has another key: {text:?}");
        }
        let partner = stage.objects.key(PARTNER).await?.context("no ApiKey")?;
        let ready = shown(&partner, "Ready");
        ensure!(ready == "True/Active", "{ready}: {:?}", partner.status);
        Ok(())
    }
}

async fn prepared(stage: &Stage, when: &str) -> Result<Vec<(Scenario, Subject)>> {
    let mut subjects = Vec::new();
    for scenario in CHANGES {
        let name = format!("{when}-{scenario:?}").to_lowercase();
        subjects.push((scenario, scenario.prepare(stage, &name).await?));
    }
    Ok(subjects)
}

/// Makes an ApiKey with a hash of that digit, and waits until the gate accepts it.
pub async fn in_force(stage: &Stage, name: &str, digit: char) -> Result<KeyHash> {
    stage.objects.create(&brought(name, digit)).await?;
    let apikey = format!("apikey/{name}");
    let ready = stage.world.condition(&apikey, "Ready", "True/Active").await;
    ready.with_context(|| stage.operator.log_end())?;
    let hash = digit.to_string().repeat(64).parse()?;
    stage.clients.expect(hash, Expected::Accepted);
    Ok(hash)
}

/// Deletes an ApiKey with that hash, and waits until it is gone; from then on the key is dead.
pub async fn delete(stage: &Stage, name: &str, hash: KeyHash) -> Result<()> {
    stage.clients.expect(hash, Expected::Either);
    stage.objects.delete(name).await?;
    let gone = stage.world.gone(&format!("apikey/{name}")).await;
    gone.with_context(|| stage.operator.log_end())?;
    stage.clients.expect(hash, Expected::Refused);
    Ok(())
}
