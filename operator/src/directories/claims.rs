//! Claims of a directory, each followed by a rebuild where Redis does not hold it whole.
//!
//! They run concurrently with passes, one after the other, and take as long as they take: with many ApiKeys or a slow
//! API server longer than a pass may. A pass waits a moment for the outcome, and is repeated.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::info;
use water_keystore::{Contents, Position, Writer};

use super::duties::Duty;
use super::health::{Damage, damage, is_whole};
use super::{CacheEpoch, DesiredState, Directories, DirectoryError, OpenDirectory};
use crate::context::Context;
use crate::watches::Patience;

/// Age of a claim up to which a pass waits for it: enough for most.
const AWAITED: Duration = Duration::from_secs(2);
/// Statuses show that a claim is under way once it has taken this long.
pub const REPORTED_AFTER: Duration = Duration::from_secs(15);

/// Outcome of a claim, for all who wait for it.
pub(super) type ClaimOutcome = Result<(), Arc<DirectoryError>>;

/// Claims a directory whenever a pass needs it, or damage was found.
pub async fn follow(open: &OpenDirectory, context: &Context) -> Infallible {
    let mut patience = Patience::default();
    loop {
        let (began, claimed) = context.directories.next_claim(open, context).await;
        let is_rebuilt = claimed.is_ok();
        let is_news = if is_rebuilt || open.known().damage.is_some() {
            let rebuilt = claimed.map_err(DirectoryError::Unclaimed);
            open.note_duty(Duty::Rebuild, &rebuilt, &context.metrics)
        } else {
            false
        };
        let was_awaited = began.elapsed() < AWAITED;
        if is_news || !was_awaited {
            context.revisit_api(&open.api);
        }
        if !was_awaited {
            context.revisit_unsettled_keys_of(&open.api);
        }
        if is_rebuilt {
            patience.reset();
        } else {
            // Each pass asks for another.
            sleep(patience.pause()).await;
        }
    }
}

impl OpenDirectory {
    /// The writer, unless a claim is due.
    fn writer(&self) -> Option<Writer> {
        let known = self.known();
        // No earlier command of it can be carried out any more.
        let is_trusted = |writer: &&Writer| writer.term() > known.unanswered;
        let writer = known.writer.as_ref().filter(is_trusted);
        writer.filter(|_| known.found.is_none()).cloned()
    }

    /// The writer of the last claim, or of one that begins now.
    pub(super) async fn claimed(&self) -> Result<Writer, DirectoryError> {
        self.answers()?;
        if let Some(writer) = self.writer() {
            return Ok(writer);
        }
        let mut claims = self.claims.subscribe();
        let since = self.want_claim();
        // The outcome, or that of the claim before. The sender is this directory's own.
        let _ = timeout_at(since + AWAITED, claims.changed()).await;
        let last = claims.borrow_and_update().clone();
        last.map_err(DirectoryError::Unclaimed)?;
        self.writer().ok_or(DirectoryError::BeingClaimed)
    }

    /// Fails where a pass over an ApiKey would read everything in vain, since a claim takes long, and report nothing.
    pub fn is_readable_soon(&self, is_settled: bool) -> Result<(), DirectoryError> {
        let is_silent = |long| long >= AWAITED && (is_settled || long < REPORTED_AFTER);
        let is_in_vain = self.claiming().is_some_and(is_silent)
            && self.writer().is_none()
            && self.claims.borrow().is_ok();
        (!is_in_vain)
            .then_some(())
            .ok_or(DirectoryError::BeingClaimed)
    }

    /// Asks for a rebuild, unless somebody has done so since the damage was seen.
    pub(super) fn repair(&self, damage: Damage) {
        self.known().found = Some(damage);
        self.want_claim();
    }

    /// Whether the directory can be believed after its claim. Of damage only that is noted which Redis does not show.
    async fn is_believed(&self) -> Result<bool, DirectoryError> {
        let reached = self.known().reached;
        let seen = self.directory.observe().await?;
        if damage(reached, &seen, &self.place.owner) == Some(Damage::WentBack) {
            self.mark(Damage::WentBack, reached).await?;
        }
        Ok(is_whole(reached, &seen))
    }

    /// Notes damage that was found, and marks a directory that went back before `reached`: Redis does not show that,
    /// and the rebuild may take long, or be another leader's.
    async fn mark(&self, damage: Damage, reached: Position) -> Result<(), DirectoryError> {
        self.note_damage(damage);
        if damage == Damage::WentBack {
            let term = self.known().term;
            let doubt = self.directory.doubt(&self.place.owner, term, reached);
            doubt.await?;
        }
        Ok(())
    }

