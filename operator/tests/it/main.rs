//! The operator at a real API server and a real Redis, under its own ServiceAccount's rights. There
//! is no node: Deployments are looked at as objects, and tests play the controllers that move them.

mod acknowledgements;
mod adoption;
mod advice;
mod askers;
mod audit;
mod commands;
mod conflicts;
mod crd;
mod doubts;
mod earlier_state;
mod election;
mod every_gate;
mod former;
mod gate;
mod gate_pods;
mod gate_process;
#[path = "../../src/golden.rs"]
mod golden;
mod hindrances;
mod installation;
mod key_life;
mod listings;
mod lost_leaders;
mod moved_store;
mod namespace_deletion;
mod portal;
mod portal_rights;
mod refused_secrets;
mod reissue;
mod releases;
mod restrictions;
mod rights;
mod rotation;
mod standby;
mod store_faults;
mod store_refusals;
mod sweep;
mod tenants;
mod turnover;
mod turns;
mod validation;
mod watches;
mod world;

type Result = anyhow::Result<()>;
