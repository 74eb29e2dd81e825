//! A declaration of which no answer came may be carried out later, what was read of the cluster may be older than a
//! claim, and what Redis holds older than what a former leader has seen. Nothing is decided before each has become
//! impossible.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use water_domain::{KeyHash, Plan};
use water_harness::{Network, Proxy, Redis, wait_until};
use water_keystore::{
    ConnectionSettings, Declaration, Entry, KeyState, Origin, Owner, OwnerSnapshot, Position,
    Record, Writer,
};
use water_operator::directories::{
    CacheEpoch, DesiredState, Directories, DirectoryError, Location, Namespaces, OpenDirectory,
};
use water_operator::lease::Election;
use water_operator::lease::positions::Positions;
use water_operator::metrics::Metrics;
use water_resources::api_key::ApiName;

use crate::Result;
use crate::world::{API, PATIENCE, World};

/// A cluster that declares nothing, and counts how often the caches had to catch up with it.
#[derive(Default)]
struct Nothing {
    count: AtomicU64,
    /// Notice upon which its API server refuses to say what there is; `None`: it answers at once.
    refusal: Option<Arc<Notify>>,
}

impl Nothing {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl DesiredState for Nothing {
    fn caught_up(&self) -> BoxFuture<'_, kube::Result<()>> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let Some(refusal) = &self.refusal else {
            return ready(Ok(())).boxed();
        };
        refusal
            .notified()
            .map(|()| Err(kube::Error::LinesCodecMaxLineLengthExceeded))
            .boxed()
    }

    fn plans(&self, _: &ApiName, stored: Vec<Plan>) -> Vec<Plan> {
        stored
    }

    fn namespaces<'a>(&'a self, _: &'a ApiName) -> BoxFuture<'a, kube::Result<Namespaces>> {
        ready(Ok(Namespaces::new())).boxed()
    }

    fn is_to_be_carried(&self, _: &ApiName) -> bool {
        false
    }

    fn entries(&self, _: &ApiName, _: &Namespaces, _: &[Entry]) -> Vec<Entry> {
        Vec::new()
    }
}

type Snapshot = anyhow::Result<(Writer, OwnerSnapshot, Position)>;

/// Checks that what was read of the cluster was older than the claim.
fn check_is_outdated(read: Snapshot) -> anyhow::Result<()> {
    let error = read.err().context("it was believed")?;
    let is_outdated = matches!(error.downcast_ref(), Some(DirectoryError::ReadBefore));
    ensure!(is_outdated, "{error:?}");
    Ok(())
}

/// Declaration of one active or suspended key of an ApiKey, decided at its change `number`.
fn declaration(number: u64, state: KeyState) -> anyhow::Result<Declaration> {
    let hash: KeyHash = "ab".repeat(32).parse()?;
    let record = Record {
        key_id: hash.key_id(),
        account: "acme".parse()?,
        plan: "Enterprise".parse()?,
        state,
        not_before: None,
        expires: None,
        retires: None,
        revision: 0,
    };
    Ok(Declaration {
        owner: Owner {
            uid: "u".into(),
            namespace: "team".into(),
            name: "acme".into(),
        },
        number,
        records: BTreeMap::from([(hash, record)]),
        withdrawn: BTreeSet::new(),
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin: Origin::Generated,
        is_last: false,
    })
}

/// The directories of a leader to which no other one has left anything.
async fn leader(world: &World) -> anyhow::Result<Directories> {
    successor(world, Positions::default()).await
}

/// The directories of a leader to which the former one has left these positions: the Lease names it.
async fn successor(world: &World, left: Positions) -> anyhow::Result<Directories> {
    world.apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "water-operator" }, "spec": { "holderIdentity": "leader" },
    }))?;
    let kubeconfig = Kubeconfig::from_yaml(world.cluster.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let election = Election::new(client, &world.namespace, "leader".into());
    Ok(Directories::new(election, Metrics::default(), left).0)
}

/// The world's directory, on the Redis at that address.
fn open(
    directories: &Directories,
    world: &World,
    redis: SocketAddr,
) -> anyhow::Result<Arc<OpenDirectory>> {
    let place = Location {
        settings: ConnectionSettings::new(&format!("redis://{redis}"), None)?,
        fingerprint: String::new(),
        store: String::new(),
        gate_store: Some(String::new()),
        is_behind: false,
        owner: "namespace".into(),
        api: "api".into(),
        take_over: None,
    };
    let api = ApiName {
        namespace: world.namespace.clone(),
        name: API.into(),
    };
    Ok(directories.open(&api, place)?)
}

/// Reads the directory's keys of an ApiKey, of which the cluster was read in that epoch; claims are made meanwhile,
/// and waited for, however long a busy machine takes.
async fn snapshot(
    directories: &Directories,
    open: &OpenDirectory,
    cluster: &Nothing,
    epoch: CacheEpoch,
) -> Snapshot {
    let claims = async {
        loop {
            let _ = directories.next_claim(open, cluster).await;
        }
    };
    let read = wait_until("the end of a claim", PATIENCE, async || {
        let read = directories.owner_snapshot(open, epoch, "u", &Origin::Generated, &[]);
        match read.await {
            Err(DirectoryError::BeingClaimed) => Err(DirectoryError::BeingClaimed.into()),
            read => Ok(read),
        }
    });
    tokio::select! {
        read = read => Ok(read??),
        never = claims => never,
    }
}

