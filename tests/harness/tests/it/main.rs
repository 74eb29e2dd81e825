//! The harness holds what it promises to the tests that stand on it.

mod control_plane;
mod http_client;
mod interceptor;
mod postgres;
mod postgres_proxy;
mod process;
mod proxy;
mod redis;
