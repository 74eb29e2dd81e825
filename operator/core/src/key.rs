//! Rules of one ApiKey: facts, from which [`decide`] makes a verdict and the next step.

mod decide;
pub mod facts;
pub mod ledger;
pub mod period;
pub mod step;

pub use decide::{Evidence, decide, published, unwritten_restriction};
