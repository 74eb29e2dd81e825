//! Background tasks whose end is always seen.

use std::collections::HashMap;

use tokio::task::{Id, JoinSet};

/// The background tasks of a process. None of them may end before the process does.
#[derive(Debug, Default)]
pub struct Tasks {
    running: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

/// A background task that returned or panicked.
#[derive(Debug, thiserror::Error)]
#[error("the background task `{name}` ended")]
pub struct TaskEnded {
    /// Name that was given to [`Tasks::spawn`].
    pub name: &'static str,
    /// The panic, if it was one; its message went to standard error.
    #[source]
    pub panic: Option<tokio::task::JoinError>,
}

impl Tasks {
    /// Starts a task that runs as long as the process.
    pub fn spawn(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let handle = self.running.spawn(work);
        self.names.insert(handle.id(), name);
    }

    /// Waits until a task ends, which is a failure. Without tasks it waits for ever.
    pub async fn ended(&mut self) -> TaskEnded {
        let (id, panic) = match self.running.join_next_with_id().await {
            None => return std::future::pending().await,
            Some(Ok((id, ()))) => (id, None),
            Some(Err(panic)) => (panic.id(), Some(panic)),
        };
        let name = self.names.remove(&id).unwrap_or("unnamed");
        TaskEnded { name, panic }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_or_panics_is_named() {
        let mut tasks = Tasks::default();
        tasks.spawn("forever", std::future::pending());
        tasks.spawn("short", async {});
        assert_eq!(
            tasks.ended().await.to_string(),
            "the background task `short` ended"
        );
        tasks.spawn("broken", async { panic!("planted") });
        let ended = tasks.ended().await;
        assert_eq!(ended.name, "broken");
        assert!(ended.panic.is_some());
    }
}
