//! Behaviour of the whole product on a real cluster. `cargo dev test` starts the cluster and gives these tests
//! its addresses.

mod chart;
mod clients;
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
mod requests;
mod roles;
mod rollout;
mod settings;
mod sign_in;
mod specification;
mod starvation;
mod traces;
mod traffic;
