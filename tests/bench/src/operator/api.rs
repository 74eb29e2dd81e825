//! ApiKeys at the API server, asked for over plain HTTP by many connections at once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::try_join_all;
use serde_json::{Value, json};
use water_harness::{ApiProxy, ControlPlane, HttpClient};

/// Namespace of everything.
pub const NAMESPACE: &str = "water";
/// Plan of all ApiKeys, whose limits no account meets: 429 then means that a key is refused, and too often.
pub const PLAN: &str = "Unmet";
/// Path of all ApiKeys.
const KEYS: &str = "/apis/waterdata.dev/v1/namespaces/water/apikeys";
/// Objects of one answer.
const PAGE: usize = 500;

/// API server, asked as the administrator.
pub struct Api {
    proxy: Arc<ApiProxy>,
}

/// Connection to it.
pub struct Session {
    client: HttpClient,
}

/// Texts of keys, by the names of their ApiKeys.
pub type Texts = BTreeMap<String, Box<str>>;

/// Name of an ApiKey, and of its account.
pub fn name(number: usize) -> String {
    format!("key-{number:05}")
}

impl Api {
    /// API server of this control plane.
    pub fn new(control_plane: &ControlPlane) -> Self {
        let proxy = control_plane.proxy();
        Self { proxy }
    }

    /// Opens a connection.
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
                let number = next.replace(next.get() + 1);
                request(&mut session, number).await?;
            }
            Ok::<(), anyhow::Error>(())
        });
        try_join_all(connections).await?;
        Ok(())
    }

    /// Version of Kubernetes.
    pub async fn version(&self) -> Result<String> {
        let version = self.session().await?.get("/version").await?;
        let version = version["gitVersion"].as_str().map(str::to_owned);
        version.context("the API server's version")
    }

    /// Texts of all keys that can be read.
    pub async fn texts(&self) -> Result<Texts> {
        let mut session = self.session().await?;
        let (mut texts, mut more) = (Texts::new(), String::new());
        loop {
            let path = format!(
                "/api/v1/namespaces/{NAMESPACE}/secrets?limit={PAGE}&\
                 labelSelector=waterdata.dev/api-key&continue={more}"
            );
            let page = session.get(&path).await?;
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

    /// Number of ApiKeys.
    pub async fn count(&self) -> Result<usize> {
        let mut session = self.session().await?;
        let page = session.get(&format!("{KEYS}?limit=1")).await?;
        let listed = page["items"].as_array().context("a list")?.len();
        let more = page["metadata"]["remainingItemCount"].as_u64();
        Ok(listed + more.unwrap_or_default() as usize)
    }
}

impl Session {
    async fn get(&mut self, path: &str) -> Result<Value> {
        let answer = self.client.request("GET", path, &[]).await?;
        ensure!(answer.status == 200, "{path}: {answer:?}");
        answer.json()
    }

    async fn send(&mut self, method: &str, path: &str, kind: &str, body: &Value) -> Result<()> {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/{kind}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.client.send(request).await?;
        let answer = self.client.answer().await?;
        let is_done = (200..300).contains(&answer.status);
        ensure!(is_done, "{method} {path}: {answer:?}");
        Ok(())
    }

    /// Makes an ApiKey of a new account.
    pub async fn create(&mut self, name: &str) -> Result<()> {
        let key = json!({
            "apiVersion": "waterdata.dev/v1", "kind": "ApiKey", "metadata": { "name": name },
            "spec": { "accountId": name, "plan": PLAN },
        });
        self.send("POST", KEYS, "json", &key).await
    }

    /// Asks for a new key of an ApiKey.
    pub async fn rotate(&mut self, name: &str) -> Result<()> {
        let patch = json!({ "spec": { "rotation": { "revision": 1 } } });
        let path = format!("{KEYS}/{name}");
        self.send("PATCH", &path, "merge-patch+json", &patch).await
    }

    /// Deletes an ApiKey, and returns as the API server does: before the finalizer is gone.
    pub async fn delete(&mut self, name: &str) -> Result<()> {
        let path = format!("{KEYS}/{name}");
        let answer = self.client.request("DELETE", &path, &[]).await?;
        ensure!(answer.status == 200, "DELETE {path}: {answer:?}");
        Ok(())
    }

    /// Key of the ApiKey, once it can be read.
    pub async fn text(&mut self, name: &str) -> Result<Option<Box<str>>> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}-apikey");
        let answer = self.client.request("GET", &path, &[]).await?;
        match answer.status {
            200 => Ok(Some(text(&answer.json()?)?)),
            404 => Ok(None),
            _ => bail!("{path}: {answer:?}"),
        }
    }

    /// Whether the ApiKey's status has the last use of its key.
    pub async fn shows_use(&mut self, name: &str) -> Result<bool> {
        let key = self.get(&format!("{KEYS}/{name}")).await?;
        Ok(key["status"]["lastUsedTime"].is_string())
    }
}

fn text(secret: &Value) -> Result<Box<str>> {
    let encoded = secret["data"]["api-key"].as_str();
    let text = STANDARD.decode(encoded.context("the text of a key's Secret")?)?;
    Ok(String::from_utf8(text)?.into())
}
