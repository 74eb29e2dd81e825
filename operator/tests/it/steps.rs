//! Steps of tests with ApiKeys, and waits for their effects, in a line each.

use std::borrow::Borrow;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use water_domain::{KeyPrefix, PlainKey};
use water_harness::{HttpClient, Process, Redis};

use crate::world::{API, PATIENCE, World, key, shown};

/// The WaterDataApi of a world.
pub const OBJECT: &str = "waterdataapi/water-data";
/// The Secret of the ApiKey acme.
pub const SECRET: &str = "secret/acme-apikey";
/// Log of a leader that has not renewed its Lease for ten seconds: it, or the API server, got no time.
pub const NOT_RENEWED: &str = "the lease was not renewed in time";
/// The operator's rights in its namespace.
const ROLE: &str = "role/water-operator";
/// A directory that holds nothing.
pub const NOTHING: [&str; 0] = [];

/// Waits with the patience of all tests.
pub async fn until<T>(
    world: &World,
    what: &str,
    condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    world.wait(what, PATIENCE, condition).await
}

/// Waits until an object is as `is` says, and returns it.
pub async fn becomes(
    world: &World,
    object: &str,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    until(world, &format!("{object} to be {what}"), async || {
        let found = world.get(object)?;
        ensure!(is(&found), "{found}");
        Ok(found)
    })
    .await
}

/// Number of times that Redis has carried out a command.
pub async fn calls(redis: &Redis, command: &str) -> Result<u64> {
    let statistics = redis.command(&["INFO", "commandstats"]).await?;
    let name = format!("cmdstat_{command}:calls=");
    let mut lines = statistics.lines();
    let calls = lines.find_map(|line| line.strip_prefix(&name));
    let calls = calls.and_then(|calls| calls.split(',').next());
    Ok(calls.map_or(Ok(0), str::parse)?)
}

/// Waits until `Ready` of an ApiKey reads so.
pub async fn ready(world: &World, name: &str, wanted: &str) -> Result<Value> {
    let object = format!("apikey/{name}");
    world.condition(&object, "Ready", wanted).await
}

/// Waits until an ApiKey is stalled for this reason.
pub async fn stalled(world: &World, name: &str, reason: &str) -> Result<Value> {
    let (object, wanted) = (format!("apikey/{name}"), format!("True/{reason}"));
    world.condition(&object, "Stalled", &wanted).await
}

/// Waits until the status of an ApiKey is about its last edit: a condition that reads as it did before the edit says
/// nothing about it.
pub async fn reported(world: &World, name: &str) -> Result<Value> {
    let object = format!("apikey/{name}");
    becomes(world, &object, "told of its last edit", |found| {
        found["status"]["observedGeneration"] == found["metadata"]["generation"]
    })
    .await
}

/// Waits until a condition reads so and its message contains these words.
pub async fn says(world: &World, object: &str, wanted: &str, words: &str) -> Result<Value> {
    let (aspect, wanted) = wanted
        .split_once('=')
        .context("<aspect>=<status>/<reason>")?;
    becomes(world, object, words, |found| {
        shown(found, aspect) == wanted && message(found, aspect).contains(words)
    })
    .await
}

/// The message of a condition.
pub fn message(object: &Value, aspect: &str) -> String {
    let mut conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let condition = conditions.find(|condition| condition["type"] == aspect);
    let message = condition.and_then(|condition| condition["message"].as_str());
    message.unwrap_or_default().to_owned()
}

/// Waits until an operator's log contains a text.
pub async fn logs(world: &World, operator: &Process, text: &str) -> Result<()> {
    let logged = async || {
        ensure!(operator.log().contains(text), "{}", operator.log_end());
        Ok(())
    };
    until(world, text, logged).await
}

/// Waits until one of the events about an object has this reason.
pub async fn event(world: &World, about: &str, reason: &str) -> Result<()> {
    until(world, reason, async || {
        let events = world.events(about)?;
        ensure!(events.iter().any(|event| event == reason), "{events:?}");
        Ok(())
    })
    .await
}

/// Fails unless the Lease was given back, or the log of who held it says why not: the API server has two seconds for
/// that.
pub fn given_back(world: &World, log: &str) -> Result<()> {
    let holder = world.get("lease/water-operator")?["spec"]["holderIdentity"].clone();
    // One that has lost its leadership for want of time has none to give back.
    let excuses = ["cannot release the lease", NOT_RENEWED];
    let is_excused = excuses.iter().any(|excuse| log.contains(excuse));
    ensure!(holder == "" || is_excused, "{holder} has it: {log}");
    Ok(())
}

