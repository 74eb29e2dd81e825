//! Concurrency limit of bulk pages: one at a time for an account, and few together, so that pages of JSON find
//! connections.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use water_domain::AccountId;

/// Longest wait of a request for its turn.
const WAIT: Duration = Duration::from_secs(1);

/// Bulk pages in progress.
pub struct Turns {
    together: Arc<Semaphore>,
    accounts: Mutex<HashSet<AccountId>>,
    /// Notified whenever an account's page ends.
    ended: Notify,
}

/// A bulk page in progress.
pub struct Turn {
    _own: Own,
    _together: OwnedSemaphorePermit,
}

impl Turns {
    /// Allows at most this many pages together.
    pub fn new(together: usize) -> Self {
        Self {
            together: Arc::new(Semaphore::new(together)),
            accounts: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Waits for the account's turn; `None` after a second.
    pub async fn take(self: Arc<Self>, account: &AccountId) -> Option<Turn> {
        let taking = async {
            let own = Arc::clone(&self).own(account).await;
            let together = Arc::clone(&self.together).acquire_owned().await;
            Turn {
                _own: own,
                _together: together.expect("nobody closes it"),
            }
        };
        timeout(WAIT, taking).await.ok()
    }

    /// Waits until the account has no other page in progress.
    async fn own(self: Arc<Self>, account: &AccountId) -> Own {
        loop {
            let ended = self.ended.notified();
            if self.accounts().insert(account.clone()) {
                return Own {
                    turns: Arc::clone(&self),
                    account: account.clone(),
                };
            }
            ended.await;
        }
    }

    fn accounts(&self) -> MutexGuard<'_, HashSet<AccountId>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An account's only page.
struct Own {
    turns: Arc<Turns>,
    account: AccountId,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.turns.accounts().remove(&self.account);
        self.turns.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    async fn turn(turns: &Arc<Turns>, account: &str) -> Option<Turn> {
        Arc::clone(turns).take(&account.parse().unwrap()).await
    }

    #[tokio::test]
    async fn an_account_has_one_page_under_way_and_waits_a_second_for_the_next() {
        let turns = Arc::new(Turns::new(2));
        let first = turn(&turns, "acme").await;
        assert!(first.is_some());
        let asked = Instant::now();
        assert!(turn(&turns, "acme").await.is_none());
        assert!(asked.elapsed() >= WAIT);
        assert!(turn(&turns, "other").await.is_some());
        drop(first);
        assert!(turn(&turns, "acme").await.is_some());
    }

    #[tokio::test]
    async fn who_waits_goes_on_as_soon_as_a_page_ends() {
        for next in ["acme", "other"] {
            let turns = Arc::new(Turns::new(1));
            let first = turn(&turns, "acme").await;
            // The next page is requested first, and is waiting when the first one ends.
            let (next, ()) = tokio::join!(turn(&turns, next), async { drop(first) });
            assert!(next.is_some());
        }
    }

    #[tokio::test]
    async fn few_accounts_have_pages_together() {
        let turns = Arc::new(Turns::new(2));
        let pages = (turn(&turns, "a").await, turn(&turns, "b").await);
        assert!(turn(&turns, "c").await.is_none());
        drop(pages);
        assert!(turn(&turns, "c").await.is_some());
    }
}
