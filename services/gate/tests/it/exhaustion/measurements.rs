//! Memory of connections.

use std::fs;
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::task::JoinSet;
use water_kit::Gate;

use super::{TARGET, connect_from};

/// Number of heads of 30 kB, sent at once: more than any buffer of the gate might hold.
const HEADS: usize = 60;

/// Returns the resident memory of the gate, in KiB.
fn resident_kib(gate: &Gate) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", gate.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

#[tokio::test]
async fn an_idle_connection_takes_less_than_24_kib() {
    // Enough to make the gate's fixed memory negligible.
    const CONNECTIONS: usize = 4000;
    // Raise this process' own limit of descriptors to its maximum.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let gate = Gate::start().await;
    let key = gate.key().await;
    let before = resident_kib(&gate);
    let mut idle = Vec::new();
    for number in 0..CONNECTIONS {
        idle.push(connect_from(&gate, (number % 20) as u8).await);
    }
    let open = format!("water_connections_open {CONNECTIONS}\n");
    gate.shows(&[&open]).await;
    let each = resident_kib(&gate).saturating_sub(before) * 1024 / CONNECTIONS;
    println!("an idle connection takes {each} bytes of the gate's memory");
    assert!(each < 24 * 1024, "{each} bytes");
    assert_eq!(gate.get(TARGET, &key).await.status, 200);
}

#[tokio::test]
async fn unauthenticated_pipelining_is_not_buffered() {
    const CONNECTIONS: usize = 64;
    let gate = Gate::start().await;
    let before = resident_kib(&gate);
    let field = "x".repeat(30_000);
    let head = format!("GET {TARGET} HTTP/1.1\r\nHost: water\r\nX: {field}\r\n\r\n");
    let heads = Arc::new(head.repeat(HEADS));
    let mut pipelining = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mut client, heads) = (gate.connect().await, Arc::clone(&heads));
        pipelining.spawn(async move {
            client.send(heads.as_bytes()).await.unwrap();
            for _ in 0..HEADS {
                assert_eq!(client.answer().await.unwrap().status, 431);
            }
            client
        });
    }
    let _holding = pipelining.join_all().await;
    // The allocator may have returned more memory than is held.
    let each = resident_kib(&gate).saturating_sub(before) / CONNECTIONS;
    println!("{CONNECTIONS} connections that pipelined hold {each} KiB of the gate each");
    // hyper's buffer doubles until a head of 32 KiB fits behind the unparsed bytes, so up to 64 KiB. A request under
    // way keeps the buffer of its head, and hyper takes another. A gate that kept all that a client sent would hold 1
    // 800.
    assert!(each <= 2 * 64, "{each} KiB");
}
