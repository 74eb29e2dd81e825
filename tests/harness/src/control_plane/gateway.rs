//! etcd by its JSON API: its content, and the room that it has.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use crate::HttpClient;

/// Most reads of a transaction: etcd's own default.
const MOST_READS: usize = 128;

async fn ask(etcd: SocketAddr, what: &str, question: &Value) -> Result<Value> {
    let question = question.to_string();
    let length = question.len();
    let head =
        format!("POST /v3/{what} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n");
    let mut client = HttpClient::connect(etcd).await?;
    client.send(head + &question).await?;
    let answer = client.answer().await?;
    ensure!(answer.status == 200, "{what}: {answer:?}");
    answer.json()
}

/// Returns keys and values one after the other, of the keys that are wanted, as all were at one moment. No other value
/// is sent: where tests share a server, most are of others.
pub async fn dump(etcd: SocketAddr, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<u8>> {
    // All keys from the byte 0 on.
    let all = json!({ "key": "AA==", "range_end": "AA==", "keys_only": true });
    let all = ask(etcd, "kv/range", &all).await?;
    let revision = all["header"]["revision"].as_str().context("no revision")?;
    let mut wanted = Vec::new();
    for pair in all["kvs"].as_array().context("etcd lists no keys")? {
        if is_wanted(&String::from_utf8_lossy(&part(pair, "key")?)) {
            wanted.push(&pair["key"]);
        }
    }
    let mut dump = Vec::new();
    for keys in wanted.chunks(MOST_READS) {
        dump.extend(pairs(etcd, keys, revision).await?);
    }
    Ok(dump)
}

/// Returns these keys, each before its value, as they were at a revision.
async fn pairs(etcd: SocketAddr, keys: &[&Value], revision: &str) -> Result<Vec<u8>> {
    let read = |key: &&Value| json!({ "requestRange": { "key": key, "revision": revision } });
    let reads: Vec<Value> = keys.iter().map(read).collect();
    let answer = ask(etcd, "kv/txn", &json!({ "success": reads })).await?;
    let mut pairs = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let pair = &answer["responses"][index]["response_range"]["kvs"][0];
        ensure!(pair["key"] == **key, "{key} is missing");
        pairs.extend([part(pair, "key")?, part(pair, "value")?].concat());
    }
    Ok(pairs)
}

fn part(pair: &Value, name: &str) -> Result<Vec<u8>> {
    let text = pair[name].as_str();
    let text = text.with_context(|| format!("no {name}"))?;
    Ok(BASE64.decode(text)?)
}

/// Forgets all earlier revisions, gives their room back and ends all alarms.
pub async fn make_room(etcd: SocketAddr) -> Result<()> {
    let none = json!({ "key": "AA==" });
    let revision = ask(etcd, "kv/range", &none).await?["header"]["revision"].clone();
    let compaction = json!({ "revision": revision, "physical": true });
    ask(etcd, "kv/compaction", &compaction).await?;
    ask(etcd, "maintenance/defragment", &json!({})).await?;
    // An alarm is ended by its member, which has to be asked for.
    let raised = ask(etcd, "maintenance/alarm", &json!({ "action": "GET" })).await?;
    for alarm in raised["alarms"].as_array().into_iter().flatten() {
        let (member, kind) = (&alarm["memberID"], &alarm["alarm"]);
        let end = json!({ "action": "DEACTIVATE", "memberID": member, "alarm": kind });
        ask(etcd, "maintenance/alarm", &end).await?;
    }
    Ok(())
}
