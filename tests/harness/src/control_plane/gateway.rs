//! etcd by its JSON API: its content, and the room that it has.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use crate::HttpClient;

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

/// Returns keys and values one after the other, of the keys that are wanted.
pub async fn dump(etcd: SocketAddr, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<u8>> {
    // All keys from the byte 0 on.
    let all = json!({ "key": "AA==", "range_end": "AA==" });
    let answer = ask(etcd, "kv/range", &all).await?;
    let pairs = answer["kvs"].as_array().context("etcd told nothing")?;
    let mut dump = Vec::new();
    for pair in pairs {
        let part = |name: &str| BASE64.decode(pair[name].as_str().unwrap_or_default());
        let (key, value) = (part("key")?, part("value")?);
        if is_wanted(&String::from_utf8_lossy(&key)) {
            dump.extend([key, value].concat());
        }
    }
    Ok(dump)
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
