//! Scenarios that count exactly what an account uses of a minute and of a day.

use std::error::Error;
use std::fmt::{self, Debug};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use tokio::time::Instant;
use water_domain::Timestamp;
use water_keystore::UtcDay;

/// Length of the shorter of the two windows in which the product counts requests.
const MINUTE: Duration = Duration::from_secs(60);

/// How often a scenario is run at most.
const TRIES: usize = 3;

/// The time that an answer of a gate took, too long to be the scenario's own: the machine was that slow, or the gate
/// waited in vain.
#[derive(Clone, Copy, Debug)]
pub struct Overdue(pub Duration);

impl fmt::Display for Overdue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an answer took {:?}", self.0)
    }
}

impl Error for Overdue {}

/// Runs a scenario that counts exactly what is used of a minute and of a day. One that failed after more than a minute,
/// with midnight in UTC within it, or because an answer was [`Overdue`], is run again from its beginning; the third
/// failure counts in any case.
pub async fn exactly(scenario: impl AsyncFn() -> Result<()>) {
    let nothing = async || ();
    exactly_in(
        nothing,
        async |_: &()| scenario().await,
        async |_: &()| None,
    )
    .await;
}

/// Runs a scenario as [`exactly`] does, each time in a new world, whose beginning takes no time of it. One that failed
/// is run again also if `excuse` finds a reason in its world.
pub(crate) async fn exactly_in<W>(
    begin: impl AsyncFn() -> W,
    scenario: impl AsyncFn(&W) -> Result<()>,
    excuse: impl AsyncFn(&W) -> Option<String>,
) {
    for tries in 1.. {
        let world = begin().await;
        let (begun, begun_on) = (Instant::now(), today());
        let Err(error) = scenario(&world).await else {
            return;
        };
        let took = begun.elapsed();
        let why = if took >= MINUTE {
            Some("slots of the minute have opened again".to_owned())
        } else if today() != begun_on {
            Some("all of a new day is left".to_owned())
        } else if error.is::<Overdue>() {
            Some("the machine may be slow".to_owned())
        } else {
            excuse(&world).await
        };
        match why {
            Some(why) if tries < TRIES => {
                println!("once more, after {took:?}, as {why}: {error:?}")
            }
            why => panic!("try {tries}, after {took:?}, excuse {why:?}: {error:?}"),
        }
    }
}

/// Fails, in a scenario that may be run again, where a value is not what it has to be.
pub fn equal<T: PartialEq + Debug>(found: T, wanted: T) -> Result<()> {
    ensure!(found == wanted, "{found:?}, not {wanted:?}");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "tests and servers share a clock")]
fn today() -> UtcDay {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.unwrap().as_millis().try_into().unwrap();
    UtcDay::from(Timestamp::from_millis(millis).unwrap())
}
