//! An operator that tries for as long as it may.

use nix::sys::signal::Signal;

use super::{BOTH, delete_namespace, ends, finalizers, with_keys};
use crate::Result;
use crate::gate::{GRACE, Gate};

#[tokio::test]
async fn a_stopping_operator_keeps_all_where_a_gate_may_accept_a_key() -> Result {
    let (world, operator) = with_keys("deleted-silent-gate").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    delete_namespace(&world)?;
    operator.signal(Signal::SIGTERM)?;
    ends(&operator).await?;
    let remedy = "run `water-operator release --all`";
    assert!(operator.log().contains(remedy), "{}", operator.log_end());
    assert_eq!(finalizers(&world)?, BOTH);
    Ok(())
}
