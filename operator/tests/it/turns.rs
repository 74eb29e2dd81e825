//! A world in which an operator of this version and one of the version before take turns, with a gate
//! of each: what is done to its keys is expected of both gates from then on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_domain::PlainKey;
use water_harness::{Process, Redis};

use crate::Result;
use crate::askers::{Askers, Expected};
use crate::gate_process::GateProcess;
use crate::world::{OPERATOR, PATIENCE, World, key, shown, unlimited};

/// How an operator's turn ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Asked to: it gives its Lease back.
    Stopped,
    /// Its Lease has to run out.
    Killed,
}

/// A world whose operators take turns.
pub struct Turns {
    world: World,
    /// Where the programs of the version before are.
    former: PathBuf,
    leader: Arc<Process>,
    turn: usize,
    /// Who asks both gates.
    pub askers: Askers,
    _servers: (Redis, [GateProcess; 2]),
}

impl Turns {
    /// Begins with an operator of the version before.
    pub async fn new(namespace: &str, former: PathBuf) -> anyhow::Result<Self> {
        let redis = Redis::start().await?;
        let world = World::with_redis(namespace, &redis.url()).await?;
        world.apply(&unlimited())?;
        let leader = world.operator_of(&former.join("water-operator"), "operator-0")?;
        world.synced().await?;
        let theirs = former.join("water-gate");
        let gates = [
            GateProcess::start_of(&theirs, &world, "gate-former").await?,
            GateProcess::start(&world, "gate-present").await?,
        ];
        let mut askers = Askers::default();
        askers
            .ask("the gate of the version before", &gates[0])
            .await?;
        askers.ask("the gate of this version", &gates[1]).await?;
        Ok(Self {
            world,
            former,
            leader,
            turn: 0,
            askers,
            _servers: (redis, gates),
        })
    }

    /// An operator of the version before takes over.
    pub async fn back(&mut self, end: End) -> Result {
        self.next(&self.former.join("water-operator"), end).await
    }

    /// An operator of this version takes over.
    pub async fn forth(&mut self, end: End) -> Result {
        self.next(Path::new(OPERATOR), end).await
    }

    /// It stands by before the leader ends, as a rolling upgrade has it. It leads when it has issued a
    /// key that every gate accepts.
    async fn next(&mut self, program: &Path, end: End) -> Result {
        self.turn += 1;
        let pod = format!("operator-{}", self.turn);
        let next = self.world.operator_of(program, &pod)?;
        let stands_by = async || {
            let log = next.log();
            ensure!(log.contains("operator started"), "{log}");
            Ok(())
        };
        self.world.wait("the standby", PATIENCE, stands_by).await?;
        match end {
            End::Stopped => drop(self.leader.stop(PATIENCE).await?),
            End::Killed => self.leader.kill()?,
        }
        self.leader = next;
        self.issue(&format!("turn-{}", self.turn)).await?;
        let holder = &self.world.get("lease/water-operator")?["spec"]["holderIdentity"];
        ensure!(*holder == *pod, "{holder} leads");
        let (turn, answers) = (self.turn, self.askers.all_right().await?);
        println!("turn {turn} ({end:?} before it): {answers} right answers so far");
        Ok(())
    }

    /// A generated key that works at every gate.
    pub async fn issue(&self, name: &str) -> Result {
        self.world.in_force(&key(name)).await?;
        self.askers.know(name, &self.text(name)?);
        self.askers.expect(name, Expected::Accepted);
        Ok(())
    }

    /// A key that is brought along and works at every gate.
    pub async fn bring(&self, name: &str, plain: &PlainKey<'_>) -> Result {
        self.world.in_force(&brought(name, plain)).await?;
        self.askers.know(name, plain.expose());
        self.askers.expect(name, Expected::Accepted);
        Ok(())
    }

    /// A brought key that was revoked comes back, and is refused.
    pub async fn bring_again(&self, name: &str, plain: &PlainKey<'_>) -> Result {
        self.world.apply(&brought(name, plain))?;
        let object = format!("apikey/{name}");
        self.world
            .condition(&object, "Stalled", "True/RevokedInStore")
            .await
            .map(drop)
    }