/// Runs a body in a world that `start` makes, and once more in another if it fails after a leader has lost its Lease
/// for want of time: the body is about what one leader does, and there were two.
pub async fn one_leadership<W: Borrow<World>, T>(
    namespace: &str,
    start: impl AsyncFn(&str) -> Result<(W, T)>,
    body: impl AsyncFn(&W, &T) -> Result<()>,
) -> Result<()> {
    let (world, more) = start(namespace).await?;
    let outcome = body(&world, &more).await;
    match outcome {
        Err(error) if world.borrow().logs().contains(NOT_RENEWED) => {
            println!("once more, since a leader has lost its Lease: {error:?}");
            drop((world, more));
            let (world, more) = start(&format!("{namespace}-again")).await?;
            body(&world, &more).await
        }
        outcome => outcome,
    }
}

/// Edits the spec of an ApiKey.
pub fn edit(world: &World, name: &str, spec: &Value) -> Result<()> {
    world.patch(&format!("apikey/{name}"), &json!({ "spec": spec }), &[])
}

/// Takes the rights to a resource away from the operator. Returns its rules as they were, for [`allow`].
pub fn forbid(world: &World, resource: &str) -> Result<Value> {
    let rules = world.get(ROLE)?["rules"].clone();
    let all = rules.as_array().context("rules")?.iter();
    let is_other = |rule: &&Value| rule["resources"] != json!([resource]);
    let others: Vec<&Value> = all.filter(is_other).collect();
    world.patch(ROLE, &json!({ "rules": others }), &[])?;
    Ok(rules)
}

/// Gives the operator these rules.
pub fn allow(world: &World, rules: &Value) -> Result<()> {
    world.patch(ROLE, &json!({ "rules": rules }), &[])
}

/// Asks for another pass over an object of which nothing else changes.
pub fn look_again(world: &World, object: &str, note: &str) -> Result<()> {
    let note = format!("looked-at={note}");
    world.kubectl(&["annotate", object, &note, "--overwrite"])?;
    Ok(())
}

/// Asks for the deletion of an ApiKey.
pub fn delete(world: &World, name: &str) -> Result<()> {
    world.kubectl(&["delete", "apikey", name, "--wait=false"])?;
    Ok(())
}

/// Deletes an ApiKey and waits until it is gone.
pub async fn revoke(world: &World, name: &str) -> Result<()> {
    delete(world, name)?;
    world.gone(&format!("apikey/{name}")).await
}

