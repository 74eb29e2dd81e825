//! A violation of each invariant is planted, and the checker of that invariant finds it, and no other does.

mod measurements;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use water_domain::KeyHash;
use water_harness::{HttpClient, Port, Process, Program};
use water_keystore::{Declaration, KeyState, Origin, Owner, Record};
use water_kit::operator::clients::{Expected, Tally};
use water_kit::operator::invariants::{Point, Violation, accounts, metrics, restart};
use water_kit::operator::objects::secret_of;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::PATIENCE;

const NAME: &str = "acme";
const OBJECT: &str = "apikey/acme";

/// A stage with one key in force at which everything holds, and the key's hash.
async fn stage(namespace: &str) -> Result<(Stage, KeyHash)> {
    let stage = Stage::new(namespace).await?;
    let hash = stage.generate(NAME).await?;
    stage.holds().await?;
    Ok((stage, hash))
}

/// The numbers of the invariants that do not hold.
fn numbers(found: &[Violation]) -> BTreeSet<u8> {
    found.iter().map(|violation| violation.invariant).collect()
}

/// Waits until the violations are of exactly these invariants, and returns them.
async fn found(stage: &Stage, what: &str, invariants: &[u8]) -> Result<Vec<Violation>> {
    let wanted: BTreeSet<u8> = invariants.iter().copied().collect();
    let found = async || {
        let found = stage.violations().await?;
        ensure!(numbers(&found) == wanted, "{found:?}");
        Ok(found)
    };
    stage.wait(what, PATIENCE, found).await
}

/// Checks that nothing is planted any more, and nothing else was broken.
async fn is_whole(stage: &Stage, what: &str) -> Result<()> {
    let found = stage.violations().await?;
    ensure!(found.is_empty(), "after {what}: {found:?}");
    Ok(())
}

/// The record of a key.
async fn record(stage: &Stage, hash: &KeyHash) -> Result<Record> {
    let stored = stage.directory()?.stored().await?;
    let record = stored.get(hash).and_then(|stored| stored.record.clone());
    record.context("no record")
}

/// Declares these of some hashes by hand, as an operator would that is out of its mind.
async fn declare(
    stage: &Stage,
    hashes: &[KeyHash],
    records: BTreeMap<KeyHash, Record>,
) -> Result<()> {
    let directory = stage.directory()?;
    let meta = directory.observe().await?.meta.context("no meta")?;
    let (writer, _) = directory.claim(&meta.owner, &meta.api, None).await?;
    let key = stage.objects.key(NAME)?.context("no ApiKey")?;
    let uid = key.metadata.uid.context("no uid")?;
    let snapshot = directory.owner_snapshot(&uid, &Origin::Generated, &[]);
    let number = snapshot.await?.number;
    let withdrawn = hashes.iter().filter(|hash| !records.contains_key(hash));
    let declaration = Declaration {
        owner: Owner {
            uid: uid.into(),
            namespace: stage.namespace.as_str().into(),
            name: NAME.into(),
        },
        number,
        withdrawn: withdrawn.copied().collect(),
        records,
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin: Origin::Generated,
        is_last: false,
    };
    writer.declare(&declaration).await?;
    Ok(())
}

/// Sets a key of Redis aside, runs a command and restores it.
async fn broken_shard(stage: &Stage, what: &str, shard: &str, command: &[&str]) -> Result<()> {
    stage.redis.command(&["COPY", shard, "aside"]).await?;
    stage.redis.command(command).await?;
    found(stage, what, &[1]).await?;
    stage.redis.command(&["RENAME", "aside", shard]).await?;
    is_whole(stage, what).await
}

/// Patches an object, or a subresource, and restores it: `invariant` does not hold meanwhile.
async fn broken_object(
    stage: &Stage,
    object: &str,
    invariant: u8,
    planted: &Value,
    restored: &Value,
) -> Result<Vec<Violation>> {
    stage.objects.patch(object, planted)?;
    let found = found(stage, object, &[invariant]).await?;
    stage.objects.patch(object, restored)?;
    is_whole(stage, object).await?;
    Ok(found)
}

