//! World of one test: a namespace with the portal's real rights and bounds at a private API server, a
//! private Redis, and members of accounts as sessions give them. No operator runs: tests write what it
//! would.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use bytes::Bytes;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use water_domain::KeyPrefix;
use water_harness::{ControlPlane, Interceptor, Redis, wait_until};
use water_http::{Language, Query};
use water_keystore::connection::Purpose;
use water_keystore::{Allowance, Allowances, ConnectionSettings, Instance, Reply, Usage};
use water_kit::SOON;
use water_kit::operator::objects::Objects;
use water_kit::operator::rights::rendered;
use water_kit::operator::world::{API, api};

use super::super::*;
use crate::cluster::Cluster;
use crate::metrics::Metrics;
use crate::sample::{connected, plans, received};

/// Values that enable the portal, whose rights these tests run with.
const VALUES: [&str; 5] = [
    "api.exposure.ingress.host=water.example",
    "portal.enabled=true",
    "portal.url=https://water.example",
    "portal.oidc.issuer=https://id.example",
    "portal.oidc.existingSecret=portal-client",
];
/// Keys that an account may have here.
pub const MAX_KEYS: usize = 3;

/// World of one test.
pub struct World {
    pub keys: Keys,
    /// Client with the portal's rights.
    pub client: kube::Client,
    pub namespace: String,
    /// Client with all rights.
    pub objects: Objects,
    config: kube::Config,
    pub cluster: &'static ControlPlane,
}

/// A key that a browser made.
#[derive(Clone)]
pub struct Made {
    pub sha256: String,
    pub key_id: String,
}

/// Answer of the portal.
#[derive(PartialEq, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub retry_after: Option<u64>,
}

impl World {
    pub async fn new(name: &str) -> Self {
        Self::at(cluster().await, name).await
    }

    /// Starts a world with its own API server, which can be stopped. Like the shared one it lives as long
    /// as the tests.
    pub async fn alone(name: &str) -> Self {
        let cluster = Box::leak(Box::new(ControlPlane::start().await.unwrap()));
        define(cluster);
        Self::at(cluster, name).await
    }

    async fn at(cluster: &'static ControlPlane, name: &str) -> Self {
        let namespace = format!("keys-{name}");
        let objects = Objects::new(cluster, &namespace);
        let own =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        objects.apply(&own).unwrap();
        // The portal's ServiceAccount, Role and policy, exactly as the chart has them.
        let rights = rendered(&namespace, Some("templates/portal.yaml"), &VALUES);
        cluster.apply(&rights.unwrap()).unwrap();
        let account = format!("{API}-portal");
        let config = config(&cluster.kubeconfig_of(&namespace, &account).unwrap()).await;
        let client = kube::Client::try_from(config.clone()).unwrap();
        let redis = Redis::shared().await.unwrap().url();
        let world = Self {
            keys: keys(client.clone(), &redis, &namespace),
            client,
            namespace,
            objects,
            config,
            cluster,
        };
        world.is_bounded().await;
        connected(&world.keys.usage).await;
        world
    }

    /// Ends the API server, which has to be the world's own.
    pub async fn stops_the_api_server(&self) {
        let server = self.cluster.api_server();
        server.kill().unwrap();
        server.ended(SOON).await.unwrap();
    }

    /// Waits until the API server refuses what the portal may not do: policies act a moment after
    /// they are there.
    async fn is_bounded(&self) {
        let refused = async || {
            ensure!(
                self.keys.cluster.is_bounded().await?,
                "a key could be generated"
            );
            Ok(())
        };
        wait_until("the admission policy", SOON, refused)
            .await
            .unwrap();
    }