/// Takes the finalizer away and deletes the ApiKey, as somebody in a hurry does: a leader that is
/// stopped meanwhile leads on.
pub async fn strip(world: &World, name: &str) -> Result<()> {
    let namespace = &world.namespace;
    let path = format!("/apis/waterdata.dev/v1/namespaces/{namespace}/apikeys/{name}");
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let length = patch.len();
    let mut api_server = world.cluster.proxy().connect().await?;
    for request in [
        format!(
            "PATCH {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/merge-patch+json\r\n\
             Content-Length: {length}\r\n\r\n{patch}"
        ),
        format!("DELETE {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    ] {
        api_server.send(request).await?;
        let answer = api_server.answer().await?;
        ensure!(answer.status == 200, "{answer:?}");
    }
    Ok(())
}

/// Waits until the directory holds exactly these: key id, plan and state of each.
pub async fn holds(world: &World, wanted: &[impl AsRef<str> + std::fmt::Debug]) -> Result<()> {
    until(world, &format!("{wanted:?}"), async || {
        let published = world.published().await?;
        let wanted = wanted.iter().map(AsRef::as_ref);
        ensure!(wanted.eq(published.iter()), "{published:?}");
        Ok(())
    })
    .await
}

/// Waits until the directory holds so many keys, and returns them.
pub async fn count(world: &World, count: usize) -> Result<Vec<String>> {
    until(world, &format!("{count} keys"), async || {
        let published = world.published().await?;
        ensure!(published.len() == count, "{published:?}");
        Ok(published)
    })
    .await
}

/// The generation of a whole directory.
pub async fn generation(world: &World) -> Result<u64> {
    let seen = world.observe().await?;
    let meta = seen.verified().map(|meta| meta.generation);
    meta.with_context(|| format!("the directory is not whole: {seen:?}"))
}

/// The term under which the directory is written.
pub async fn term(world: &World) -> Result<u64> {
    let seen = world.observe().await?;
    seen.meta.map(|meta| meta.term).context("no directory")
}

/// Fails if the directory has been claimed since that term, unless the leader whose log that is has lost its Lease for
/// want of time: the next leader claims the directory.
pub async fn keeps_term(world: &World, before: u64, log: &str) -> Result<()> {
    let now = term(world).await?;
    ensure!(
        now == before || log.contains(NOT_RENEWED),
        "claimed again: term {before}, then {now}"
    );
    Ok(())
}

/// Waits until the directory holds exactly this, under a later generation than that.
pub async fn rebuilt(world: &World, published: &[String], earlier: u64) -> Result<()> {
    let whole = async || {
        let now = generation(world).await?;
        ensure!(now > earlier, "still generation {now}");
        let found = world.published().await?;
        ensure!(found == published, "{found:?}");
        Ok(())
    };
    until(world, "the rebuild", whole).await
}

/// The hash of the text in the Secret of acme.
pub fn text_hash(world: &World) -> Result<String> {
    let text = secret_value(world, "api-key")?;
    let plain = PlainKey::parse(text.as_bytes(), &KeyPrefix::default())?;
    Ok(plain.hash().to_string())
}

/// A value in the Secret of acme.
pub fn secret_value(world: &World, name: &str) -> Result<String> {
    let template = format!("--output=go-template={{{{index .data \"{name}\" | base64decode}}}}");
    world.kubectl(&["get", "secret", "acme-apikey", &template])
}

/// The hash that the status calls current.
pub fn current(key: &Value) -> Result<String> {
    let hash = key["status"]["current"]["hash"].as_str();
    Ok(hash.context("a current key")?.to_owned())
}

/// Waits until acme's current key is another than that one, and in force.
pub async fn successor(world: &World, before: &str) -> Result<Value> {
    becomes(world, "apikey/acme", "in force with another key", |found| {
        let is_other = current(found).is_ok_and(|hash| hash != before);
        is_other && shown(found, "Ready") == "True/Active"
    })
    .await
}

/// An ApiKey acme with these rotation settings.
pub fn rotating(rotation: Value) -> Value {
    let mut key = key("acme");
    key["spec"]["rotation"] = rotation;
    key
}

/// Asks for another revision of acme's key.
pub fn raise(world: &World, revision: i64) -> Result<()> {
    edit(
        world,
        "acme",
        &json!({ "rotation": { "revision": revision } }),
    )
}

/// Makes the WaterDataApi one that the schema admits and that cannot be decoded.
pub fn spoil_api(world: &World) -> Result<()> {
    // The schema bounds no number among the quantities, and the operator reads 32 bits.
    let requests = json!({ "requests": { "memory": 3_000_000_000_u64 } });
    let spec = json!({ "components": { "gate": { "resources": requests } } });
    world.patch(OBJECT, &json!({ "spec": spec }), &[])
}

/// Makes an ApiKey one that the schema admits and that cannot be decoded.
pub async fn spoil(world: &World, name: &str) -> Result<()> {
    edit(
        world,
        name,
        &json!({ "notBefore": "2026-01-01T00:00:00,5Z" }),
    )?;
    let stalled = stalled(world, name, "Undecodable").await?;
    let said = message(&stalled, "Stalled");
    ensure!(
        said.contains("spec.notBefore: a time is RFC 3339"),
        "{said}"
    );
    Ok(())
}

/// The prefix of the names of the directory's keys in Redis.
pub fn prefix(world: &World) -> String {
    format!("wd:{{{}.{API}}}:", world.namespace)
}

/// Has a Redis follow another until it holds a copy.
pub async fn follow(world: &World, replica: &Redis, primary: &Redis) -> Result<()> {
    let port = primary.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]).await?;
    until(world, "the replica's copy", async || {
        let info = replica.command(&["INFO", "replication"]).await?;
        ensure!(info.contains("master_link_status:up"), "{info}");
        Ok(())
    })
    .await
}

/// Address at which an operator serves its metrics, once its log names it.
pub async fn admin_address(world: &World, operator: &Process) -> Result<String> {
    until(world, "the admin port in the log", async || {
        let log = operator.log();
        let admin = log.lines().find(|line| line.contains("\"port\":\"admin\""));
        let line: Value = serde_json::from_str(admin.context("no admin port yet")?)?;
        Ok(line["address"].as_str().context("an address")?.to_owned())
    })
    .await
}

/// Waits until a line of an operator's metrics that begins so has a value that is not zero.
pub async fn measured(world: &World, operator: &Process, name: &str) -> Result<()> {
    let address = admin_address(world, operator).await?;
    until(world, name, async || {
        let mut client = HttpClient::connect(&address).await?;
        let metrics = client.get("/metrics", "").await?.text()?.to_owned();
        let mut values = metrics.lines().filter_map(|line| line.strip_prefix(name));
        if values.any(|value| value.trim() != "0") {
            Ok(())
        } else {
            bail!("{metrics}")
        }
    })
    .await
}