#[tokio::test]
async fn what_was_read_before_anothers_claim_was_answered_decides_nothing() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("claims", &redis.url()).await?;
    let (first, second) = (leader(&world).await?, leader(&world).await?);
    let cluster = Nothing::default();
    let at = open(&first, &world, redis.address())?;
    let of_first = async |epoch| snapshot(&first, &at, &cluster, epoch).await;
    let before = first.epoch();
    check_is_outdated(of_first(before).await).context("the first claim")?;
    let since = first.epoch();
    of_first(since).await?;
    assert_eq!(cluster.count(), 1);
    // Another leader's claim, after which this one's caches may be behind again.
    let theirs = open(&second, &world, redis.address())?;
    let claim = snapshot(&second, &theirs, &cluster, second.epoch());
    check_is_outdated(claim.await).context("another leader's claim")?;
    check_is_outdated(of_first(since).await).context("a claim after another's")?;
    assert_eq!(cluster.count(), 3);
    of_first(first.epoch()).await?;
    Ok(())
}

#[tokio::test]
async fn a_declaration_without_an_answer_gives_its_claim_up_before_anything_is_decided() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("doubts", &redis.url()).await?;
    let proxy = Proxy::before(([127, 0, 0, 1], redis.port()).into()).await?;
    let directories = leader(&world).await?;
    let open = open(&directories, &world, proxy.address())?;
    let cluster = Nothing::default();
    let snapshot = async || snapshot(&directories, &open, &cluster, directories.epoch()).await;

    check_is_outdated(snapshot().await)?;
    let (writer, seen, _) = snapshot().await?;
    let suspended = declaration(seen.number, KeyState::Suspended)?;
    directories.declare(&open, &writer, &suspended).await?;
    let (same, seen, _) = snapshot().await?;
    assert_eq!(same.term(), writer.term(), "an answer came");

    // Resumed; the pass ends at its deadline, and its command is still on its way.
    proxy.set(Network::BlackHole);
    let resumed = declaration(seen.number, KeyState::Active)?;
    let lost = directories.declare(&open, &writer, &resumed);
    assert!(timeout(Duration::from_millis(100), lost).await.is_err());
    proxy.set(Network::Good);

    let (next, seen, _) = snapshot().await?;
    assert!(next.term() > writer.term(), "term {}", next.term());
    // Nothing comes after what was seen: the same number holds, and the old writer is refused.
    let late = directories.declare(&open, &writer, &resumed).await;
    let late = late.err().context("a refusal")?;
    assert!(late.to_string().contains("later leader"), "{late}");
    let (next, again, _) = snapshot().await?;
    assert_eq!((again.number, &again.records), (seen.number, &seen.records));
    let suspended = declaration(again.number, KeyState::Suspended)?;
    directories.declare(&open, &next, &suspended).await?;
    // Its own claims in a row show no other leader.
    assert_eq!(cluster.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_fails_after_nobody_waits_for_it_is_reported_to_those_who_come_later() -> Result
{
    let redis = Redis::start().await?;
    let world = World::with_redis("long-claims", &redis.url()).await?;
    let directories = leader(&world).await?;
    let open = open(&directories, &world, redis.address())?;
    let refusal = Arc::<Notify>::default();
    let cluster = Nothing {
        refusal: Some(Arc::clone(&refusal)),
        ..Nothing::default()
    };
    let claims = async {
        loop {
            let _ = directories.next_claim(&open, &cluster).await;
        }
    };
    let read = async || {
        let read =
            directories.owner_snapshot(&open, directories.epoch(), "u", &Origin::Generated, &[]);
        read.await.err()
    };
    let reported = async {
        let first = read().await;
        ensure!(
            matches!(first, Some(DirectoryError::BeingClaimed)),
            "{first:?}"
        );
        refusal.notify_one();
        wait_until("the failure", PATIENCE, async || {
            let later = read().await;
            let cause = later.as_ref().map(DirectoryError::cause);
            ensure!(matches!(cause, Some(DirectoryError::Kube(_))), "{later:?}");
            Ok(())
        })
        .await
    };
    tokio::select! {
        reported = reported => reported,
        never = claims => never,
    }
}

/// Generation of the directory once a leader to which these positions were left may decide on it, and the positions
/// that it leaves.
async fn believed(
    world: &World,
    redis: &Redis,
    left: Positions,
) -> anyhow::Result<(u64, Positions)> {
    let directories = successor(world, left).await?;
    let open = open(&directories, world, redis.address())?;
    let cluster = Nothing::default();
    let snapshot = async || snapshot(&directories, &open, &cluster, directories.epoch()).await;
    check_is_outdated(snapshot().await)?;
    let (_, _, position) = snapshot().await?;
    Ok((position.generation, directories.positions()))
}

#[tokio::test]
async fn a_directory_before_the_position_that_was_left_is_rebuilt_once_and_no_other_is() -> Result {
    let redis = Redis::start().await?;
    let world = World::with_redis("left-positions", &redis.url()).await?;
    let (first, left) = believed(&world, &redis, Positions::default()).await?;
    let (mut before, left) = believed(&world, &redis, left).await?;
    assert_eq!(before, first);

    let no_room = Positions::decode(r#"{"positions":{},"isCut":true}"#)?;
    // The year 2100: the rebuild does not reach it either.
    let mut ahead = left;
    let generation = 4_102_444_800_000;
    ahead.put("", Position { generation, seq: 0 });
    for left in [no_room, ahead] {
        let (rebuilt, leaves) = believed(&world, &redis, left).await?;
        assert!(rebuilt > before && rebuilt < generation, "{rebuilt}");
        let (again, _) = believed(&world, &redis, leaves).await?;
        assert_eq!(again, rebuilt);
        before = rebuilt;
    }
    Ok(())
}
