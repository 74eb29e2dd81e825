//! Access to Redis: key names, the key directory that the operator writes and every gate holds in memory, the limiter,
//! and what account holders see of both.
//!
//! The operator opens a [`Directory`], claims it and so gets a [`Writer`]. A gate keeps a [`Replica`] and asks a
//! [`Limiter`], behind which a [`Standby`] decides while Redis cannot. Both sides share [`Record`], and every name
//! comes from an [`Instance`].

mod acl;
mod allowance;
pub mod connection;
mod directory;
mod failure;
mod keys;
mod limiter;
mod owner;
mod quota;
mod record;
mod sessions;
pub mod usage;

pub use acl::{PasswordHash, redis_acl};
pub use allowance::{Allowance, Allowances, Reply, Reservation};
pub use connection::{Connection, ConnectionSettings, InvalidConnectionSettings};
pub use directory::claimed_directory::Position;
pub use directory::contents::{Contents, Entry, StoredEntry};
pub use directory::declaration::{Declaration, DeclarationReceipt, HashRefusal, Origin};
pub use directory::lease::{GateLease, Leases, MARGIN, Renewal};
pub use directory::meta::{Counts, Meta, Observation};
pub use directory::owner_snapshot::OwnerSnapshot;
pub use directory::rebuild::Rebuilt;
pub use directory::replica::{GateIdentity, Replica, ReplicaStatus, View};
pub use directory::writer::Writer;
pub use directory::{Directory, GateRights, WriteError};
pub use failure::{Reason, StoreError};
pub use keys::{Instance, InvalidInstance, WebName};
pub use limiter::{Decision, Limiter, Standby, StandbyStatus, TooManyAccounts, Window};
pub use owner::Owner;
pub use quota::Quotas;
pub use record::{KeyState, Record, Validity};
pub use sessions::{SessionKeys, SessionStart, Sessions};
pub use usage::{Usage, UtcDay};
