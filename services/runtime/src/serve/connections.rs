//! Open connections of a process: their bounds, and the choice of the one that is closed for another.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::watch::{Reason, Watch};

/// Deadlines and bounds of connections; the defaults are the gate's.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Time from a head's first byte to its end.
    pub head: Duration,
    /// Time from the end of an answer, or from accepting, to the next request's first byte. A proxy that
    /// keeps its connections longer now and then sends a request into one that we close: nginx keeps them for
    /// 60 s, Traefik for 90 s. Envoy keeps them for an hour, and must be set to less.
    pub idle: Duration,
    /// Time from the first write that found the socket full until the answer is out.
    pub write: Duration,
    /// Time from closing our side until the peer closes its own.
    pub linger: Duration,
    /// Time from accepting to the first request, once draining has begun.
    pub first_request: Duration,
    /// Connections in all; at the cap the longest idle one is closed, or else the slowest.
    pub total: usize,
    /// Connections from one IPv4 address or IPv6 /64.
    pub per_peer: usize,
    /// Peers without that bound: proxies that carry the connections of many.
    pub trusted: Vec<IpNet>,
    /// Whether a peer that has closed its sending side still gets its answer. Where it does not, its leaving
    /// ends the work on its request.
    pub half_close: bool,
    /// Whether requests may have bodies. Where none may, a target with a `#` is answered 400: such targets
    /// are found by their lines, and a body can have lines like theirs.
    pub bodies: bool,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(95),
            write: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            first_request: Duration::from_secs(1),
            total: 4096,
            per_peer: 256,
            trusted: Vec::new(),
            half_close: true,
            bodies: true,
        }
    }
}

/// The open connections of all accept loops of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: ConnectionLimits,
    epoch: Instant,
    /// Set once, when the process stops.
    close_after_answers: AtomicBool,
    table: Mutex<Table>,
    open: Gauge,
    closed: Family<ClosedLabels, Counter>,
}

#[derive(Debug, Default)]
struct Table {
    /// Number of the last connection.
    last: u64,
    /// Changed by [`Connections::admit`], by eviction, and when an [`Admission`] is dropped.
    open: HashMap<u64, (IpAddr, Arc<Watch>)>,
    /// Open connections by origin; an origin without any has no entry.
    origins: HashMap<IpAddr, usize>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct ClosedLabels {
    reason: Reason,
}

/// A connection's place; given back when it is dropped.
pub(super) struct Admission {
    number: u64,
    connections: Connections,
    pub(super) watch: Arc<Watch>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(ConnectionLimits::default())
    }
}

impl Connections {
    /// Makes a table without connections.
    pub fn new(limits: ConnectionLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            epoch: Instant::now(),
            close_after_answers: AtomicBool::new(false),
            table: Mutex::default(),
            open: Gauge::default(),
            closed: Family::default(),
        }))
    }

    /// Adds `connections_open` and `connections_closed_total{reason}` (those that we closed).
    pub fn register(&self, metrics: &mut Registry) {
        let (open, closed) = (self.0.open.clone(), self.0.closed.clone());
        metrics.register("connections_open", "Open client connections", open);
        metrics.register(
            "connections_closed",
            "Connections closed or refused by us",
            closed,
        );
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.table().open.len()
    }

    /// Returns a place for a new connection, made if need be; none when its origin has too many or every
    /// place is at work.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<Admission> {
        let (limits, origin) = (&self.0.limits, origin(peer));
        let mut table = self.table();
        let trusted = limits
            .trusted
            .iter()
            .any(|network| network.contains(&peer.to_canonical()));
        if !trusted
            && table
                .origins
                .get(&origin)
                .is_some_and(|count| *count >= limits.per_peer)
        {
            self.note(Reason::PeerLimit);
            return None;
        }
        if table.open.len() >= limits.total && !self.evict(&mut table) {
            self.note(Reason::Full);
            return None;
        }
        table.last += 1;
        let number = table.last;
        let watch = Arc::new(Watch::new(self.0.epoch));
        table.open.insert(number, (origin, Arc::clone(&watch)));
        *table.origins.entry(origin).or_default() += 1;
        self.0.open.set(table.open.len() as i64);
        drop(table);
        Some(Admission {
            number,
            connections: self.clone(),
            watch,
        })
    }

    /// Closes the connection that has been idle longest, or else is slowest; false if all are at work.
    pub(super) fn close_longest_idle(&self) -> bool {
        self.evict(&mut self.table())
    }

    /// Adds `Connection: close` to every answer from then on.
    pub(super) fn close_after_answers(&self) {
        self.0.close_after_answers.store(true, Relaxed);
    }

    /// Asks every connection to end after the request under way.
    pub(super) fn drain(&self) {
        self.close_after_answers();
        self.table()
            .open
            .values()
            .for_each(|(_, watch)| watch.ask_drain());
    }

    /// Closes the connection that is needed least.
    fn evict(&self, table: &mut Table) -> bool {
        let open = table.open.iter();
        let places = open.filter_map(|(number, (_, watch))| Some((watch.gives_way()?, *number)));
        let Some((_, number)) = places.min() else {
            return false;
        };
        if let Some(watch) = table.remove(number) {
            watch.ask_close();
        }
        true
    }

    fn note(&self, reason: Reason) {
        self.0.closed.get_or_create(&ClosedLabels { reason }).inc();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Frees a place; does nothing if it was freed before.
    fn remove(&mut self, number: u64) -> Option<Arc<Watch>> {
        let (origin, watch) = self.open.remove(&number)?;
        if let Some(count) = self.origins.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                self.origins.remove(&origin);
            }
        }
        Some(watch)
    }
}

impl Admission {
    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.connections.0.limits
    }

    pub(super) fn close_after_answer(&self) -> bool {
        self.connections.0.close_after_answers.load(Relaxed)
    }

    pub(super) fn note(&self, reason: Reason) {
        self.connections.note(reason);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.remove(self.number);
        self.connections.0.open.set(table.open.len() as i64);
    }
}

/// Returns the origin that counts as one peer: an IPv4 address, or an IPv6 /64, which one customer owns as a
/// whole.
fn origin(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}
