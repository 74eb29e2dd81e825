//! Behaviour of the whole product on a real cluster. `cargo dev test` starts the cluster and gives these tests
//! its addresses.

mod chart;
mod clients;
mod confidentiality;
mod contract;
mod cut_off;
mod data;
mod images;
mod installation;
mod keys;
mod kustomize;
mod language;
mod long;
mod refusals;
mod requests;
mod roles;
mod rollout;
mod settings;
mod sign_in;
mod specification;
mod traces;
