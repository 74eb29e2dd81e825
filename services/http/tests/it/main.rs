//! Whole answers of a service, byte for byte, from a real socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod answers;
mod log;
mod properties;
mod sample;