    /// Returns when the claim that is under way, or begins now, was first wanted.
    fn want_claim(&self) -> Instant {
        let since = *self.known().claimed_since.get_or_insert_with(Instant::now);
        self.claim_wanted.notify_one();
        since
    }

    /// Time for which a claim has been under way; `None`: no claim is.
    pub fn claiming(&self) -> Option<Duration> {
        self.known().claimed_since.map(|since| since.elapsed())
    }
}

impl Directories {
    /// Waits until a claim is wanted, and carries it out. Returns when it was wanted, and its outcome.
    pub async fn next_claim(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> (Instant, ClaimOutcome) {
        open.claim_wanted.notified().await;
        let since = *open.known().claimed_since.get_or_insert_with(Instant::now);
        let claimed = self.counted(self.prepare(open, source).await);
        let claimed = claimed.map_err(Arc::new);
        open.known().claimed_since = None;
        let _ = open.claims.send_replace(claimed.clone());
        (since, claimed)
    }

    /// Claims the directory unless its writer is trusted, and rebuilds it unless Redis holds it whole.
    async fn prepare(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let found = open.known().found.take();
        if let Some(damage) = found {
            self.confirm(open, damage).await?;
        }
        if open.writer().is_some() {
            return Ok(());
        }
        open.known().writer = None;
        let writer = self.claim(open, source).await?;
        let needs_rebuild = open.is_behind() || open.known().damage.is_some();
        if needs_rebuild || !open.is_believed().await? {
            self.rebuild(open, &writer, source).await?;
        }
        let mut known = open.known();
        known.writer = Some(writer);
        known.was_claimed = true;
        Ok(())
    }

    /// Gives the writer up, since the directory is damaged, unless that was repaired meanwhile.
    async fn confirm(&self, open: &OpenDirectory, damage: Damage) -> Result<(), DirectoryError> {
        let (reached, is_held) = {
            let known = open.known();
            (known.reached, known.writer.is_some())
        };
        // A count is not taken again: every other damage shows until it is repaired.
        let is_seen_again = !matches!(damage, Damage::Miscounted { .. });
        if is_held && is_seen_again && is_whole(reached, &open.directory.observe().await?) {
            return Ok(());
        }
        open.known().writer = None;
        open.mark(damage, reached).await
    }

    /// A claim that nothing follows would only refuse the true leader's writes: so the Lease is read
    /// before as well as after. Unless the last claim was this leadership's, the caches catch up.
    async fn claim(
        &self,
        open: &OpenDirectory,
        source: &dyn DesiredState,
    ) -> Result<Writer, DirectoryError> {
        let before = open.directory.observe().await?.meta;
        let before = before.map(|meta| meta.term);
        self.leads().await?;
        let place = &open.place;
        let take_over = place.take_over.as_deref();
        let claim = open.directory.claim(&place.owner, &place.api, take_over);
        let (writer, _) = claim.await?;
        self.leads().await?;
        if before.is_none_or(|term| open.known().term != term) {
            source.caught_up().await?;
            let count = self.caught_up.fetch_add(1, Ordering::AcqRel);
            open.known().caught_up = CacheEpoch(count + 1);
        }
        open.known().term = writer.term();
        Ok(writer)
    }

    async fn leads(&self) -> Result<(), DirectoryError> {
        let leads = self.election.is_held().await?;
        leads.then_some(()).ok_or(DirectoryError::NotLeading)
    }

    async fn rebuild(
        &self,
        open: &OpenDirectory,
        writer: &Writer,
        source: &dyn DesiredState,
    ) -> Result<(), DirectoryError> {
        let stored = open.known_plans().await?;
        let former = if open.is_behind() {
            open.remembered()
        } else if source.is_to_be_carried(&open.api) {
            open.former().await?
        } else {
            Vec::new()
        };
        let namespaces = source.namespaces(&open.api).await?;
        let contents = || Contents {
            plans: source.plans(&open.api, stored),
            entries: source.entries(&open.api, &namespaces, &former),
        };
        let rebuilt = writer.rebuild(contents).await?;
        self.metrics.directory_rebuilds.inc();
        let mut known = open.known();
        known.repaired = known.damage.take();
        known.reached = rebuilt.meta.position();
        drop(known);
        info!(
            namespace = open.api.namespace,
            name = open.api.name,
            generation = rebuilt.meta.generation,
            records = rebuilt.meta.counts.records,
            left_out_as_revoked = rebuilt.left_out.len(),
            "key directory rebuilt"
        );
        Ok(())
    }
}
