//! The operator at a real API server and a real Redis, under its own ServiceAccount's rights. There
//! is no node: Deployments are looked at as objects, and tests play the controllers that move them.

mod acknowledgements;
mod commands;
mod conflicts;
mod crd;
mod election;
mod gate;
#[path = "../../src/golden.rs"]
mod golden;
mod installation;
mod key_life;
mod lost_leaders;
mod releases;
mod restrictions;
mod store_faults;
mod validation;
mod world;

type Result = anyhow::Result<()>;
