//! A node that leaves the network without notice: packets to its pods are lost, and no connection is reported as
//! closed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use nix::sched::{CloneFlags, setns};
use tokio::sync::Notify;
use water_harness::{Answer, Process, Program, wait_until};
use water_kit::gate::{Behaviour, Overdue, Recorder, Seen, ok};
use water_kit::{Gate, Key, SOON};

use crate::deadline::{all_served, decided, in_time, timed};
use crate::whole::{gave_up_connecting, is, problem};

const TARGET: &str = "/api/v1/hydrorisk";

/// A service with two pods on two nodes: one address, behind which each new connection goes to the other pod, as with
/// kube-proxy. All of it is in a separate network namespace.
struct Balanced {
    address: SocketAddr,
    pods: [Recorder; 2],
    namespace: Process,
}

impl Balanced {
    async fn start() -> Self {
        let namespace = Program::new("unshare").args(["--net", "sleep", "infinity"]);
        let namespace = namespace.start().unwrap();
        let process = namespace.id();
        let apart = async || -> Result<()> {
            let name = fs::read_to_string(format!("/proc/{process}/comm"))?;
            ensure!(name.trim() == "sleep", "it is {name}");
            Ok(())
        };
        wait_until("the namespace", SOON, apart).await.unwrap();

        let (link, [here, there]) = link_to(process);
        run(&format!("ip address add {here}/30 dev {link}"));
        run(&format!("ip link set {link} up"));
        let inside = |command: &str| run(&format!("nsenter --target {process} --net {command}"));
        inside(&format!("ip address add {there}/30 dev eth0"));
        inside("ip link set eth0 up");

        let pods = [(); 2].map(|()| Recorder::on(listen(process, there)));
        let [first, second] = pods.each_ref().map(|pod| pod.address.port());
        inside(&format!(
            "nft add table ip nodes; \
             add chain ip nodes balance {{ type nat hook prerouting priority -100; }}; \
             add rule ip nodes balance tcp dport 80 \
             dnat to {there}:numgen inc mod 2 map {{ 0 : {first}, 1 : {second} }}; \
             add chain ip nodes in {{ type filter hook input priority 0; }}; \
             add chain ip nodes out {{ type filter hook output priority 0; }}"
        ));
        Self {
            address: (there, 80).into(),
            pods,
            namespace,
        }
    }

    /// Starts a gate in front of it.
    async fn gate(&self) -> Gate {
        let gate = Gate::builder().set("WATER_HISTORY_ADDRESS", self.address);
        gate.start().await
    }

    /// Drops every packet to and from this pod from here on.
    fn lose(&self, pod: &Recorder) {
        let (process, port) = (self.namespace.id(), pod.address.port());
        run(&format!(
            "nsenter --target {process} --net nft add rule ip nodes in tcp dport {port} drop; \
             add rule ip nodes out tcp sport {port} drop"
        ));
    }

    /// Stops dropping packets.
    fn find_again(&self) {
        let process = self.namespace.id();
        for chain in ["in", "out"] {
            run(&format!(
                "nsenter --target {process} --net nft flush chain ip nodes {chain}"
            ));
        }
    }

    fn behave(&self, behaviour: &Behaviour) {
        for pod in &self.pods {
            pod.behave(behaviour.clone());
        }
    }

    /// Returns the number of requests that each pod has seen.
    fn seen(&self) -> [usize; 2] {
        self.pods.each_ref().map(|pod| pod.seen().len())
    }

    /// Waits until the pods together have seen this number of requests.
    async fn until_seen(&self, count: usize) -> Result<()> {
        let seen = async || -> Result<()> {
            ensure!(
                self.seen().iter().sum::<usize>() == count,
                "{:?}",
                self.seen()
            );
            Ok(())
        };
        wait_until("the requests", SOON, seen).await
    }

    /// Makes the gate keep connections to each pod: four, if no attempt at one took long.
    async fn connect_to_both(&self, gate: &Gate, key: &Key) -> Result<(), Overdue> {
        let told = Arc::new(Notify::new());
        self.behave(&Behaviour::Wait(Arc::clone(&told)));
        let tell = async {
            let seen = self.until_seen(8).await;
            told.notify_waiters();
            seen
        };
        let (answers, all_seen) = tokio::join!(eight_at_once(gate, key), tell);
        all_served(&answers)?;
        all_seen.unwrap();
        let seen = self.seen();
        assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
        self.behave(&Behaviour::Answer(ok("application/json", "{}")));
        Ok(())
    }
}