    /// Returns the portal's keys as another replica has them, whose requests pass an interceptor.
    pub async fn replica(&self, interceptor: &mut Interceptor) -> Keys {
        let redis = Redis::shared().await.unwrap().address();
        let store = interceptor.before_redis(redis).await.unwrap();
        let (address, authority) = (self.cluster.address(), self.cluster.authority_pem());
        let server = interceptor.before_api_server(address, authority).await;
        let mut config = self.config.clone();
        config.cluster_url = format!("http://{}", server.unwrap()).parse().unwrap();
        let client = kube::Client::try_from(config).unwrap();
        keys(client, &format!("redis://{store}/"), &self.namespace)
    }

    /// Sends a request of a member; the answer is as the client sees it.
    pub async fn asks(&self, member: &Member, method: &str, path: &[&str], body: Value) -> Answer {
        Answer::ask(&self.keys, member, method, path, body).await
    }

    pub async fn creates(&self, member: &Member, made: &Made) -> Answer {
        self.asks(member, "POST", &["keys"], made.body()).await
    }

    /// Creates a key and returns its name.
    pub async fn created(&self, member: &Member, made: &Made) -> String {
        let answer = self.creates(member, made).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["name"].as_str().unwrap().to_owned()
    }

    pub async fn lists(&self, member: &Member) -> Vec<Value> {
        let answer = self.asks(member, "GET", &["keys"], Value::Null).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let data = answer.body["data"].as_array().unwrap().clone();
        assert_eq!(answer.body["count"], data.len());
        data
    }

    /// Returns the only key of a member's account.
    pub async fn only(&self, member: &Member) -> Value {
        let mut keys = self.lists(member).await;
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys.remove(0)
    }

    pub async fn rotates(&self, member: &Member, name: &str, old: &Made, new: &Made) -> Answer {
        let body = new.rotation(old);
        self.asks(member, "POST", &["keys", name, "rotation"], body)
            .await
    }

    pub async fn revokes(&self, member: &Member, name: &str) -> Answer {
        self.asks(member, "DELETE", &["keys", name], Value::Null)
            .await
    }

    /// Takes all that is left of an allowance of the member's account; returns how much that was.
    pub async fn takes_all(&self, member: &Member, what: Allowance) -> usize {
        let take = async || self.keys.allowances.take(member.account(), what).await;
        let mut taken = 0;
        while let Reply::Reserved(_) = take().await.unwrap() {
            taken += 1;
        }
        taken
    }

    /// Returns the object as the API server has it.
    pub fn object(&self, name: &str) -> Value {
        self.objects.get(&format!("apikey/{name}")).unwrap()
    }

    pub fn patch(&self, name: &str, patch: &Value) {
        self.objects.edit(name, patch).unwrap();
    }

    /// Writes what the operator writes once every gate knows the declared hash.
    pub fn publishes(&self, name: &str, previous: Option<(&Made, &str)>) {
        let object = self.object(name);
        let declared = &object["spec"]["material"]["hash"];
        let issued = |hash: &Value, id: &Value| {
            json!({
                "revision": 0, "hash": hash, "keyId": id, "issuedTime": "2026-01-01T00:00:00Z",
            })
        };
        let previous = previous.map(|(made, retires)| {
            let mut issued = issued(&made.sha256.clone().into(), &made.key_id.clone().into());
            issued["retireTime"] = retires.into();
            issued
        });
        self.tells(
            name,
            &json!({
                "observedGeneration": object["metadata"]["generation"],
                "api": { "namespace": self.namespace, "name": API },
                "keyId": declared["keyId"],
                "current": issued(&declared["sha256"], &declared["keyId"]),
                "previous": previous,
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "Active", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "observedGeneration": object["metadata"]["generation"],
                }],
            }),
        );
    }

    /// Writes a part of the status.
    pub fn tells(&self, name: &str, status: &Value) {
        let patch = json!({ "status": status });
        let status = format!("apikey/{name}/status");
        self.objects.patch(&status, &patch).unwrap();
    }

    /// Applies a manifest of a key in the cluster.
    pub fn applies(&self, manifest: &Value) {
        self.objects.apply(manifest).unwrap();
    }

    pub fn manifest(&self, name: &str, account: &str) -> Value {
        json!({
            "apiVersion": "waterdata.dev/v1", "kind": "ApiKey",
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": { "accountId": account, "plan": "Enterprise" },
        })
    }

    /// Returns a WaterDataApi with a plan that has access and one that has none.
    pub fn installation(&self) -> Value {
        api()
    }
}

