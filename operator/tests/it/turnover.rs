//! What tests of rotation, reissue and adoption share: the Secret as a client reads it, a key's
//! successor, and a client that never stops asking the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use water_domain::{KeyPrefix, PlainKey};

use crate::gate::Gate;
use crate::world::{PATIENCE, World, key, shown};

/// The Secret of acme.
pub const SECRET: &str = "secret/acme-apikey";

/// An ApiKey acme with these rotation settings.
pub fn rotating(rotation: Value) -> Value {
    let mut key = key("acme");
    key["spec"]["rotation"] = rotation;
    key
}

/// The hash of the text in the Secret.
pub fn text_hash(world: &World) -> Result<String> {
    let template = "--output=go-template={{index .data \"api-key\" | base64decode}}";
    let text = world.kubectl(&["get", "secret", "acme-apikey", template])?;
    let plain = PlainKey::parse(text.as_bytes(), &KeyPrefix::default())?;
    Ok(plain.hash().to_string())
}

/// The hash that the status calls current.
pub fn current(key: &Value) -> Result<String> {
    let hash = key["status"]["current"]["hash"].as_str();
    Ok(hash.context("a current key")?.to_owned())
}

/// Waits until acme's current key is another than that one, and in force.
pub async fn successor(world: &World, before: &str) -> Result<Value> {
    let in_force = async || {
        let found = world.get("apikey/acme")?;
        ensure!(shown(&found, "Ready") == "True/Active", "{found}");
        ensure!(current(&found)? != before, "{found}");
        Ok(found)
    };
    world.wait("another key in force", PATIENCE, in_force).await
}

/// Waits until the directory holds so many records.
pub async fn holds(world: &World, count: usize) -> Result<Vec<String>> {
    let published = async || {
        let published = world.published().await?;
        ensure!(published.len() == count, "{published:?}");
        Ok(published)
    };
    world
        .wait(&format!("{count} records"), PATIENCE, published)
        .await
}

/// Asks for another pass, as Redis' clock does not when a test moves it.
pub fn look_again(world: &World, time: &str) -> Result<()> {
    let note = format!("looked-at={time}");
    world
        .kubectl(&["annotate", "apikey", "acme", &note, "--overwrite"])
        .map(drop)
}

/// Another revision of acme's key is wanted.
pub fn raise(world: &World, revision: i64) -> Result<()> {
    let raised = json!({ "spec": { "rotation": { "revision": revision } } });
    world.patch("apikey/acme", &raised, &[])
}

/// A client that asks the gate all the time, with one key.
pub struct Client {
    answers: Arc<Answers>,
    asking: JoinHandle<()>,
}

#[derive(Default)]
struct Answers {
    was_refused: AtomicBool,
    was_accepted: AtomicBool,
}

impl Client {
    /// Asks with the key of this hash.
    pub fn start(gate: &Arc<Gate>, hash: &str) -> Self {
        let answers = Arc::<Answers>::default();
        let (gate, hash, noted) = (Arc::clone(gate), hash.to_owned(), Arc::clone(&answers));
        let asking = tokio::spawn(async move {
            loop {
                let note = match gate.accepts(&hash) {
                    Ok(true) => &noted.was_accepted,
                    Ok(false) | Err(_) => &noted.was_refused,
                };
                note.store(true, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self { answers, asking }
    }

    /// Whether the gate has accepted the key each time.
    pub fn works(&self) -> bool {
        self.was_accepted() && !self.was_refused()
    }

    /// Whether the gate has refused the key once.
    pub fn was_refused(&self) -> bool {
        self.answers.was_refused.load(Ordering::Relaxed)
    }

    /// Whether the gate has accepted the key once.
    pub fn was_accepted(&self) -> bool {
        self.answers.was_accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.asking.abort();
    }
}