/// Makes a link to another network namespace, where it is `eth0`, and returns its name here and an address for each of
/// its ends. They are of a network of four addresses, from the range reserved for tests of networks. The name has the
/// network's number, and Linux gives no name twice: a link has its network for itself.
fn link_to(process: u32) -> (String, [Ipv4Addr; 2]) {
    const NETWORKS: u32 = 1 << 14;
    for step in 0..NETWORKS {
        // Tests begin at different numbers, so that they seldom try each other's.
        let number = (process % NETWORKS + step) % NETWORKS;
        let link = format!("water{number}");
        match attempt(&format!(
            "ip link add {link} type veth peer name eth0 netns {process}"
        )) {
            Err(error) if error.to_string().contains("File exists") => continue,
            added => added.unwrap(),
        }
        let [high, low] = (u16::try_from(number).unwrap() * 4).to_be_bytes();
        let ends = [1, 2].map(|host| Ipv4Addr::new(198, 18, high, low + host));
        return (link, ends);
    }
    panic!("all {NETWORKS} networks are in use");
}

/// Opens a listener in another network namespace.
fn listen(process: u32, address: Ipv4Addr) -> tokio::net::TcpListener {
    let listening = thread::spawn(move || {
        let namespace = fs::File::open(format!("/proc/{process}/ns/net")).unwrap();
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        TcpListener::bind((address, 0)).unwrap()
    });
    let listener = listening.join().unwrap();
    listener.set_nonblocking(true).unwrap();
    tokio::net::TcpListener::from_std(listener).unwrap()
}

/// Runs a command that must not fail.
fn run(command: &str) {
    attempt(command).unwrap();
}

/// Runs a command; `nft` takes all text after it as one argument.
fn attempt(command: &str) -> Result<()> {
    let (words, rules) = match command.split_once(" nft ") {
        Some((words, rules)) => (format!("{words} nft"), Some(rules)),
        None => (command.to_owned(), None),
    };
    let mut words = words.split(' ').chain(rules);
    let mut program = Command::new(words.next().unwrap());
    let output = program.args(words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command}: {error}");
    Ok(())
}

async fn eight_at_once(gate: &Gate, key: &Key) -> Vec<(Answer, Duration)> {
    join_all((0..8).map(|_| timed(gate.get(TARGET, key)))).await
}

#[tokio::test]
async fn every_request_is_served_by_the_other_node_before_the_deadline() {
    in_time(loses_a_node).await;
}

async fn loses_a_node() -> Result<(), Overdue> {
    let service = Balanced::start().await;
    let gate = service.gate().await;
    let key = gate.key().await;
    service.connect_to_both(&gate, &key).await?;
    let [lost, other] = service.seen();
    service.lose(&service.pods[0]);
    all_served(&eight_at_once(&gate, &key).await)?;
    assert_eq!(service.seen(), [lost, other + 8]);
    Ok(())
}

#[tokio::test]
async fn where_every_node_is_gone_one_request_is_503_and_spares_those_that_would_have_been_next() {
    in_time(loses_both_nodes).await;
}

async fn loses_both_nodes() -> Result<(), Overdue> {
    let service = Balanced::start().await;
    let gate = service.gate().await;
    let key = gate.key().await;
    service.connect_to_both(&gate, &key).await?;
    let before = service.pods.each_ref().map(Recorder::seen);
    service.pods.iter().for_each(|pod| service.lose(pod));
    let answer = timed(gate.get(TARGET, &key)).await;
    decided(&answer)?;
    assert_eq!(problem(&answer.0), is(503, "upstream_unavailable"));
    gave_up_connecting(&gate).await;
    service.find_again();
    all_served(&eight_at_once(&gate, &key).await)?;
    let later = service.pods.iter().zip(before).flat_map(|(pod, before)| {
        let is_new = |seen: &Seen| before.iter().all(|old| old.connection != seen.connection);
        let later = pod.seen().split_off(before.len());
        later.iter().map(is_new).collect::<Vec<_>>()
    });
    let are_new: Vec<_> = later.collect();
    assert_eq!(are_new, [true; 8]);
    Ok(())
}

#[tokio::test]
async fn a_request_whose_node_vanishes_under_way_is_asked_again_of_the_other() {
    in_time(loses_a_node_under_way).await;
}

async fn loses_a_node_under_way() -> Result<(), Overdue> {
    let service = Balanced::start().await;
    let gate = service.gate().await;
    let key = gate.key().await;
    service.behave(&Behaviour::Silence);
    let vanish = async {
        service.until_seen(1).await.unwrap();
        let at = usize::from(service.seen()[0] == 0);
        service.lose(&service.pods[at]);
        let other = &service.pods[1 - at];
        other.behave(Behaviour::Answer(ok("application/json", "{}")));
    };
    let (answer, ()) = tokio::join!(timed(gate.get(TARGET, &key)), vanish);
    all_served(&[answer])
}
