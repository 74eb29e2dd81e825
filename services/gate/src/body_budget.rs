//! Memory bound of all answers in forms other than JSON. A page of a history has up to 900 KiB, and stays in memory
//! until its client has read it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use water_http::Problem;

/// All such bodies of a gate, in KiB.
const TOTAL: u32 = 128 * 1024;
/// Largest body, in KiB: the bound of an exchange.
const LARGEST: u32 = 1024;
/// Time that a request waits for room.
const PATIENCE: Duration = Duration::from_secs(1);

/// Free memory, in KiB. Clones share it.
#[derive(Clone, Debug)]
pub struct BodyBudget(Arc<Semaphore>);

/// Room for one body of any size, until its size is known.
#[derive(Debug)]
pub struct Room(OwnedSemaphorePermit);

/// The budget is used up.
#[derive(Debug, thiserror::Error)]
#[error("the answers that clients have not read yet take all of the memory for them")]
struct NoRoom;

impl Default for BodyBudget {
    fn default() -> Self {
        Self::of_kib(TOTAL)
    }
}

impl BodyBudget {
    /// Makes a budget of `total` KiB; at least 1024, the largest body.
    pub fn of_kib(total: u32) -> Self {
        Self(Arc::new(Semaphore::new(total.max(LARGEST) as usize)))
    }

    /// Reserves room for the largest body; 503 if a second passes without any.
    pub async fn reserve(&self) -> Result<Room, Problem> {
        let room = Arc::clone(&self.0).acquire_many_owned(LARGEST);
        match timeout(PATIENCE, room).await {
            Ok(Ok(room)) => Ok(Room(room)),
            _ => Err(Problem::upstream_unavailable().caused_by(NoRoom)),
        }
    }
}

impl Room {
    /// Returns the same body, which uses its own size of the budget until the last of it is sent.
    pub fn hold(mut self, body: Bytes) -> Bytes {
        let size = body.len().div_ceil(1024);
        match self.0.split(size) {
            Some(room) if size > 0 => Bytes::from_owner(BudgetedBody { body, _room: room }),
            _ => body,
        }
    }
}

struct BudgetedBody {
    body: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BudgetedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(budget: &BodyBudget) -> usize {
        budget.0.available_permits()
    }

    #[tokio::test]
    async fn a_body_takes_its_own_size_until_all_of_it_is_gone() {
        let budget = BodyBudget::default();
        let room = budget.reserve().await.unwrap();
        assert_eq!(free(&budget), (TOTAL - LARGEST) as usize);
        let mut body = room.hold(Bytes::from(vec![b'x'; 2 * 1024 + 1]));
        assert_eq!(free(&budget), TOTAL as usize - 3);
        let first = body.split_to(1024);
        drop(body);
        assert_eq!((first.len(), free(&budget)), (1024, TOTAL as usize - 3));
        drop(first);
        assert_eq!(free(&budget), TOTAL as usize);
    }

    #[tokio::test]
    async fn an_empty_body_takes_nothing() {
        let budget = BodyBudget::default();
        let body = budget.reserve().await.unwrap().hold(Bytes::new());
        assert_eq!((body.len(), free(&budget)), (0, TOTAL as usize));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_a_second_for_room_and_is_503_then() {
        let budget = BodyBudget::default();
        let mut rooms = Vec::new();
        for _ in 0..TOTAL / LARGEST {
            rooms.push(budget.reserve().await.unwrap());
        }
        let refused = budget.reserve().await.unwrap_err();
        assert_eq!(refused.code(), water_http::Code::UpstreamUnavailable);
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve().await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(rooms.pop());
        assert!(waiting.await.unwrap());
    }
}
