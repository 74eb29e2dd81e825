//! The changes of a key's life at which an operator is killed: what begins them, what clients must be
//! answered meanwhile, and how the world looks when they are through.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use water_domain::KeyHash;
use water_resources::ApiKey;

use crate::clients::Expected;
use crate::objects::{current, shown};
use crate::stage::Stage;
use crate::world::{PATIENCE, key};

/// One change of a key that the operator makes, or of one that is brought by its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    Create,
    Rotate,
    Reissue,
    Suspend,
    Delete,
    Bring,
    /// Another hash takes the brought one's place, without an overlap.
    Replace,
    DeleteBrought,
}

/// The ApiKey of one run.
pub struct Subject {
    pub name: String,
    /// Its current key when the run began.
    pub before: Option<KeyHash>,
}

impl Scenario {
    fn is_of_brought(self) -> bool {
        matches!(self, Self::Bring | Self::Replace | Self::DeleteBrought)
    }

    fn is_deletion(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteBrought)
    }

    /// An ApiKey of that name, as it is before the change.
    pub async fn prepare(self, stage: &Stage, name: &str) -> Result<Subject> {
        let name = name.to_owned();
        let mut subject = Subject { name, before: None };
        let (begun, declared) = match self.is_of_brought() {
            true => (Self::Bring, brought(&subject.name)),
            false => (Self::Create, declared(&subject.name)),
        };
        if self == begun {
            return Ok(subject);
        }
        stage.objects.create(&declared).await?;
        let ready = async || begun.has_ended(stage, &subject).await;
        stage.wait("a key", PATIENCE, ready).await?;
        let found = stage.objects.key(&subject.name).await?;
        let before = current(&found.context("no ApiKey to begin with")?)?;
        subject.before = Some(before);
        // The gate has acknowledged it.
        stage.clients.expect(before, Expected::Accepted);
        Ok(subject)
    }

    /// Asks for the change.
    pub async fn begin(self, stage: &Stage, subject: &Subject) -> Result<()> {
        let (objects, name) = (&stage.objects, subject.name.as_str());
        let meanwhile = match self {
            Self::Create | Self::Rotate | Self::Reissue | Self::Bring => Expected::Accepted,
            _ => Expected::Either,
        };
        if let Some(before) = subject.before {
            stage.clients.expect(before, meanwhile);
        }
        let rotate = json!({ "spec": { "rotation": { "revision": 1 } } });
        let suspend = json!({ "spec": { "suspend": true } });
        let other = json!({ "spec": { "material": { "hash": { "sha256": hash(name, 1) } } } });
        match self {
            Self::Create => objects.create(&declared(name)).await,
            Self::Rotate => objects.edit(name, &rotate).await,
            Self::Reissue => objects.delete_secret(name).await,
            Self::Suspend => objects.edit(name, &suspend).await,
            Self::Delete | Self::DeleteBrought => objects.delete(name).await,
            Self::Bring => objects.create(&brought(name)).await,
            Self::Replace => objects.edit(name, &other).await,
        }
    }

    /// What must hold at every moment: the key in the Secret is accepted, or one of the hashes.
    pub async fn holds_midway(self, stage: &Stage, subject: &Subject) -> Result<()> {
        if self == Self::Replace {
            let hashes = [0, 1].map(|number| hash(&subject.name, number));
            let accepted = stage.gate.accepts(&hashes[0])? || stage.gate.accepts(&hashes[1])?;
            ensure!(accepted, "neither hash of {} is accepted", subject.name);
        }
        if self == Self::Suspend || self.is_deletion() || self.is_of_brought() {
            return Ok(());
        }
        if let Some(text) = stage.objects.text_hash(&subject.name).await? {
            let accepted = stage.gate.accepts(&text.to_string())?;
            ensure!(
                accepted,
                "the key in the Secret of {} is refused",
                subject.name
            );
        }
        Ok(())
    }

    /// Whether the change is through; then clients are answered accordingly from here on.
    pub async fn has_ended(self, stage: &Stage, subject: &Subject) -> Result<()> {
        let found = stage.objects.key(&subject.name).await?;
        if self.is_deletion() {
            ensure!(
                found.is_none(),
                "still there: {:?}",
                found.map(|key| key.status)
            );
            if let Some(before) = subject.before {
                stage.clients.expect(before, Expected::Refused);
            }
            return Ok(());
        }
        let Some(found) = found else {
            bail!("there is no ApiKey {}", subject.name);
        };
        let suspended = self == Self::Suspend;
        let (reason, expected) = match suspended {
            true => ("True/Suspended", Expected::Refused),
            false => ("True/Active", Expected::Accepted),
        };
        ensure!(shown(&found, "Ready") == reason, "{:?}", found.status);
        let current = current(&found)?;
        let is_other = Some(current) != subject.before;
        ensure!(is_other || suspended, "still the key {current}");
        let unrevealed = found
            .status
            .is_some_and(|status| !status.unrevealed.is_empty());
        ensure!(!unrevealed, "a key is announced that is not revealed");
        if self.is_of_brought() {
            let wanted = hash(&subject.name, u8::from(self == Self::Replace));
            ensure!(
                current.to_string() == wanted,
                "{current} is in force, not {wanted}"
            );
            if let Some(before) = subject.before {
                stage.clients.expect(before, Expected::Refused);
            }
        } else {
            let text = stage.objects.text_hash(&subject.name).await?;
            ensure!(
                text == Some(current),
                "the Secret holds {text:?}, not {current}"
            );
        }
        stage.clients.expect(current, expected);
        Ok(())
    }

    /// Deletes the ApiKey; its keys are dead from then on.
    pub async fn forget(stage: &Stage, name: &str) -> Result<()> {
        let Some(found) = stage.objects.key(name).await? else {
            return Ok(());
        };
        for hash in valid(&found) {
            stage.clients.expect(hash, Expected::Either);
        }
        stage.objects.delete(name).await?;
        let gone = async || {
            let left = stage.objects.key(name).await?;
            ensure!(
                left.is_none(),
                "still there: {:?}",
                left.map(|key| key.status)
            );
            Ok(())
        };
        stage.wait("the end of the key", PATIENCE, gone).await?;
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
        let current = status.current.iter().map(|issued| &issued.hash);
        current.chain(status.previous.iter().map(|before| &before.issued.hash))
    });
    hashes.filter_map(|hash| hash.parse().ok())
}

/// A key that leaves one that it replaces ten minutes.
fn declared(name: &str) -> Value {
    let mut key = key(name);
    key["spec"]["rotation"] = json!({ "overlapSeconds": 600 });
    key
}

/// A key that is brought by its hash, and leaves one that it replaces no time.
fn brought(name: &str) -> Value {
    let mut key = key(name);
    key["spec"]["rotation"] = json!({ "overlapSeconds": 0 });
    key["spec"]["material"] = json!({ "hash": { "sha256": hash(name, 0) } });
    key
}

/// One of the hashes that the ApiKey of that name brings.
fn hash(name: &str, number: u8) -> String {
    hex::encode(Sha256::digest(format!("{name}/{number}")))
}