/// A change of a record.
type Edit<'a> = &'a dyn Fn(&mut Record);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_indexes_and_statuses_that_contradict_one_another_are_found() -> Result<()> {
    let (stage, hash) = stage("planted-records").await?;
    let unreadable = stage.bring("comma", 'c').await?;
    let comma = json!({ "spec": { "notBefore": "2026-01-01T00:00:00,5Z" } });
    stage.objects.edit("comma", &comma)?;
    let reported = async || stage.holds().await;
    stage.wait("it to be reported", PATIENCE, reported).await?;
    stage.operator.kill()?;
    // What a gate makes of it is another invariant's.
    stage.clients.forget();

    let good = record(&stage, &hash).await?;
    let extra: KeyHash = "ab".repeat(32).parse()?;
    let now = Some(stage.now().await?);
    let edits: [(&str, Edit<'_>); 6] = [
        ("another plan", &|one| {
            one.plan = "Free".parse().expect("a plan")
        }),
        ("another account", &|one| {
            one.account = "other".parse().expect("an account")
        }),
        ("another state", &|one| one.state = KeyState::Suspended),
        ("a beginning", &|one| one.not_before = now),
        ("an end", &|one| one.expires = now),
        ("the end of an overlap", &|one| one.retires = now),
    ];
    let edited = edits.map(|(what, edit)| {
        let mut record = good.clone();
        edit(&mut record);
        (what, vec![(hash, record)])
    });
    let both = vec![(hash, good.clone()), (extra, good.clone())];
    let differing = [("no record", vec![]), ("a second key", both)];
    for (what, records) in differing.into_iter().chain(edited) {
        declare(&stage, &[hash, extra], BTreeMap::from_iter(records)).await?;
        found(&stage, what, &[1]).await?;
        let declared = BTreeMap::from([(hash, good.clone())]);
        declare(&stage, &[hash, extra], declared).await?;
        is_whole(&stage, what).await?;
    }

    let key = stage.get(OBJECT)?;
    let uid = key["metadata"]["uid"].as_str().context("no uid")?;
    let shard =
        |hash: &KeyHash| format!("wd:{{planted-records.water-data}}:records:{}", hash.shard());
    let records = shard(&hash);
    let held = stage.redis.command(&["KEYS", "*:held:*"]).await?;
    let mut index = None;
    for shard in held.lines().filter(|line| line.contains(":held:")) {
        let entry = stage.redis.command(&["HEXISTS", shard, uid]).await?;
        index = index.or((entry == ":1\r\n").then_some(shard));
    }
    let held = index.context("no index")?;
    let other = format!("7 planted-records/{NAME}\n{}", "x".repeat(32));
    let lost = shard(&unreadable);
    for (what, shard, command) in [
        ("no record", &*records, &["DEL", &records][..]),
        ("no entry", held, &["HDEL", held, uid]),
        ("another hash", held, &["HSET", held, uid, &other]),
        ("no record of an unreadable ApiKey", &lost, &["DEL", &lost]),
    ] {
        broken_shard(&stage, what, shard, command).await?;
    }

    let conditions = &key["status"]["conditions"];
    let mut unsynced = conditions.clone();
    let each = unsynced.as_array_mut().into_iter().flatten();
    for condition in each.filter(|one| one["type"] == "Synced") {
        condition["status"] = "False".into();
    }
    let status = |conditions: &Value| json!({ "status": { "conditions": conditions } });
    let object = format!("{OBJECT}/status");
    let (planted, restored) = (status(&unsynced), status(conditions));
    broken_object(&stage, &object, 1, &planted, &restored).await?;

    let stripped = json!({ "metadata": { "finalizers": null } });
    stage.objects.edit(NAME, &stripped)?;
    stage.objects.delete(OBJECT)?;
    found(&stage, "a record without an owner", &[2]).await?;
    Ok(())
}

/// A text that is planted is found in this place alone, and is not shown itself.
fn is_in(violations: &[Violation], text: &str, place: &str) -> Result<()> {
    let is_there = |one: &Violation| one.found.contains(place) && !one.found.contains(text);
    let is_alone = violations.len() == 1 && is_there(&violations[0]);
    ensure!(is_alone, "{violations:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_secret_and_a_text_in_another_place_are_found() -> Result<()> {
    let (stage, _) = stage("planted-text").await?;
    let secret = secret_of(NAME);
    let good = stage.get(&secret)?;
    let template = "--output=go-template={{index .data \"api-key\" | base64decode}}";
    let text = stage.kubectl(&["get", &secret, template])?;
    // It is written after the status.
    let written = async || {
        let mut events = stage.objects.list("event", "")?;
        let event = events.pop().context("no event")?;
        Ok(format!(
            "event/{}",
            event["metadata"]["name"].as_str().context("a name")?
        ))
    };
    let event = stage.wait("an event", PATIENCE, written).await?;

    let mut copy = good.clone();
    let (labels, notes) = (
        &good["metadata"]["labels"],
        &good["metadata"]["annotations"],
    );
    copy["metadata"] = json!({ "name": "copy", "labels": labels, "annotations": notes });
    stage.operator.kill()?;
    stage.apply(&copy)?;
    found(&stage, "a copy", &[3]).await?;
    stage.objects.delete("secret/copy")?;
    is_whole(&stage, "a copy").await?;
    let owners = |owners: &Value| json!({ "metadata": { "ownerReferences": owners } });
    let (none, restored) = (
        owners(&Value::Null),
        owners(&good["metadata"]["ownerReferences"]),
    );
    broken_object(&stage, &secret, 3, &none, &restored).await?;
    let (other, restored) = (
        json!({ "data": { "api-key": "YW5vdGhlcg==" } }),
        json!({ "data": good["data"] }),
    );
    broken_object(&stage, &secret, 3, &other, &restored).await?;

    let message = |text: &str| json!({ "message": text });
    let waiting = |names: &[&str]| json!({ "status": { "waitingFor": names } });
    let note = |text: Option<&str>| json!({ "metadata": { "annotations": { "note": text } } });
    for (object, planted, restored) in [
        (&*event, message(&text), message("issued")),
        ("apikey/acme/status", waiting(&[&text]), waiting(&[])),
        (OBJECT, note(Some(&text)), note(None)),
    ] {
        let found = broken_object(&stage, object, 5, &planted, &restored).await?;
        is_in(&found, &text, "etcd")?;
    }
    // As a name, as a value, and where much else would be compressed with it.
    let long = "more ".repeat(100) + &text;
    for (name, value) in [(&*text, "name"), ("leak", &text), ("leak", &long)] {
        stage.redis.command(&["SET", name, value]).await?;
        is_in(&found(&stage, name, &[5]).await?, &text, "Redis")?;
        stage.redis.command(&["DEL", name]).await?;
        is_whole(&stage, name).await?;
    }

    let operator = shows(&stage, ["200 OK", "503 Service Unavailable"], &text).await?;
    is_in(&metrics(&stage).await?, &text, "metrics")?;
    let refused = stage.holds().await.err().context("nothing is found")?;
    ensure!(refused.to_string().contains("503"), "{refused}");
    operator.kill()?;
    operator.ended(PATIENCE).await?;
    ensure!(metrics(&stage).await.is_err(), "no metrics are enough");
    // A log forgets nothing.
    let operator = Arc::new(Program::new("echo").arg(&*text).start()?);
    stage.add_operator(operator, Port::reserve()?);
    is_in(&found(&stage, "a log", &[5]).await?, &text, "logs")
}

/// Adds an operator to that of the stage whose metrics are these, with one status after the other.
async fn shows(stage: &Stage, statuses: [&'static str; 2], metrics: &str) -> Result<Arc<Process>> {
    let operator = Arc::new(Program::new("sleep").arg("infinity").start()?);
    let (admin, length) = (Port::reserve()?, metrics.len());
    let listener = TcpListener::bind(admin.address()).await?;
    stage.add_operator(Arc::clone(&operator), admin);
    let metrics = metrics.to_owned();
    tokio::spawn(async move {
        for status in statuses {
            let (mut client, _) = listener.accept().await?;
            // A question is shorter.
            let _ = client.read(&mut [0; 1024]).await?;
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
            client.write_all((head + &metrics).as_bytes()).await?;
        }
        anyhow::Ok(())
    });
    Ok(operator)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_release_is_found() -> Result<()> {
    let (stage, _) = stage("planted-requests").await?;
    // What the operator sends when it releases an ApiKey; that it is refused here does not matter.
    let path = "/apis/waterdata.dev/v1/namespaces/planted-requests/apikeys/acme";
    let body = json!({ "metadata": { "finalizers": [] } }).to_string();
    let length = body.len();
    let head = format!("PATCH {path} HTTP/1.1\r\nHost: api\r\nContent-Length: {length}\r\n\r\n");
    let mut client = HttpClient::connect(stage.api_server).await?;
    client.send(head + &body).await?;
    client.answer().await?;
    found(&stage, "an early release", &[4]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_answers_of_gates_and_numbers_that_decrease_are_found() -> Result<()> {
    let (stage, hash) = stage("planted-answers").await?;
    let good = record(&stage, &hash).await?;
    let edit = json!({ "spec": { "suspend": true } });
    stage.clients.expect(hash, Expected::Either);
    stage.objects.edit(NAME, &edit)?;
    stage.key_is(NAME, "Ready", "True/Suspended").await?;
    stage.clients.expect(hash, Expected::Refused);
    stage.holds().await?;
    stage.operator.kill()?;
    let judged = async |wanted: &[u8]| {
        let wanted: BTreeSet<u8> = wanted.iter().copied().collect();
        let judged = async || {
            let found = accounts(&stage.clients.tallies());
            ensure!(numbers(&found) == wanted, "{found:?}");
            Ok(())
        };
        stage.wait("a wrong answer", PATIENCE, judged).await
    };
    declare(&stage, &[hash], BTreeMap::from([(hash, good)])).await?;
    judged(&[9]).await?;
    stage.clients.forget();
    stage.clients.expect(hash, Expected::Accepted);
    declare(&stage, &[hash], BTreeMap::new()).await?;
    judged(&[8]).await?;

    // A gate that sees another generation is another invariant's.
    stage.clients.forget();
    stage.followed().await?;
    let meta = "wd:{planted-answers.water-data}:meta";
    let add = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
        meta[ARGV[1]] = meta[ARGV[1]] + ARGV[2] \
        redis.call('SET', KEYS[1], cjson.encode(meta))";
    for (before, field) in ["term", "generation", "seq"].iter().enumerate() {
        let lower = ["EVAL", add, "1", meta, field, "-1"];
        stage.redis.command(&lower).await?;
        // One for each fall so far.
        let fell = async || {
            let mut found = stage.violations().await?;
            found.retain(|violation| violation.invariant != 1);
            ensure!(numbers(&found) == BTreeSet::from([7]), "{found:?}");
            ensure!(found.len() == before + 1, "{found:?}");
            Ok(())
        };
        stage.wait(field, PATIENCE, fell).await?;
        let raise = ["EVAL", add, "1", meta, field, "1"];
        stage.redis.command(&raise).await?;
    }
    Ok(())
}

#[test]
fn writes_of_a_restart_are_found() {
    let point = |term, generation, seq| Point {
        term,
        generation,
        seq,
    };
    let found = |request: &str, after| restart(&[request.to_owned()], point(1, 2, 3), after);
    // Another leadership is no change.
    let led = point(2, 2, 3);
    assert_eq!(found("GET /apikeys/acme", led), []);
    assert_eq!(found("PUT /leases/water-operator", led), []);
    let six = BTreeSet::from([6]);
    assert_eq!(numbers(&found("PATCH /apikeys/acme/status", led)), six);
    assert_eq!(numbers(&found("GET /apikeys/acme", point(2, 3, 3))), six);
    assert_eq!(numbers(&found("GET /apikeys/acme", point(2, 2, 4))), six);
}

#[test]
fn an_answer_that_is_missing_is_found() -> Result<()> {
    let hash: KeyHash = "ab".repeat(32).parse()?;
    let tally = |sent| Tally {
        sent,
        accepted: 2,
        refused: 1,
        ..Tally::default()
    };
    let found = |sent| accounts(&BTreeMap::from([(hash, tally(sent))]));
    assert_eq!(found(3), []);
    assert_eq!(numbers(&found(4)), BTreeSet::from([10]));
    Ok(())
}
