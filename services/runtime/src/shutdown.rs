//! Stop of a process: asked to stop, then serving on for a while, then draining.

use tokio::sync::watch;

/// Stage of a process. Only ever goes forward.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Normal work.
    Running,
    /// Unready, but clients may not have heard yet: everything is served, with `Connection: close`.
    Stopping,
    /// No new connections; open ones end after the request under way.
    Draining,
}

/// The process' stage, shared by all its parts.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<Stage>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(Stage::Running))
    }
}

impl Shutdown {
    /// Advances to a stage; going back does nothing.
    pub fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|current| {
            let later = stage > *current;
            *current = stage.max(*current);
            later
        });
    }

    /// Returns the stage at this moment.
    pub fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    /// Waits until the stage is reached or passed.
    pub async fn reached(&self, stage: Stage) {
        // An error would mean that no sender is left, and this one is.
        let _ = self
            .0
            .subscribe()
            .wait_for(|current| *current >= stage)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_only_go_forward_and_wake_those_who_wait() {
        let shutdown = Shutdown::default();
        let waiter = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.reached(Stage::Stopping).await }
        });
        shutdown.advance(Stage::Draining);
        shutdown.advance(Stage::Stopping);
        waiter.await.unwrap();
        assert_eq!(shutdown.stage(), Stage::Draining);
    }
}
