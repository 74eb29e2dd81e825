//! Times of the operator that are bounded: `cargo dev test` runs these tests one by one, while nothing else runs.

mod silent_store;

type Result = anyhow::Result<()>;
