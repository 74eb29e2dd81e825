//! Attempts to connect, of which the next begins while the one before goes on (RFC 8305, section 5): a slow handshake
//! is waited for, and one whose packets are lost is not.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::timeout;

use super::UpstreamFailure;

/// Time until the next attempt: a pod on the same network accepts in milliseconds or not at all. If a pod's node is
/// down, the next attempt may reach another.
pub(super) const EVERY: Duration = Duration::from_millis(100);
/// Time until an attempt is given up: just before the second after it, so that a request holds two sockets at most.
const GIVEN_UP: Duration = Duration::from_millis(190);

/// Returns the first connection that is made, to one address after the other, within `intervals`. Ends early when the
/// last attempt at every address was refused. The bound is a number and no time: a machine that stands still for a
/// second lets no pod answer.
pub(super) async fn first_of<T, F: Future<Output = io::Result<T>>>(
    addresses: &[SocketAddr],
    intervals: u32,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, UpstreamFailure> {
    let attempt = async |address| match timeout(GIVEN_UP, connect(address)).await {
        Ok(outcome) => (address, outcome),
        Err(_) => pending().await,
    };
    let (mut attempts, mut refused) = (FuturesUnordered::new(), BTreeSet::new());
    let mut next = addresses.iter().copied().cycle();
    let mut passed = 0;
    while passed < intervals {
        attempts.extend(next.next().map(&attempt));
        match timeout(EVERY, attempts.next()).await {
            Ok(Some((_, Ok(connection)))) => return Ok(connection),
            Ok(Some((address, Err(refusal)))) => {
                refused.insert(address);
                if refused.len() == addresses.len() {
                    return Err(UpstreamFailure::Connect(refusal));
                }
            }
            Ok(None) | Err(_) => passed += 1,
        }
    }
    Err(UpstreamFailure::ConnectTooSlow)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{Instant, sleep};

    use super::*;

    /// Answer to an attempt, after a time.
    enum Answer {
        Accepted(u64),
        Refused(u64),
        Lost,
    }

    use Answer::{Accepted, Lost, Refused};

    /// Makes attempts at two addresses, which are answered like this in turn; the last answer repeats. Returns the
    /// number of the attempt that connected, or the reason of the failure, and the milliseconds until then.
    async fn connect(answers: &[Answer]) -> (Result<usize, &'static str>, u128) {
        let addresses = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let (begun, made) = (Instant::now(), AtomicUsize::new(0));
        let connection = first_of(&addresses, 9, |_| {
            let number = made.fetch_add(1, Ordering::Relaxed);
            let answer = answers.get(number).or(answers.last()).unwrap();
            async move {
                match answer {
                    Accepted(after) => sleep(Duration::from_millis(*after)).await,
                    Refused(after) => {
                        sleep(Duration::from_millis(*after)).await;
                        return Err(io::ErrorKind::ConnectionRefused.into());
                    }
                    Lost => pending().await,
                }
                Ok(number)
            }
        });
        let outcome = connection.await.map_err(|failure| failure.reason());
        (outcome, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_handshake_is_waited_for_beside_the_next() {
        assert_eq!(connect(&[Accepted(150)]).await, (Ok(0), 150));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_packet_costs_one_interval() {
        assert_eq!(connect(&[Lost, Accepted(1)]).await, (Ok(1), 101));
        assert_eq!(connect(&[Lost, Lost, Accepted(1)]).await, (Ok(2), 201));
        assert_eq!(connect(&[Lost]).await, (Err("connect_slow"), 900));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_costs_nothing_and_ends_it_where_every_address_refuses() {
        assert_eq!(connect(&[Refused(1), Accepted(1)]).await, (Ok(1), 2));
        assert_eq!(connect(&[Refused(1)]).await, (Err("connect"), 2));
        // The first address refuses again and again, and the second has its time.
        let one_refuses = [
            Refused(1),
            Lost,
            Refused(1),
            Lost,
            Refused(1),
            Accepted(150),
        ];
        assert_eq!(connect(&one_refuses).await, (Ok(5), 353));
        // The first refuses late, when the second is being asked, and is asked again.
        let refused_twice = [Refused(120), Accepted(60), Lost];
        assert_eq!(connect(&refused_twice).await, (Ok(1), 160));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_in_which_nothing_moves_costs_one_interval() {
        let accepted_late = [Lost, Lost, Lost, Lost, Lost, Lost, Lost, Accepted(1)];
        let stall = async {
            sleep(Duration::from_millis(1)).await;
            tokio::time::advance(Duration::from_secs(1)).await;
        };
        let (outcome, ()) = tokio::join!(connect(&accepted_late), stall);
        assert_eq!(outcome, (Ok(7), 1602));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_holds_two_sockets_at_most() {
        let (open, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let lost = |_| async {
            let _socket = Socket::new(&open, &most);
            pending::<io::Result<()>>().await
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(first_of(&[address], 9, lost).await.is_err());
        assert_eq!(most.into_inner(), 2);
    }

    /// Counts itself while it lives.
    struct Socket<'a>(&'a AtomicUsize);

    impl<'a> Socket<'a> {
        fn new(open: &'a AtomicUsize, most: &AtomicUsize) -> Self {
            let now = open.fetch_add(1, Ordering::Relaxed) + 1;
            most.fetch_max(now, Ordering::Relaxed);
            Self(open)
        }
    }

    impl Drop for Socket<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
