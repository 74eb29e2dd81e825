//! The real gate as a process, before a real Redis and a service that records what it sees, or the real
//! history service.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

// Tests begin in the order of their names: this one waits for a minute, beside the others.
mod all_pages;
mod attacks;
mod authentication;
mod clocks;
mod confidentiality;
mod cors;
mod description;
mod directory_faults;
mod exhaustion;
mod failures;
mod formats;
mod forwarding;
mod fuzz;
mod limits;
mod lost_node;
mod name_server;
mod names;
mod observation;
mod order;
mod outages;
mod peer;
mod recorder;
mod revocation;
mod services;
mod site;
mod spans;
mod stopping;
mod usage;
mod whole;
