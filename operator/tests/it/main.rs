//! Tests of the operator at a real API server and a real Redis, under its own ServiceAccount's rights. There is no
//! node: Deployments are read as objects, and tests play the controllers that move them.

mod acknowledgements;
mod adoption;
mod advice;
mod api_namespace_deletion;
mod audit;
mod commands;
mod conflicts;
mod crd;
mod doubts;
mod earlier_state;
mod election;
mod every_gate;
mod faults;
mod foreign_status;
mod gate_pods;
mod hindrances;
mod installation;
mod key_life;
mod listings;
mod loading_gate;
mod long;
mod lost_leaders;
mod measurements;
mod moved_store;
mod namespace_deletion;
mod policies;
mod portal;
mod portal_rights;
mod refused_secrets;
mod reissue;
mod releases;
mod restrictions;
mod rotation;
mod standby;
mod steps;
mod store_faults;
mod store_refusals;
mod sweep;
mod tenants;
mod validation;
mod watches;

use water_kit::operator::{gate, gate_process, rights, world};

type Result = anyhow::Result<()>;
