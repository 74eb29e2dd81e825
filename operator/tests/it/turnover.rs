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
    was_refused: Arc<AtomicBool>,
    asking: JoinHandle<()>,
}

impl Client {
    /// Asks with the key of this hash.
    pub fn start(gate: &Arc<Gate>, hash: &str) -> Self {
        let was_refused = Arc::new(AtomicBool::new(false));
        let (gate, hash, refused) = (Arc::clone(gate), hash.to_owned(), Arc::clone(&was_refused));
        let asking = tokio::spawn(async move {
            loop {
                if !gate.accepts(&hash).unwrap_or(false) {
                    refused.store(true, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self {
            was_refused,
            asking,
        }
    }

    /// Whether the gate has refused the key once.
    pub fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.asking.abort();
    }
}
