//! A leader that starts with empty caches. An earlier one may have written until the claim of the
//! directory: only a list that begins after the claim shows all of that.

use anyhow::{Context, Result};
use water_harness::{Fault, Moment, Which};
use water_kit::operator::stage::Stage;
use water_kit::operator::world::PATIENCE;

/// A watch that begins with all ApiKeys.
const LIST: &str =
    "/apikeys?&watch=true&timeoutSeconds=60&allowWatchBookmarks=true&sendInitialEvents=true";
/// A script, such as a claim.
const SCRIPT: &str = "EVALSHA";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_list_of_keys_that_began_before_the_claim_is_given_up_for_another() -> Result<()> {
    let stage = Stage::new("cold-start").await?;
    stage.bring("before", 'a').await?;
    stage.operator.stop(PATIENCE).await?;
    stage.interceptor.recall();
    let (which, moment) = (Which::Every(LIST), Moment::BeforeDelivery);
    stage.interceptor.order(which, moment, Fault::Hang);
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
    let what = "another list after the claim";
    stage.wait(what, PATIENCE, again).await?;
    stage.interceptor.recall();
    stage.interceptor.cut();
    stage.bring("after", 'b').await?;
    stage.holds_for_good().await
}
