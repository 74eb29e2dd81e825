//! A leader that starts with empty caches. An earlier one may have written until the claim of the
//! directory: only a list that begins after the claim shows all of that.

use anyhow::{Context, Result};
use water_harness::{Fault, Moment, Which};

use crate::population::in_force;
use crate::stage::Stage;
use crate::world::PATIENCE;

/// A watch that begins with all ApiKeys.
const LIST: &str =
    "/apikeys?&watch=true&timeoutSeconds=60&allowWatchBookmarks=true&sendInitialEvents=true";
/// A script, such as a claim.
const SCRIPT: &str = "EVALSHA";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_list_of_keys_that_began_before_the_claim_is_given_up_for_another() -> Result<()> {
    let stage = Stage::new("cold-start").await?;
    in_force(&stage, "before", 'a').await?;
    stage.operator.stop(PATIENCE).await?;
    stage.interceptor.recall();
    stage
        .interceptor
        .order(Which::Every(LIST), Moment::BeforeDelivery, Fault::Hang);
    stage.operator.start_again()?;
    let again = async || {
        let requests = stage.interceptor.requests();
        let mut requests = requests.iter();
        for wanted in [LIST, SCRIPT, LIST] {
            let found = requests.any(|request| request.contains(wanted));
            found.then_some(()).context(wanted)?;
        }
        Ok(())
    };
    stage
        .wait("another list after the claim", PATIENCE, again)
        .await?;
    stage.interceptor.recall();
    stage.interceptor.cut();
    in_force(&stage, "after", 'b').await?;
    stage.holds_for_good().await
}