    /// Another key is in the Secret. The one before works for so long; answers what it is called now.
    pub async fn rotate(&self, name: &str, overlap_seconds: u32) -> anyhow::Result<String> {
        let earlier = format!("{name} before its rotation");
        self.askers.know(&earlier, &self.text(name)?);
        self.askers.expect(name, Expected::Either);
        let rotation = json!({ "revision": 1, "overlapSeconds": overlap_seconds });
        let patch = json!({ "spec": { "rotation": rotation } });
        self.world.patch(&format!("apikey/{name}"), &patch, &[])?;
        let rotated = async || {
            let found = self.world.get(&format!("apikey/{name}"))?;
            let revision = &found["status"]["current"]["revision"];
            ensure!(
                *revision == 1 && shown(&found, "Ready") == "True/Active",
                "{found}"
            );
            Ok(())
        };
        self.world.wait("the rotation", PATIENCE, rotated).await?;
        self.askers.know(name, &self.text(name)?);
        self.askers.expect(name, Expected::Accepted);
        Ok(earlier)
    }

    /// Declared so, and in force at every gate.
    pub async fn suspend(&self, name: &str) -> Result {
        self.askers.expect(name, Expected::Either);
        self.set_suspended(name, true, "True/Suspended").await?;
        self.askers.expect(name, Expected::Refused);
        Ok(())
    }

    /// The same, the other way.
    pub async fn resume(&self, name: &str) -> Result {
        self.askers.expect(name, Expected::Either);
        self.set_suspended(name, false, "True/Active").await?;
        self.askers.expect(name, Expected::Accepted);
        Ok(())
    }

    async fn set_suspended(&self, name: &str, suspend: bool, ready: &str) -> Result {
        let object = format!("apikey/{name}");
        let patch = json!({ "spec": { "suspend": suspend } });
        self.world.patch(&object, &patch, &[])?;
        self.world
            .condition(&object, "Ready", ready)
            .await
            .map(drop)
    }

    /// The ApiKey is gone, and its key is refused for good.
    pub async fn delete(&self, name: &str) -> Result {
        self.askers.expect(name, Expected::Either);
        let object = format!("apikey/{name}");
        self.world.kubectl(&["delete", &object, "--wait=false"])?;
        self.world.gone(&object).await?;
        self.askers.expect(name, Expected::Refused);
        Ok(())
    }

    /// Waits until an operator of the version before has written the status.
    pub async fn forgets_the_overlap(&self, name: &str) -> Result {
        let forgotten = async || {
            let status = &self.world.get(&format!("apikey/{name}"))?["status"];
            ensure!(status["previous"].is_null(), "{status}");
            Ok(())
        };
        self.world
            .wait("a status without the overlap", PATIENCE, forgotten)
            .await
    }

    /// The text in the Secret.
    fn text(&self, name: &str) -> anyhow::Result<String> {
        let template = "--output=go-template={{index .data \"api-key\" | base64decode}}";
        let secret = format!("{name}-apikey");
        self.world.kubectl(&["get", "secret", &secret, template])
    }

    /// Nothing answered wrongly, and the directory holds exactly these ApiKeys' keys.
    pub async fn all_right(&self) -> Result {
        self.askers.all_right().await?;
        let list = self.world.kubectl(&["get", "apikeys", "--output=json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let keys = list["items"].as_array().context("a list")?.iter();
        let in_force = keys.filter(|key| shown(key, "Synced").starts_with("True"));
        let ids = in_force.filter_map(|key| key["status"]["keyId"].as_str());
        let mut wanted: Vec<&str> = ids.collect();
        wanted.sort_unstable();
        let published = self.world.published().await?;
        let held = published
            .iter()
            .filter_map(|record| record.split(' ').next());
        ensure!(
            held.eq(wanted.iter().copied()),
            "{published:?} for {wanted:?}"
        );
        Ok(())
    }
}

fn brought(name: &str, plain: &PlainKey<'_>) -> Value {
    let mut key = key(name);
    key["spec"]["material"] = json!({ "hash": { "sha256": plain.hash().to_string() } });
    key
}
