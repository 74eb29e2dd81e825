//! The identity provider (OpenID Connect Core 1.0).

mod client;

pub use client::{Client, Issuer};
