//! Leader election by one Lease, as client-go does it: at most one operator leads at a time.
//!
//! A holder renews every [`RETRY`]. A candidate takes the Lease over when the record has not changed for
//! [`DURATION`] of the candidate's own monotonic time, so that no two machines' clocks are compared. Every write is a PUT
//! with the resourceVersion that was read: of two takers one is refused. The Lease fences nothing:
//! writes to Redis carry the directory's own term. It carries the [`positions`] of the key directories from one leader
//! to the next.

pub mod positions;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::backoff::{chance, spread};
use crate::clock;
use positions::{ANNOTATION, Positions};

/// Time after which a record that did not change is free.
pub const DURATION: Duration = Duration::from_secs(15);
/// Time after which a leader that could not renew stops leading: before anybody else may begin.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Longest try to renew, half of the deadline, so that one lost answer leaves time for another.
const ATTEMPT: Duration = Duration::from_secs(RENEW_DEADLINE.as_secs() / 2);
/// Interval between two renewals.
pub const RETRY: Duration = Duration::from_secs(2);
/// Interval between two checks of a candidate: a lease that was released is taken this soon.
const LOOK: Duration = Duration::from_millis(500);
/// The Lease's name.
pub const NAME: &str = "water-operator";

/// A candidate for leadership.
#[derive(Clone)]
pub struct Election {
    api: Api<Lease>,
    identity: String,
}

/// A leadership that was won. Its holder renews it; dropping it gives nothing back.
pub struct Leadership {
    election: Election,
    /// Lease as last written, with its resourceVersion.
    lease: Lease,
    renewed: Instant,
    /// Source of the positions that each write leaves; `None`: those in the record stay.
    positions: Option<PositionSource>,
}

type PositionSource = Box<dyn Fn() -> Positions + Send + Sync>;

/// The version of a record that is somebody else's, and the time since which it has not changed.
type ObservedLease = (Option<String>, Instant);

/// Reason of a lease that is another's, or nobody's.
const TAKEN: &str = "the lease names another leader";
/// Reason of a lease that is ours, and older than it was.
const WENT_BACK: &str = "the API server was restored from an older state: all is read anew";

impl Election {
    /// A candidacy under `identity`, which no other process has.
    pub fn new(client: Client, namespace: &str, identity: String) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            identity,
        }
    }

    /// Waits until the API server lets this candidate read the Lease: it can take over from then on.
    pub async fn reachable(&self) {
        while let Err(error) = self.is_held().await {
            warn!(error = %error, "cannot read the lease");
            sleep(spread(RETRY, chance())).await;
        }
    }

    /// Waits until this candidate leads.
    pub async fn win(&self) -> Leadership {
        let mut seen: Option<ObservedLease> = None;
        loop {
            let asked = Instant::now();
            match timeout(RENEW_DEADLINE, self.attempt(&mut seen)).await {
                Ok(Ok(Some(lease))) => {
                    info!(identity = self.identity, "leading");
                    return Leadership {
                        election: self.clone(),
                        lease,
                        renewed: asked,
                        positions: None,
                    };
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => warn!(error = %error, "cannot read or take the lease"),
                Err(_) => warn!("the API server does not answer about the lease"),
            }
            sleep(spread(LOOK, chance())).await;
        }
    }

    /// Whether a fresh read shows this candidate as the holder.
    pub async fn is_held(&self) -> kube::Result<bool> {
        let lease = self.api.get_opt(NAME).await?;
        Ok(lease.is_some_and(|lease| self.holds(&lease)))
    }

    async fn attempt(&self, seen: &mut Option<ObservedLease>) -> kube::Result<Option<Lease>> {
        let Some(lease) = self.api.get_opt(NAME).await? else {
            let record = self.record(None);
            return written(self.api.create(&PostParams::default(), &record).await);
        };
        if !self.is_free(&lease, seen) {
            return Ok(None);
        }
        self.put(&lease).await
    }

    fn is_free(&self, lease: &Lease, seen: &mut Option<ObservedLease>) -> bool {
        if holder(lease).is_none_or(str::is_empty) || self.holds(lease) {
            return true;
        }
        match seen {
            Some((version, since)) if *version == lease.metadata.resource_version => {
                since.elapsed() >= DURATION
            }
            _ => {
                *seen = Some((lease.metadata.resource_version.clone(), Instant::now()));
                false
            }
        }
    }

    fn holds(&self, lease: &Lease) -> bool {
        holder(lease) == Some(self.identity.as_str())
    }

    async fn put(&self, lease: &Lease) -> kube::Result<Option<Lease>> {
        let (params, record) = (PostParams::default(), self.record(Some(lease)));
        written(self.api.replace(NAME, &params, &record).await)
    }

    /// The record that names this candidate and replaces `live`.
    fn record(&self, live: Option<&Lease>) -> Lease {
        let now = clock::shown_time();
        let Lease { mut metadata, spec } = live.cloned().unwrap_or_default();
        metadata.name = Some(NAME.into());
        let spec = spec.unwrap_or_default();
        let (acquire_time, lease_transitions) = match live {
            Some(live) if self.holds(live) => (spec.acquire_time, spec.lease_transitions),
            Some(_) => {
                let transitions = spec.lease_transitions.unwrap_or(0) + 1;
                (Some(now.clone()), Some(transitions))
            }
            None => (Some(now.clone()), Some(0)),
        };
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time,
                renew_time: Some(now),
                lease_transitions,
                ..LeaseSpec::default()
            }),
        }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

