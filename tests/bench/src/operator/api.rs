//! The ApiKeys at the API server, asked for over plain HTTP by many connections at once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::try_join_all;
use serde_json::{Value, json};
use water_harness::{Answer, ApiProxy, ControlPlane, HttpClient};

/// The namespace of everything.
pub const NAMESPACE: &str = "water";
/// The plan of all ApiKeys, whose limits no account meets: 429 then means that a key is refused, and
/// too often.
pub const PLAN: &str = "Unmet";
/// Objects of one answer.
const PAGE: usize = 500;

/// The API server.
pub struct Api {
    proxy: Arc<ApiProxy>,
}

/// One connection to it.
pub struct Session {
    client: HttpClient,
}

/// The texts of keys, by the names of their ApiKeys.
pub type Texts = BTreeMap<String, Box<str>>;

impl Api {
    /// Asks as the administrator.
    pub fn new(control_plane: &ControlPlane) -> Self {
        let proxy = control_plane.proxy();
        Self { proxy }
    }

    /// A new connection.
    pub async fn session(&self) -> Result<Session> {
        let client = self.proxy.connect().await?;
        Ok(Session { client })
    }

    /// Makes `count` requests, by their numbers, over so many connections.
    pub async fn each(
        &self,
        connections: usize,
        count: usize,
        request: impl AsyncFn(&mut Session, usize) -> Result<()>,
    ) -> Result<()> {
        let next = Cell::new(0);
        let (next, request) = (&next, &request);
        let connections = (0..connections).map(|_| async move {
            let mut session = self.session().await?;
            while next.get() < count {
                let number = next.get();
                next.set(number + 1);
                request(&mut session, number).await?;
            }
            Ok::<(), anyhow::Error>(())
        });
        try_join_all(connections).await?;
        Ok(())
    }

    /// The version of Kubernetes.
    pub async fn version(&self) -> Result<String> {
        let answer = self.session().await?.get("/version").await?;
        let version = answer.json()?["gitVersion"].as_str().map(str::to_owned);
        version.context("the API server says its version")
    }

    /// The texts of all keys that can be read.
    pub async fn texts(&self) -> Result<Texts> {
        let mut session = self.session().await?;
        let (mut texts, mut more) = (Texts::new(), String::new());
        loop {
            let path = format!(
                "/api/v1/namespaces/{NAMESPACE}/secrets?limit={PAGE}&\
                 labelSelector=waterdata.dev/api-key&continue={more}"
            );
            let page = session.get(&path).await?.json()?;
            for secret in page["items"].as_array().context("a list")? {
                let name = secret["metadata"]["name"].as_str().context("a name")?;
                let name = name.strip_suffix("-apikey").context("a key's Secret")?;
                texts.insert(name.to_owned(), text(secret)?);
            }
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => more = token.to_owned(),
                _ => return Ok(texts),
            }
        }
    }

    /// How many ApiKeys there are.
    pub async fn count(&self) -> Result<usize> {
        let path = format!("{}?limit=1", keys());
        let page = self.session().await?.get(&path).await?.json()?;
        let listed = page["items"].as_array().context("a list")?.len();
        let more = page["metadata"]["remainingItemCount"].as_u64();
        Ok(listed + more.unwrap_or_default() as usize)
    }
}

impl Session {
    async fn get(&mut self, path: &str) -> Result<Answer> {
        let answer = self.client.request("GET", path, &[]).await?;
        ensure!(answer.status == 200, "{path}: {answer:?}");
        Ok(answer)
    }

    async fn send(&mut self, method: &str, path: &str, kind: &str, body: &Value) -> Result<Answer> {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.client.send(request).await?;
        let answer = self.client.answer().await?;
        ensure!(
            (200..300).contains(&answer.status),
            "{method} {path}: {answer:?}"
        );
        Ok(answer)
    }

    /// Makes an ApiKey of an account of its own.
    pub async fn create(&mut self, name: &str) -> Result<()> {
        let spec = json!({ "accountId": name, "plan": PLAN });
        self.create_as(&json!({ "name": name }), &spec).await
    }

    /// Makes an ApiKey of this metadata and spec.
    pub async fn create_as(&mut self, metadata: &Value, spec: &Value) -> Result<()> {
        let key = json!({
            "apiVersion": "waterdata.dev/v1", "kind": "ApiKey", "metadata": metadata, "spec": spec,
        });
        self.send("POST", &keys(), "application/json", &key)
            .await
            .map(drop)
    }

    /// Writes an ApiKey's status, as its operator does.
    pub async fn tell(&mut self, name: &str, status: &Value) -> Result<()> {
        let path = format!("{}/{name}/status", keys());
        let patch = json!({ "status": status });
        let patched = self.send("PATCH", &path, "application/merge-patch+json", &patch);
        patched.await.map(drop)
    }

    /// Asks for another key in the place of the one that there is.
    pub async fn rotate(&mut self, name: &str) -> Result<()> {
        let patch = json!({ "spec": { "rotation": { "revision": 1 } } });
        let path = format!("{}/{name}", keys());
        let patched = self.send("PATCH", &path, "application/merge-patch+json", &patch);
        patched.await.map(drop)
    }

    /// Deletes an ApiKey, and returns as the API server does: before the finalizer is gone.
    pub async fn delete(&mut self, name: &str) -> Result<()> {
        let path = format!("{}/{name}", keys());
        let answer = self.client.request("DELETE", &path, &[]).await?;
        ensure!(answer.status == 200, "DELETE {path}: {answer:?}");
        Ok(())
    }

    /// The ApiKey's key, once it can be read.
    pub async fn text(&mut self, name: &str) -> Result<Option<Box<str>>> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}-apikey");
        let answer = self.client.request("GET", &path, &[]).await?;
        match answer.status {
            200 => Ok(Some(text(&answer.json()?)?)),
            404 => Ok(None),
            _ => bail!("{path}: {answer:?}"),
        }
    }

    /// Whether the ApiKey's status tells when its key was last used.
    pub async fn shows_use(&mut self, name: &str) -> Result<bool> {
        let path = format!("{}/{name}", keys());
        let key = self.get(&path).await?.json()?;
        Ok(key["status"]["lastUsedTime"].is_string())
    }
}

/// The path of all ApiKeys.
pub fn keys() -> String {
    format!("/apis/waterdata.dev/v1/namespaces/{NAMESPACE}/apikeys")
}

fn text(secret: &Value) -> Result<Box<str>> {
    let encoded = secret["data"]["api-key"].as_str();
    let text = STANDARD.decode(encoded.context("a key's Secret has its text")?)?;
    Ok(String::from_utf8(text)?.into())
}
