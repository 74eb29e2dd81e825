//! Behaviour of the whole product on a real cluster. `cargo dev test` starts the
//! cluster and tells these tests where it is.

mod confidentiality;
mod contract;
mod cut_off;
mod data;
mod disruption;
mod images;
mod installation;
mod keys;
mod latency;
mod refusals;
mod roles;
mod rollout;
mod settings;
mod sign_in;
mod specification;
mod starvation;
mod traces;
mod traffic;
