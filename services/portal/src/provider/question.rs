//! A question to the identity provider that is asked once at a time: all who need its answer wait for the same one,
//! and no longer than until a common deadline.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::failure::ProviderError;

/// Longest wait for an answer, from the question on.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time after the end of a question without an answer in which nobody asks again.
const REST: Duration = Duration::from_secs(2);

type Answer<T> = Result<T, ProviderError>;

/// A question with its last answers.
#[derive(Debug)]
pub struct Question<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    /// The last answer, and its time.
    answer: Option<(T, Instant)>,
    /// The failure of the last question, and the time of its end.
    failure: Option<(ProviderError, Instant)>,
    running: Option<Running<T>>,
}

/// A question that has no answer yet.
#[derive(Clone, Debug)]
struct Running<T> {
    deadline: Instant,
    answer: watch::Receiver<Option<Answer<T>>>,
}

impl<T> Default for Question<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            answer: None,
            failure: None,
            running: None,
        })))
    }
}

impl<T: Clone + Send + Sync + 'static> Question<T> {
    /// Returns an answer of at most this age: the last one, or that to a question which is asked now or already. After a
    /// question that failed, its failure is the answer for two seconds.
    pub async fn answer<F>(&self, age: Duration, ask: impl FnOnce() -> F) -> Answer<T>
    where
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        let mut running = {
            let mut state = lock(&self.0);
            if let Some(known) = state.known(age) {
                return known;
            }
            match &state.running {
                Some(running) => running.clone(),
                None => state.running.insert(self.begin(ask())).clone(),
            }
        };
        let answered = running.answer.wait_for(Option::is_some);
        match timeout_at(running.deadline, answered).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Err(ProviderError::Slow)),
            Ok(Err(_)) | Err(_) => Err(ProviderError::Slow),
        }
    }

    /// Returns the last answer, however old it is.
    pub fn last(&self) -> Option<T> {
        let state = lock(&self.0);
        state.answer.as_ref().map(|(answer, _)| answer.clone())
    }

    /// Asks in the background, so that the question goes on for the others when one of them leaves.
    fn begin(&self, question: impl Future<Output = Answer<T>> + Send + 'static) -> Running<T> {
        let (sender, answer) = watch::channel(None);
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            let answer = question.await;
            lock(&shared).end(answer.clone(), Instant::now());
            sender.send_replace(Some(answer));
        });
        let deadline = Instant::now() + PATIENCE;
        Running { deadline, answer }
    }
}

impl<T: Clone> State<T> {
    fn known(&self, age: Duration) -> Option<Answer<T>> {
        let answer = self.answer.as_ref().filter(|(_, at)| at.elapsed() < age);
        let failure = self.failure.as_ref().filter(|(_, at)| at.elapsed() < REST);
        match (answer, failure) {
            (Some((answer, _)), _) => Some(Ok(answer.clone())),
            (None, Some((failure, _))) => Some(Err(failure.clone())),
            (None, None) => None,
        }
    }

    fn end(&mut self, answer: Answer<T>, now: Instant) {
        self.running = None;
        match answer {
            Ok(answer) => {
                self.answer = Some((answer, now));
                self.failure = None;
            }
            Err(failure) => self.failure = Some((failure, now)),
        }
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// A question that counts how often it is asked, and is answered after so many seconds.
    #[derive(Default)]
    struct Slow {
        question: Question<u32>,
        count: Arc<AtomicU32>,
    }

    impl Slow {
        async fn answer(&self, age: Duration, seconds: u64, answer: Answer<u32>) -> Answer<u32> {
            let count = Arc::clone(&self.count);
            let ask = || async move {
                count.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(seconds)).await;
                answer
            };
            self.question.answer(age, ask).await
        }

        fn count(&self) -> u32 {
            self.count.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_wait_for_one_answer_and_it_counts_for_its_age() {
        let slow = Slow::default();
        let answers = join_all((0..10).map(|_| slow.answer(MINUTE, 2, Ok(7)))).await;
        assert!(answers.into_iter().all(|answer| answer.unwrap() == 7));
        sleep(MINUTE / 2).await;
        assert_eq!(slow.answer(MINUTE, 0, Ok(8)).await.unwrap(), 7);
        assert_eq!(slow.count(), 1);
        assert_eq!(slow.answer(MINUTE / 2, 0, Ok(8)).await.unwrap(), 8);
        assert_eq!(slow.question.last(), Some(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_hangs_costs_each_three_seconds_at_most_and_later_ones_none() {
        let slow = Slow::default();
        let begun = Instant::now();
        let wait = async |after: u64| {
            sleep(Duration::from_secs(after)).await;
            assert!(
                slow.answer(MINUTE, 8, Err(ProviderError::Large))
                    .await
                    .is_err()
            );
            begun.elapsed().as_secs()
        };
        let ended = join_all([wait(0), wait(0), wait(1), wait(5)]).await;
        assert_eq!(ended, [3, 3, 3, 5]);
        // It ends after eight seconds, and rests for two from then on.
        let ended = join_all([wait(4), wait(4)]).await;
        assert_eq!((ended, slow.count()), (vec![9, 9], 1));
        assert_eq!((wait(1).await, slow.count()), (13, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_forgets_no_answer() {
        let slow = Slow::default();
        assert_eq!(slow.answer(MINUTE, 0, Ok(7)).await.unwrap(), 7);
        let failed = slow
            .answer(Duration::ZERO, 0, Err(ProviderError::Large))
            .await;
        assert!(matches!(failed, Err(ProviderError::Large)));
        assert_eq!(slow.answer(MINUTE, 0, Ok(8)).await.unwrap(), 7);
        assert_eq!(slow.question.last(), Some(7));
    }
}
