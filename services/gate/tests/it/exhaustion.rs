//! When there is too much of something or too little: connections, descriptors, readers of the log.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use nix::libc::O_NONBLOCK;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use water_harness::{Disks, scratch_directory, wait_until};

use crate::site::{Key, SOON, Site};

const TARGET: &str = "/api/v1/stress";

/// So many heads of 30 kB, sent at once, are more than any buffer of the gate might hold.
const HEADS: usize = 60;

impl Site {
    /// A connection from 127.0.1.`source`: one address may have 256 of them.
    async fn connect_from(&self, source: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        let source = SocketAddr::from(([127, 0, 1, source], 0));
        socket.bind(source).unwrap();
        socket.connect(self.address()).await.unwrap()
    }

    /// Waits until the gate counts that many connections.
    async fn open_connections(&self, count: usize) {
        let open = format!("water_connections_open {count}\n");
        let counted = async || -> Result<()> {
            let metrics = self.admin("/metrics").await?;
            ensure!(metrics.text()?.contains(&open), "{metrics:?}");
            Ok(())
        };
        wait_until("the connections", SOON, counted).await.unwrap();
    }

    /// How many connections the gate has closed for this reason.
    async fn closed_connections(&self, reason: &str) -> usize {
        let name = format!("water_connections_closed_total{{reason=\"{reason}\"}} ");
        let metrics = self.admin("/metrics").await.unwrap();
        let mut lines = metrics.text().unwrap().lines();
        let count = lines.find_map(|line| line.strip_prefix(&name));
        count.map_or(0, |count| count.parse().unwrap())
    }

    /// A line of the kernel's account of the process, in KiB.
    fn resident_kib(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.gate.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    /// The descriptors that the gate has.
    fn descriptors(&self) -> HashSet<u32> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.gate.id())).unwrap();
        open.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|number| number.parse().unwrap())
            .collect()
    }

    /// Allows the running gate descriptors below `number`.
    fn limit_descriptors(&self, number: u32) {
        let pid = self.gate.id().to_string();
        let limit = format!("--nofile={number}:");
        let status = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Asks on a new connection, 20 times a second until `end`; every answer must be 200. Returns
    /// how many there were.
    async fn serve_well_until(&self, keys: &[Key], end: impl Future<Output = ()>) -> usize {
        let (mut served, mut pace) = (0, interval(Duration::from_millis(50)));
        let serving = async {
            for key in keys.iter().cycle() {
                pace.tick().await;
                let answer = self.get(TARGET, key).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                served += 1;
            }
        };
        tokio::select! {
            () = serving => {}
            () = end => {}
        }
        served
    }

    async fn keys(&self, count: usize) -> Vec<Key> {
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push(self.key().await);
        }
        keys
    }
}

/// This process' own descriptors: as many as it may have.
fn raise_own_limit() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}

#[tokio::test]
async fn a_good_client_is_served_beside_5000_idle_connections_and_200_slow_ones() {
    raise_own_limit();
    let site = Site::start().await;
    let keys = site.keys(20).await;
    let before = site.resident_kib();
    let mut idle = Vec::new();
    for number in 0..4000 {
        idle.push(site.connect_from((number % 20) as u8).await);
    }
    site.open_connections(4000).await;
    let each = (site.resident_kib() - before) * 1024 / idle.len();
    println!("an idle connection takes {each} bytes of the gate's memory");
    assert!(each < 24 * 1024, "{each} bytes");

    let crowd = async {
        for number in 0..1000 {
            idle.push(site.connect_from(20 + (number % 5) as u8).await);
        }
        let mut slow = JoinSet::new();
        for _ in 0..200 {
            slow.spawn(trickle(site.connect_from(25).await));
        }
        slow.join_all().await;
    };
    let served = site.serve_well_until(&keys, crowd).await;
    println!("{served} requests of the good client were served meanwhile");
    assert!(served > 20, "{served}");
    assert_eq!(site.closed_connections("head").await, 200);
    assert!(site.closed_connections("evicted").await >= 5200 - 4096);
    assert_eq!(site.closed_connections("full").await, 0);
}

/// Sends a head byte by byte until the gate has had enough of it.
async fn trickle(mut stream: TcpStream) {
    let mut pace = interval(Duration::from_millis(500));
    while stream.write_all(b"G").await.is_ok() {
        pace.tick().await;
    }
}

#[tokio::test]
async fn who_shows_no_key_cannot_make_the_gate_hold_what_he_pipelines() {
    let site = Site::start().await;
    let before = site.resident_kib();
    let field = "x".repeat(30_000);
    let head = format!("GET {TARGET} HTTP/1.1\r\nHost: water\r\nX: {field}\r\n\r\n");
    let heads = Arc::new(head.repeat(HEADS));
    let mut pipelining = JoinSet::new();
    for _ in 0..256 {
        let (mut client, heads) = (site.connect().await, Arc::clone(&heads));
        pipelining.spawn(async move {
            client.send(heads.as_bytes()).await.unwrap();
            for _ in 0..HEADS {
                assert_eq!(client.answer().await.unwrap().status, 431);
            }
            client
        });
    }
    let holding = pipelining.join_all().await;
    let grown = site.resident_kib() - before;
    let each = grown / holding.len();
    println!("256 connections that pipelined hold {grown} KiB of the gate, {each} KiB each");
    // hyper's buffer doubles until a head of 32 KiB fits behind what is not parsed yet, so up to 64 KiB.
    // A request under way keeps the one that its head lies in, and hyper takes another. A gate that kept
    // all that a client sent would hold 1 800.
    assert!(each <= 2 * 64, "{each} KiB");
}

