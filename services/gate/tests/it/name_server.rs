//! A name server that knows one name, and fails on demand.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use water_harness::scratch_directory;
use water_kit::Gate;
use water_kit::gate::GateBuilder;

/// Answer to a query.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// The same IPv4 address for any name, and no IPv6 one.
    Are(Ipv4Addr),
    /// A failure (SERVFAIL).
    Unknown,
    /// No answer.
    Silence,
}

/// A running server. The port is 53, so each has a separate address.
pub struct NameServer {
    address: Ipv4Addr,
    shared: Arc<Shared>,
    answering: JoinHandle<()>,
}

struct Shared {
    names: Mutex<Names>,
    asked: AtomicU32,
}

impl NameServer {
    pub async fn start(names: Names) -> Self {
        let (address, socket) = bind().await;
        let shared = Arc::new(Shared {
            names: Mutex::new(names),
            asked: AtomicU32::new(0),
        });
        Self {
            address,
            answering: tokio::spawn(answer(socket, Arc::clone(&shared))),
            shared,
        }
    }

    /// Changes the answers, from the next query on.
    pub fn behave(&self, names: Names) {
        *self.shared.names.lock().unwrap() = names;
    }

    /// Returns the number of queries so far.
    pub fn asked(&self) -> u32 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Builds a gate that asks only this server, and waits half a minute for an answer.
    pub fn builder(&self) -> GateBuilder {
        let file = scratch_directory("resolver").unwrap().join("resolv.conf");
        let lines = format!(
            "nameserver {}\noptions timeout:30 attempts:1\n",
            self.address
        );
        std::fs::write(&file, lines).unwrap();
        let mount = "mount --bind \"$WATER_TEST_RESOLVER\" /etc/resolv.conf && exec \"$0\"";
        Gate::builder()
            .under(&["unshare", "--mount", "sh", "-c", mount])
            .set("WATER_TEST_RESOLVER", file.display())
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// Binds port 53 of the first loopback address where it is free.
async fn bind() -> (Ipv4Addr, UdpSocket) {
    const ADDRESSES: u32 = 1 << 20;
    // Processes begin at different places, so that they seldom try each other's addresses.
    let begin = process::id() % (ADDRESSES / 16) * 16;
    for step in 0..ADDRESSES {
        let number = (begin + step) % ADDRESSES;
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + number);
        match UdpSocket::bind((address, 53)).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            socket => return (address, socket.unwrap()),
        }
    }
    panic!("port 53 is in use on {ADDRESSES} addresses");
}

async fn answer(socket: UdpSocket, shared: Arc<Shared>) {
    let mut question = [0; 512];
    loop {
        let (length, client) = socket.recv_from(&mut question).await.unwrap();
        shared.asked.fetch_add(1, Ordering::Relaxed);
        let names = *shared.names.lock().unwrap();
        if let Some(answer) = reply(&question[..length], names) {
            socket.send_to(&answer, client).await.unwrap();
        }
    }
}

/// Makes a reply (RFC 1035 §4.1) to a message with one question.
fn reply(question: &[u8], names: Names) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let name = question[HEADER..].iter().position(|byte| *byte == 0)? + 1;
    let end = HEADER + name + 4;
    let asks_for_ipv4 = question[HEADER + name..end] == [0, 1, 0, 1];
    let (code, address) = match names {
        Names::Are(address) => (0, asks_for_ipv4.then_some(address)),
        Names::Unknown => (2, None),
        Names::Silence => return None,
    };
    let mut reply = question[..end].to_vec();
    // A reply, recursion desired and available; one question, as many answers, nothing else.
    reply[2..4].copy_from_slice(&[0x81, 0x80 | code]);
    reply[4..HEADER].copy_from_slice(&[0, 1, 0, address.is_some().into(), 0, 0, 0, 0]);
    if let Some(address) = address {
        // The name of the question, type A, class IN, no time to live, four bytes.
        reply.extend([0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}
