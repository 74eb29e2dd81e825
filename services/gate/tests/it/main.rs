//! The real gate as a process, with a real Redis and a service that records its requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod attacks;
mod authentication;
mod confidentiality;
mod cors;
mod deadline;
mod description;
mod exhaustion;
mod failures;
mod formats;
mod forwarding;
mod fuzz;
mod language;
mod limits;
mod lost_node;
mod name_server;
mod names;
mod observation;
mod outages;
mod services;
mod spans;
mod stopping;
mod whole;
