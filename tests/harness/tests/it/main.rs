//! The harness holds what it promises to the tests that use it.

mod control_plane;
mod http_client;
mod interceptor;
mod postgres_proxy;
mod process;
mod proxy;
mod servers;
