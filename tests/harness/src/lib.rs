//! Real servers for tests, private to the test process: PostgreSQL, Redis and a Kubernetes control plane on
//! loopback, a network between them that fails on demand, an interceptor of requests, a collector of spans,
//! an identity provider that signs any claims, a client that speaks raw HTTP, and mutations of what it
//! sends. Servers started here die with the process that started them.

mod api_proxy;
pub mod certificates;
mod clock;
mod collector;
mod control_plane;
pub mod cores;
mod disks;
mod http_client;
mod identity_provider;
mod interceptor;
mod key_text;
mod mutation;
mod pgbouncer;
mod port;
mod postgres;
pub mod postgres_proxy;
mod process;
pub mod programs;
mod proxy;
mod redis;
mod redis_cluster;
mod repetition;
mod scratch;
mod wait;

pub use api_proxy::ApiProxy;
pub use clock::Clock;
pub use collector::{Collector, Exported};
pub use control_plane::{AuditEvents, ControlPlane, Options as ControlPlaneOptions};
pub use disks::Disks;
pub use http_client::{Answer, HttpClient};
pub use identity_provider::{IdentityProvider, SigningKey};
pub use interceptor::{Course, Fault, Interceptor, Moment, Protocol, Which};
pub use key_text::find_key_text;
pub use mutation::Mutator;
pub use pgbouncer::PgBouncer;
pub use port::Port;
pub use postgres::{BaseBackup, Database, Postgres};
pub use process::{Process, Program};
pub use proxy::{Network, Proxy};
pub use redis::Redis;
pub use redis_cluster::{Move, RedisCluster};
pub use repetition::{is_unanswered, until_answered};
pub use scratch::directory as scratch_directory;
pub use wait::{Budget, wait_for_steps, wait_until, wait_until_every};