#[tokio::test]
async fn a_gate_with_few_descriptors_serves_a_good_client_beside_many_idle_connections() {
    let site = Site::start_under(&["prlimit", "--nofile=256:256"], &[]).await;
    let key = site.key().await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        for number in 0..10 {
            idle.push(site.connect_from(number % 2).await);
        }
        let answer = site.get(TARGET, &key).await;
        assert_eq!(answer.status, 200, "beside {}: {answer:?}", idle.len());
    }
    assert!(!site.gate.log().contains("cannot accept connections"));
    assert!(site.descriptors().len() < 200);
}

#[tokio::test]
async fn out_of_descriptors_clients_take_the_places_of_idle_connections() {
    let site = Site::start().await;
    let key = site.key().await;
    let mut warm = site.connect().await;
    assert_eq!(warm.get(TARGET, &key.text).await.unwrap().status, 200);
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(site.connect_from(1).await);
    }
    site.open_connections(21).await;
    // A few numbers are free between those in use; the next client finds none beyond them.
    let open = site.descriptors();
    let mut free = (0..).filter(|number| !open.contains(number));
    site.limit_descriptors(free.nth(5).unwrap());
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = site.connect().await;
        assert_eq!(client.get(TARGET, &key.text).await.unwrap().status, 200);
        assert_eq!(warm.get(TARGET, &key.text).await.unwrap().status, 200);
        clients.push(client);
    }
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    site.limit_descriptors(most as u32);
    for mut client in clients {
        let answer = client.get(TARGET, &key.text).await.unwrap();
        assert_eq!(answer.status, 200, "the first clients are still there");
    }
    let told = async || -> Result<()> {
        let told = site.gate.log().contains("cannot accept connections");
        ensure!(told, "{}", site.gate.log_end());
        Ok(())
    };
    wait_until("the log", SOON, told).await.unwrap();
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_no_request_up_and_tells_what_it_lost() {
    let log = scratch_directory("log").unwrap().join("pipe");
    mkfifo(&log, Mode::S_IRWXU).unwrap();
    let mut reader = fs::OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(&log)
        .unwrap();
    let settings = [("WATER_TEST_LOG", log.to_str().unwrap())];
    let shell = ["sh", "-c", "exec \"$0\" 2>\"$WATER_TEST_LOG\""];
    let site = Site::start_under(&shell, &settings).await;
    // Several times what the pipe and the gate's buffer hold, in lines of some 200 bytes.
    let mut client = site.connect().await;
    let flood = "GET / HTTP/1.1\r\nHost: water\r\n\r\n".repeat(500);
    for _ in 0..40 {
        client.send(&flood).await.unwrap();
        for _ in 0..500 {
            let answer = timeout(SOON, client.answer()).await.unwrap().unwrap();
            assert_eq!(answer.status, 401);
        }
    }
    let key = site.key().await;
    assert_eq!(site.get(TARGET, &key).await.status, 200);

    let mut text = Vec::new();
    let told = async || -> Result<()> {
        // A pipe that is empty for the moment is an error too.
        let _ = reader.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        ensure!(text.contains("log lines were dropped"), "nothing was lost");
        Ok(())
    };
    wait_until("the log's own account", SOON, told)
        .await
        .unwrap();
    let fields = [("X-Request-Id", "after-the-stall")];
    site.request("GET", "/", &fields).await;
    let recovered = async || -> Result<()> {
        let _ = reader.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        ensure!(text.contains("after-the-stall"), "it is not there");
        Ok(())
    };
    wait_until("a later line", SOON, recovered).await.unwrap();
}

#[tokio::test]
async fn a_log_on_a_full_disk_holds_no_request_up_and_goes_on_where_there_is_space() {
    let disks = Disks::mount(&[("log", 1 << 20)]).await.unwrap();
    let log = disks.inside("log").join("gate");
    let settings = [("WATER_TEST_LOG", log.to_str().unwrap())];
    let enter = disks.enter();
    let enter = enter.iter().map(|word| word.to_str().unwrap());
    let shell = ["sh", "-c", "exec \"$0\" 2>>\"$WATER_TEST_LOG\""];
    let wrapper: Vec<&str> = enter.chain(shell).collect();
    let site = Site::start_under(&wrapper, &settings).await;
    let key = site.key().await;
    let written = || fs::read_to_string(disks.outside("log").join("gate")).unwrap();

    disks.fill("log").unwrap();
    let full = written().len();
    let unlogged = [("X-Request-Id", "while-full")];
    let mut client = site.connect().await;
    let flood = "GET / HTTP/1.1\r\nHost: water\r\n\r\n".repeat(500);
    client.send(&flood).await.unwrap();
    for _ in 0..500 {
        let answer = timeout(SOON, client.answer()).await.unwrap().unwrap();
        assert_eq!(answer.status, 401);
    }
    assert_eq!(site.request("GET", "/", &unlogged).await.status, 401);
    assert_eq!(site.get(TARGET, &key).await.status, 200);
    // The last page of the file may have room left.
    assert!(written().len() < full + 4096, "the disk was not full");

    disks.free("log").unwrap();
    let fields = [("X-Request-Id", "after-the-disk-was-full")];
    let recovered = async || -> Result<()> {
        site.request("GET", "/", &fields).await;
        ensure!(
            written().contains("after-the-disk-was-full"),
            "it is not there"
        );
        Ok(())
    };
    wait_until("a later line", SOON, recovered).await.unwrap();
}