impl Made {
    /// Returns the key with this number.
    pub fn new(number: u8) -> Self {
        let key = water_domain::PlainKey::generate(&KeyPrefix::default(), &[number; 48]);
        Self {
            sha256: key.hash().to_string(),
            key_id: key.key_id().to_string(),
        }
    }

    pub fn body(&self) -> Value {
        json!({
            "title": "Nightly import", "expiresAt": "2120-01-01T00:00:00Z",
            "sha256": self.sha256, "keyId": self.key_id,
        })
    }

    pub fn rotation(&self, old: &Self) -> Value {
        json!({
            "replaces": old.key_id, "sha256": self.sha256, "keyId": self.key_id, "overlapSeconds": 3600,
            "expiresAt": null, "endPrevious": false,
        })
    }
}

impl Answer {
    /// Sends a request of a member to a replica; returns the answer.
    pub async fn ask(
        keys: &Keys,
        member: &Member,
        method: &str,
        path: &[&str],
        body: Value,
    ) -> Self {
        let (fields, body) = if body.is_null() {
            (&[][..], Bytes::new())
        } else {
            (
                &[("content-type", "application/json")][..],
                body.to_string().into(),
            )
        };
        let received = received(method, "/", fields);
        let asked = AccountRequest {
            received: &received,
            path,
            query: &Query::parse(None).unwrap(),
            body: &body,
        };
        let outcome = answer(keys, member, &asked, crate::clock::now()).await;
        let answer = outcome
            .unwrap_or_else(|problem| problem.into_response(&received.id, Language::English));
        assert_eq!(answer.headers()["cache-control"], "no-store");
        let retry_after = answer.headers().get("retry-after");
        Self {
            status: answer.status().as_u16(),
            retry_after: retry_after.map(|value| value.to_str().unwrap().parse().unwrap()),
            body: serde_json::from_slice(answer.body()).unwrap_or(Value::Null),
        }
    }

    /// Returns the status and, of a problem, the code.
    pub fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }
}

/// The API server that all tests share, with the custom resources.
async fn cluster() -> &'static ControlPlane {
    static DEFINED: OnceCell<&'static ControlPlane> = OnceCell::const_new();
    let defined = DEFINED.get_or_init(async || {
        let cluster = ControlPlane::shared().await.unwrap();
        define(cluster);
        cluster
    });
    defined.await
}

fn define(cluster: &ControlPlane) {
    let crds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds"));
    for kind in ["apikeys", "waterdataapis"] {
        let file = crds.join(format!("{kind}.yaml"));
        cluster.apply(&fs::read_to_string(file).unwrap()).unwrap();
        let definition = format!("crd/{kind}.waterdata.dev");
        let established = ["wait", "--for=condition=Established", "--timeout=60s"];
        cluster
            .kubectl(&[&established[..], &[&definition]].concat())
            .unwrap();
    }
}

async fn config(kubeconfig: &str) -> kube::Config {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.unwrap()
}

fn keys(client: kube::Client, redis: &str, namespace: &str) -> Keys {
    let instance = Instance::new(namespace, API).unwrap();
    let redis = ConnectionSettings::new(redis, None).unwrap();
    let connection = redis.connect(Purpose::Directory);
    Keys {
        cluster: Cluster::new(client, &instance),
        allowances: Allowances::new(connection.clone(), instance.clone()),
        usage: Usage::new(connection, instance),
        rules: Rules {
            max_keys: MAX_KEYS,
            max_key_days: None,
        },
        prefix: KeyPrefix::default(),
        plans: plans(),
        metrics: Metrics::default(),
    }
}
