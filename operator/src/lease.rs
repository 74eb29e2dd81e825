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

/// Positions of the key directories at the time of a call.
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
mod tests;
