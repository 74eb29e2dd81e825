//! Two versions of the portal answer the same readers for a while.

use std::hash::{DefaultHasher, Hasher};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use std::time::Duration;

use anyhow::ensure;
use futures::future::join_all;
use tokio::time::{interval, sleep};
use water_harness::wait_until;
use water_kit::{Browser, KeyStore, SOON};
use water_portal::Pages;

use crate::running::{Replica, Running};

/// Script that replaces one of another version, as the build has it.
const RELOAD: &str = include_str!("../../web/public/reload.js");
/// Times that the script loads the page again, and its first pause.
const RELOADS: usize = 12;
const RELOAD_AFTER: Duration = Duration::from_millis(250);
const READERS: usize = 20;
/// Pause between two pages of a reader.
const PACE: Duration = Duration::from_millis(200);

/// The pages of a version: its first page asks for its script by its name.
fn version(name: &str) -> Pages {
    let files = [
        (
            "index.html".to_owned(),
            format!("<script type=\"module\" src=\"/assets/index-{name}.js\"></script>"),
        ),
        (format!("assets/index-{name}.js"), format!("'{name}'")),
        ("reload.js".to_owned(), RELOAD.to_owned()),
    ];
    Pages::new(files.map(|(path, text)| (path, text.into_bytes()))).unwrap()
}

/// The ingress: it sends each request to one of the replicas that take some.
#[derive(Default)]
struct Ingress {
    replicas: Mutex<Vec<SocketAddr>>,
    turn: AtomicUsize,
}

impl Ingress {
    fn next(&self) -> SocketAddr {
        let replicas = self.replicas.lock().unwrap();
        // In no order: strict turns would send each page to one version and its script to the other.
        let mut mixed = DefaultHasher::new();
        mixed.write_usize(self.turn.fetch_add(1, Ordering::Relaxed));
        replicas[mixed.finish() as usize % replicas.len()]
    }

    fn add(&self, replica: &Replica) {
        self.replicas.lock().unwrap().push(replica.address);
    }

    /// Sends no new request to the replica; those under way do not change.
    fn leave(&self, replica: &Replica) {
        let mut replicas = self.replicas.lock().unwrap();
        replicas.retain(|address| *address != replica.address);
    }
}

/// Loads the first page with its script, as a browser does; returns how often it began again.
async fn load(reader: &mut Browser, ingress: &Ingress) -> usize {
    for reloads in 0..=RELOADS {
        reader.portal = ingress.next();
        let page = reader.get("/").await;
        assert_eq!(page.status, 200, "{page:?}");
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        let script = text.split('"').nth(3).unwrap();
        reader.portal = ingress.next();
        let fields = [("Sec-Fetch-Dest", "script")];
        let answer = reader.ask("GET", script, &fields, "").await;
        assert_eq!(answer.status, 200, "{script}: {answer:?}");
        if answer.body != RELOAD.as_bytes() {
            assert!(script.contains(answer.text().unwrap().trim_matches('\'')));
            return reloads;
        }
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        sleep(RELOAD_AFTER * (1 << reloads.min(4))).await;
    }
    panic!(
        "the page was loaded {RELOADS} times again and asked for a script that is gone each time"
    );
}

#[tokio::test]
async fn fault_46_a_rollout_and_its_way_back_fail_no_request_of_twenty_signed_in_readers() {
    // Longer than any machine needs to answer what is under way.
    let drain = [("WATER_DRAIN_SECONDS", "600")];
    let portal = Running::start_with(&KeyStore::new().await, &drain).await;
    let ingress = Ingress::default();
    let [one, two] = [
        portal.another(version("n")).await,
        portal.another(version("n")).await,
    ];
    ingress.add(&one);
    ingress.add(&two);
    let mut readers = Vec::new();
    for _ in 0..READERS {
        // Ten sessions a person at most: each reader is somebody else.
        readers.push(portal.somebody().await);
    }
    let (rounds, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let reading = join_all(readers.iter_mut().map(async |reader| {
        let mut reloads = 0;
        // Slower than a session may ask.
        let mut pace = interval(PACE);
        while !over.load(Ordering::Relaxed) {
            pace.tick().await;
            reloads += load(reader, &ingress).await;
            reader.portal = ingress.next();
            assert!(reader.is_signed_in().await);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        reloads
    }));
    let rolling = async {
        let mut running = [one, two];
        for to in ["n+1", "n"] {
            for place in &mut running {
                let next = portal.another(version(to)).await;
                ingress.add(&next);
                read_on(&rounds).await;
                let old = std::mem::replace(place, next);
                old.asked_to_stop();
                ingress.leave(&old);
                read_on(&rounds).await;
                assert_eq!(old.end().await, 0, "connections were cut");
            }
        }
        over.store(true, Ordering::Relaxed);
        // They answer until the readers have ended.
        running
    };
    let (reloads, _running) = tokio::join!(reading, rolling);
    assert!(
        reloads.iter().sum::<usize>() > 0,
        "no page met two versions"
    );
}

/// Waits until each reader has been served some more.
async fn read_on(rounds: &AtomicUsize) {
    let before = rounds.load(Ordering::Relaxed);
    let read = async || {
        let read = rounds.load(Ordering::Relaxed) - before;
        ensure!(read >= 3 * READERS, "{read} rounds");
        Ok(())
    };
    wait_until("the readers", SOON, read).await.unwrap();
}

#[tokio::test]
async fn fault_46_a_sign_in_that_one_version_began_ends_at_the_other() {
    let portal = Running::start().await;
    let next = portal.another(version("n+1")).await;
    let mut browser = portal.browser();
    let begun = browser.begin("/docs").await;
    browser.portal = next.address;
    let token = portal.key.sign(&portal.claims(&begun.nonce)).unwrap();
    assert_eq!(browser.finish(&portal, &begun, &token).await.status, 303);
    browser.portal = portal.browser().portal;
    assert!(browser.is_signed_in().await);
}
