//! The portal against a real Redis and an identity provider that signs whatever a test gives it. The
//! API server is away: nothing here needs it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod attacks;
mod names;
mod outages;
mod rollout;
mod running;
mod sessions;
mod sign_in;
mod sign_out;
mod tokens;
