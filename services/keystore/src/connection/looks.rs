//! Time for which answers are waited for, counted in checks of the sockets, each called a look.
//!
//! A worker that waits for a core, or that its CPU limit stops, checks late for an answer that came in time: such a
//! pause is one look, however long it is. And one timer serves all questions under way: tokio wakes its driver by a
//! system call for each new timer that fires first, which was one for every second request of a gate.

use std::array::from_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use futures::FutureExt;
use redis::RedisResult;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Looks after which an answer is too late. The first may come at once, so that an answer has a
/// fifteenth of the time less, or all of it.
const LOOKS: usize = 15;

/// Looks of one connection, taken on the runtime that made them.
#[derive(Debug)]
pub(super) struct Looks {
    shared: Arc<Shared>,
    looking: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Questions under way.
    waiting: AtomicUsize,
    /// Notified with the first of them.
    begun: Notify,
    /// Looks taken so far.
    taken: AtomicUsize,
    /// Notified for the questions that were asked [`LOOKS`] looks ago: one entry for each look within.
    late: [Notify; LOOKS],
}

/// A question under way.
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Looks {
    /// Looks for answers that may take `time`. Must be called within a Tokio runtime.
    pub(super) fn for_answers_within(time: Duration) -> Self {
        let shared = Arc::new(Shared {
            waiting: AtomicUsize::new(0),
            begun: Notify::new(),
            taken: AtomicUsize::new(0),
            late: from_fn(|_| Notify::new()),
        });
        let looking = tokio::spawn(look(Arc::clone(&shared), time / LOOKS as u32));
        Self { shared, looking }
    }

    /// The answer, if it comes in time.
    pub(super) async fn answered<T>(
        &self,
        answer: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let _waiting = self.shared.wait();
        let late = &self.shared.late[self.shared.taken.load(Acquire) % LOOKS];
        let (mut answer, late) = (pin!(answer), pin!(late.notified()));
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = late => {}
        }
        // After a pause within the last look the connection has not been read yet.
        yield_now().await;
        let last = answer.now_or_never();
        last.unwrap_or_else(|| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }
}

impl Shared {
    fn wait(&self) -> Waiting<'_> {
        if self.waiting.fetch_add(1, Relaxed) == 0 {
            self.begun.notify_one();
        }
        Waiting(self)
    }
}

/// Looks as long as questions are under way, and rests between them.
async fn look(shared: Arc<Shared>, every: Duration) {
    loop {
        shared.begun.notified().await;
        let mut looks = interval_at(Instant::now() + every, every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shared.waiting.load(Relaxed) > 0 {
            looks.tick().await;
            let taken = shared.taken.load(Relaxed) + 1;
            // Notify first: a question that finds the new number must not be notified of this look.
            shared.late[taken % LOOKS].notify_waiters();
            shared.taken.store(taken, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const TIME: Duration = Duration::from_millis(150);
    const LOOK: Duration = Duration::from_millis(10);

    async fn waited(looks: &Looks) -> Duration {
        let asked = Instant::now();
        let nothing = looks.answered(pending::<RedisResult<()>>()).await;
        assert!(nothing.unwrap_err().is_timeout());
        asked.elapsed()
    }

    #[tokio::test]
    async fn an_answer_has_all_of_its_time_or_one_look_less() {
        let looks = Looks::for_answers_within(TIME);
        let later = async {
            sleep(LOOK / 2).await;
            waited(&looks).await
        };
        let (first, second) = tokio::join!(waited(&looks), later);
        assert!(first >= TIME, "{first:?}");
        // A look that is a little late does not delay the next one.
        assert!(second >= TIME - 2 * LOOK, "{second:?}");
    }

    #[tokio::test]
    async fn a_pause_of_the_worker_is_one_look() {
        let looks = Looks::for_answers_within(TIME);
        let asked = Instant::now();
        let answer = async {
            // Nothing else of this worker runs meanwhile.
            std::thread::sleep(2 * TIME);
            sleep(TIME / 2).await;
            Ok("answer")
        };
        assert_eq!(looks.answered(answer).await.unwrap(), "answer");
        assert!(asked.elapsed() >= 2 * TIME);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_question_that_is_asked_while_a_look_is_taken_has_its_time() {
        let looks = Looks::for_answers_within(TIME / 10);
        let begun = Instant::now();
        while begun.elapsed() < 10 * TIME {
            let answer = async {
                for _ in 0..3 {
                    yield_now().await;
                }
                Ok("answer")
            };
            let before = looks.shared.taken.load(Acquire);
            let outcome = looks.answered(answer).await;
            // A busy machine may hold this question up for all of its looks.
            let looked = looks.shared.taken.load(Acquire) - before;
            let in_time = outcome.is_ok() || looked >= LOOKS - 1;
            assert!(in_time, "late after {looked} looks");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn looks_rest_where_nothing_is_asked() {
        let looks = Looks::for_answers_within(TIME);
        let answer = async { Ok("answer") };
        assert_eq!(looks.answered(answer).await.unwrap(), "answer");
        sleep(3 * LOOK).await;
        let taken = looks.shared.taken.load(Relaxed);
        sleep(3 * LOOK).await;
        assert_eq!(looks.shared.taken.load(Relaxed), taken);
    }
}
