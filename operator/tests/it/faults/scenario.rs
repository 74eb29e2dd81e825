//! Changes of a key's life, during which operators are killed: what begins them, required answers to clients
//! meanwhile, and the world when they are through.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use water_domain::KeyHash;
use water_kit::operator::clients::Expected;
use water_kit::operator::objects::{current, secret_of, shown};
use water_kit::operator::stage::Stage;
use water_kit::operator::world::{PATIENCE, key};
use water_resources::ApiKey;

/// A change of a generated key, or of one that is provided by its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    Create,
    Rotate,
    Reissue,
    Suspend,
    Delete,
    Bring,
    /// Another hash takes the provided one's place, without an overlap.
    Replace,
    DeleteBrought,
}

use Scenario::{Bring, Create, Delete, DeleteBrought, Reissue, Replace, Rotate, Suspend};

/// An ApiKey and its change.
pub struct Subject {
    pub scenario: Scenario,
    pub name: String,
    /// Current key before the change.
    pub before: Option<KeyHash>,
}

impl Subject {
    /// An ApiKey of that name, as it is before the change.
    pub async fn prepare(stage: &Stage, scenario: Scenario, name: &str) -> Result<Self> {
        let declared = declared(scenario, name);
        let before = match scenario {
            Create | Bring => None,
            _ => Some(stage.issue(&declared).await?),
        };
        let name = name.to_owned();
        Ok(Self {
            scenario,
            name,
            before,
        })
    }

    /// Asks for the change.
    pub fn begin(&self, stage: &Stage) -> Result<()> {
        let (objects, name) = (&stage.objects, self.name.as_str());
        if let Some(before) = self.before {
            let meanwhile = match self.scenario {
                Rotate | Reissue => Expected::Accepted,
                _ => Expected::Either,
            };
            stage.clients.expect(before, meanwhile);
        }
        let edit = |spec: Value| objects.edit(name, &json!({ "spec": spec }));
        match self.scenario {
            Create | Bring => objects.create(&declared(self.scenario, name)),
            Rotate => edit(json!({ "rotation": { "revision": 1 } })),
            Reissue => objects.delete(&secret_of(name)),
            Suspend => edit(json!({ "suspend": true })),
            Replace => edit(json!({ "material": material(name, 1) })),
            Delete | DeleteBrought => objects.delete(&format!("apikey/{name}")),
        }
    }

    /// Checks what must hold at every moment: the key in the Secret is accepted, or one of the hashes.
    pub fn holds_midway(&self, stage: &Stage) -> Result<()> {
        let one_of = match self.scenario {
            Replace => vec![hash(&self.name, 0), hash(&self.name, 1)],
            Create | Rotate | Reissue => {
                let text = stage.objects.text_hash(&self.name)?;
                text.iter().map(KeyHash::to_string).collect()
            }
            _ => vec![],
        };
        let mut accepted = one_of.is_empty();
        for hash in &one_of {
            accepted |= stage.gate.accepts(hash)?;
        }
        ensure!(accepted, "none of {one_of:?} of {} is accepted", self.name);
        Ok(())
    }

    /// Waits until the change is through.
    pub async fn ends(&self, stage: &Stage) -> Result<()> {
        let ended = async || self.has_ended(stage);
        stage.wait(&self.name, PATIENCE, ended).await
    }

    /// Checks that the change is through; then clients are answered accordingly from here on.
    pub fn has_ended(&self, stage: &Stage) -> Result<()> {
        let found = stage.objects.key(&self.name)?;
        let before_is = |expected: Expected| {
            let before = self.before.iter();
            before.for_each(|hash| stage.clients.expect(*hash, expected));
        };
        if let Delete | DeleteBrought = self.scenario {
            let status = found.map(|key| key.status);
            ensure!(status.is_none(), "still there: {status:?}");
            before_is(Expected::Refused);
            return Ok(());
        }
        let found = found.with_context(|| format!("there is no ApiKey {}", self.name))?;
        let (reason, expected) = match self.scenario {
            Suspend => ("True/Suspended", Expected::Refused),
            _ => ("True/Active", Expected::Accepted),
        };
        ensure!(shown(&found, "Ready") == reason, "{:?}", found.status);
        let current = current(&found)?;
        let is_other = Some(current) != self.before;
        ensure!(is_other || self.scenario == Suspend, "still {current}");
        let status = found.status.as_ref();
        let is_revealed = status.is_some_and(|status| status.unrevealed.is_empty());
        ensure!(is_revealed, "a key is announced that is not revealed");
        let wanted = match self.scenario {
            Bring => hash(&self.name, 0).parse()?,
            Replace => hash(&self.name, 1).parse()?,
            _ => {
                let text = stage.objects.text_hash(&self.name)?;
                text.context("no key in a Secret")?
            }
        };
        ensure!(current == wanted, "{current} is in force, not {wanted}");
        if self.scenario == Replace {
            before_is(Expected::Refused);
        }
        stage.clients.expect(current, expected);
        Ok(())
    }

    /// Deletes the ApiKey; its keys are dead from then on.
    pub async fn forget(&self, stage: &Stage) -> Result<()> {
        let Some(found) = stage.objects.key(&self.name)? else {
            return Ok(());
        };
        for hash in valid(&found) {
            stage.clients.expect(hash, Expected::Either);
        }
        let object = format!("apikey/{}", self.name);
        stage.objects.delete(&object)?;
        stage.gone(&object).await?;
        for hash in valid(&found) {
            stage.clients.expect(hash, Expected::Refused);
        }
        Ok(())
    }
}

/// The keys that its status names as valid.
fn valid(key: &ApiKey) -> impl Iterator<Item = KeyHash> {
    let status = key.status.iter();
    let hashes = status.flat_map(|status| {
        let previous = status.previous.iter().map(|before| &before.issued);
        status.current.iter().chain(previous)
    });
    hashes.filter_map(|issued| issued.hash.parse().ok())
}

/// The ApiKey of a change. A generated key leaves one that it replaces ten minutes, a provided one none.
fn declared(scenario: Scenario, name: &str) -> Value {
    let mut key = key(name);
    let is_provided = matches!(scenario, Bring | Replace | DeleteBrought);
    let overlap = if is_provided { 0 } else { 600 };
    key["spec"]["rotation"] = json!({ "overlapSeconds": overlap });
    if is_provided {
        key["spec"]["material"] = material(name, 0);
    }
    key
}

fn material(name: &str, number: u8) -> Value {
    json!({ "hash": { "sha256": hash(name, number) } })
}

/// Hash that the ApiKey of that name provides, by its number.
fn hash(name: &str, number: u8) -> String {
    hex::encode(Sha256::digest(format!("{name}/{number}")))
}
