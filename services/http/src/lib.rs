//! Everything about a public answer: problems, query rules, the identity header, representations.
//!
//! Knows HTTP and warp, and neither SQL nor Redis. A service's routes are warp filters whose
//! handlers return `Result<Representation, Problem>`; [`service()`] puts them behind the identity
//! check and turns what they return into bytes, headers and one line of the access log; [`Backend`]
//! is the frame that all services behind the gate run in.

pub mod access;
pub mod backend;
pub mod buckets;
pub mod client_address;
pub mod clock_skew;
pub mod format;
pub mod head;
pub mod identity;
pub mod problem;
pub mod query;
pub mod received;
pub mod representation;
pub mod request_id;
pub mod route;
pub mod service;
pub mod span;
pub mod trace_context;
pub mod weights;

pub use access::Access;
pub use backend::{Backend, Config as BackendConfig};
pub use buckets::Buckets;
pub use client_address::TrustedProxies;
pub use clock_skew::ClockSkew;
pub use head::Head;
pub use identity::{Identity, IdentityKey, Signer, Verifier, Vouched};
pub use problem::{Code, Problem, ProblemBody};
pub use query::Query;
pub use received::Received;
pub use representation::Representation;
pub use request_id::{RequestId, RequestIds};
pub use route::get;
pub use service::{format, identity, query, service};
pub use span::{HttpSpan, Spans};
pub use trace_context::{SpanId, TraceContext, TraceId};