/// Returns the lease that was written; `None`: the write was refused, since somebody else was faster.
fn written(result: kube::Result<Lease>) -> kube::Result<Option<Lease>> {
    match result {
        Ok(lease) => Ok(Some(lease)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

impl Leadership {
    /// The positions that the former leader has left. Without them a directory that looks whole is believed.
    pub fn left_positions(&self) -> Positions {
        let annotations = self.lease.metadata.annotations.as_ref();
        let Some(annotation) = annotations.and_then(|all| all.get(ANNOTATION)) else {
            info!(
                "the lease has no positions of key directories: those that look whole are believed"
            );
            return Positions::default();
        };
        Positions::decode(annotation).unwrap_or_else(|error| {
            warn!(
                error = %error,
                "the lease's positions of key directories cannot be read: those that look whole are believed"
            );
            Positions::default()
        })
    }

    /// Lets each renewal, and the release, leave the positions that `source` returns then.
    pub fn carry(&mut self, source: impl Fn() -> Positions + Send + Sync + 'static) {
        self.positions = Some(Box::new(source));
    }

    /// Notes the positions in the record that is written next.
    fn note_positions(&mut self) {
        if let Some(source) = &self.positions {
            let annotations = self.lease.metadata.annotations.get_or_insert_default();
            annotations.insert(ANNOTATION.to_owned(), source().encode());
        }
    }

    /// Renews until that fails for [`RENEW_DEADLINE`] or the record names somebody else.
    pub async fn lost(&mut self) {
        let mut asked = self.renewed;
        loop {
            // From the beginning of the last attempt: one that was not answered has taken longer than the interval.
            let pause = RETRY.saturating_sub(asked.elapsed());
            sleep(pause.min(self.left())).await;
            let left = self.left();
            if left.is_zero() {
                return warn!("the lease was not renewed in time");
            }
            asked = Instant::now();
            match timeout(left.min(ATTEMPT), self.renew()).await {
                Ok(Ok(None)) => self.renewed = asked,
                Ok(Ok(Some(why))) => return warn!("{why}"),
                Ok(Err(error)) => warn!(error = %error, "cannot renew the lease"),
                Err(_) => warn!("the API server does not answer about the lease"),
            }
        }
    }

    /// Time until this leader has to stop, unless it renews.
    fn left(&self) -> Duration {
        RENEW_DEADLINE.saturating_sub(self.renewed.elapsed())
    }

    /// Gives up the lease, so that a successor need not wait until it runs out.
    pub async fn release(mut self) {
        match timeout(RETRY, self.give_up()).await {
            Ok(Ok(())) => info!("lease released"),
            Ok(Err(error)) => warn!(error = %error, "cannot release the lease"),
            Err(_) => warn!("cannot release the lease: the API server does not answer"),
        }
    }

    async fn give_up(&mut self) -> kube::Result<()> {
        loop {
            self.note_positions();
            let mut free = self.lease.clone();
            if let Some(spec) = &mut free.spec {
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
            }
            let api = &self.election.api;
            let released = api.replace(NAME, &PostParams::default(), &free).await;
            if written(released)?.is_some() {
                return Ok(());
            }
            // A renewal that was under way has changed the version.
            match api.get_opt(NAME).await? {
                Some(live) if self.election.holds(&live) => self.lease = live,
                _ => return Ok(()),
            }
        }
    }

    /// Renews once, or returns why this leadership is over.
    async fn renew(&mut self) -> kube::Result<Option<&'static str>> {
        if self.put().await? {
            return Ok(None);
        }
        // Somebody wrote the object: a taker, or an annotation by hand.
        let live = self.election.api.get_opt(NAME).await?;
        let Some(live) = live.filter(|live| self.election.holds(live)) else {
            return Ok(Some(TAKEN));
        };
        if is_earlier(&live, &self.lease) {
            return Ok(Some(WENT_BACK));
        }
        self.lease = live;
        Ok((!self.put().await?).then_some(TAKEN))
    }

    /// Writes the record; returns whether the API server accepted it.
    async fn put(&mut self) -> kube::Result<bool> {
        self.note_positions();
        let Some(lease) = self.election.put(&self.lease).await? else {
            return Ok(false);
        };
        self.lease = lease;
        Ok(true)
    }
}

/// Whether the API server has `live` from before it answered with `written`: etcd was restored, and
/// watches that ask for changes since then would stay silent. Versions of one kind are numbers that
/// grow (KEP-5504).
fn is_earlier(live: &Lease, written: &Lease) -> bool {
    let version = |lease: &Lease| lease.resource_version()?.parse::<u128>().ok();
    let versions = version(live).zip(version(written));
    versions.is_some_and(|(live, written)| live < written)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use hyper::http::{Request, Response};
    use kube::api::ObjectMeta;
    use kube::client::Body;
    use tower::service_fn;
    use water_keystore::Position;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_was_not_answered_is_tried_again_without_a_pause() {
        let begun = Instant::now();
        let times = Arc::<Mutex<Vec<u64>>>::default();
        let asked = Arc::clone(&times);
        let server = service_fn(move |_: Request<Body>| {
            asked.lock().unwrap().push(begun.elapsed().as_secs());
            pending::<Result<Response<Body>, kube::Error>>()
        });
        let mut leadership = Leadership {
            election: Election::new(Client::new(server, "team"), "team", "operator-0".to_owned()),
            lease: Lease::default(),
            renewed: begun,
            positions: None,
        };
        leadership.lost().await;
        assert_eq!(*times.lock().unwrap(), [2, 7]);
        assert_eq!(begun.elapsed(), RENEW_DEADLINE);
    }

    /// A leadership whose Lease has an annotation; the API server takes every write, and these are returned.
    fn annotated(name: &str, value: &str) -> (Leadership, Arc<Mutex<Vec<Lease>>>) {
        let written = Arc::<Mutex<Vec<Lease>>>::default();
        let writes = Arc::clone(&written);
        let server = service_fn(move |request: Request<Body>| {
            let writes = Arc::clone(&writes);
            async move {
                let body = request.into_body().collect_bytes().await?;
                let lease = serde_json::from_slice(&body).unwrap();
                writes.lock().unwrap().push(lease);
                Ok::<_, kube::Error>(Response::new(Body::from(body)))
            }
        });
        let mut lease = of_version(Some("7"));
        lease.metadata.annotations = Some([(name.to_owned(), value.to_owned())].into());
        let leadership = Leadership {
            election: Election::new(Client::new(server, "team"), "team", "operator-0".to_owned()),
            lease,
            renewed: Instant::now(),
            positions: None,
        };
        (leadership, written)
    }

    fn at(seq: u64) -> Positions {
        let mut positions = Positions::default();
        let position = Position { generation: 7, seq };
        positions.put("store", position);
        positions
    }

    #[tokio::test]
    async fn each_renewal_and_the_release_leave_the_positions_beside_annotations_of_others() {
        let (mut leadership, written) = annotated("example.org/note", "kept");
        let seq = AtomicU64::new(1);
        leadership.carry(move || at(seq.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(leadership.renew().await.unwrap(), None);
        leadership.release().await;
        let written = written.lock().unwrap();
        assert_eq!(written.len(), 2);
        for (lease, seq) in written.iter().zip(1..) {
            let annotations = lease.annotations();
            assert_eq!(annotations["example.org/note"], "kept");
            assert_eq!(annotations[ANNOTATION], at(seq).encode());
        }
        let holders = [holder(&written[0]), holder(&written[1])];
        assert_eq!(holders, [Some("operator-0"), Some("")]);
    }

    #[tokio::test]
    async fn who_knows_no_positions_keeps_those_that_were_left() {
        let left = at(3).encode();
        let (leadership, written) = annotated(ANNOTATION, &left);
        assert_eq!(leadership.left_positions(), at(3));
        leadership.release().await;
        assert_eq!(written.lock().unwrap()[0].annotations()[ANNOTATION], left);
    }

    #[tokio::test]
    async fn positions_that_are_missing_or_cannot_be_read_are_none() {
        for (name, value) in [("example.org/note", "kept"), (ANNOTATION, "{")] {
            let (leadership, _) = annotated(name, value);
            assert_eq!(leadership.left_positions(), Positions::default(), "{name}");
        }
    }

    fn of_version(version: Option<&str>) -> Lease {
        Lease {
            metadata: ObjectMeta {
                resource_version: version.map(Into::into),
                ..ObjectMeta::default()
            },
            ..Lease::default()
        }
    }

    #[test]
    fn a_lease_is_earlier_if_its_version_is_the_smaller_number() {
        for (live, written, expected) in [
            (Some("9"), Some("10"), true),
            (Some("10"), Some("10"), false),
            // Somebody has annotated it since.
            (Some("11"), Some("10"), false),
            (Some("100"), Some("99"), false),
            // Longer than 64 bits.
            (
                Some("18446744073709551616"),
                Some("18446744073709551617"),
                true,
            ),
            // What is no number says nothing.
            (Some("nine"), Some("10"), false),
            (Some("9"), Some("ten"), false),
            (None, Some("10"), false),
            (Some("9"), None, false),
            (None, None, false),
        ] {
            let found = is_earlier(&of_version(live), &of_version(written));
            assert_eq!(found, expected, "{live:?} after {written:?}");
        }
    }
}
