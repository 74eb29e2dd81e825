//! Everything about a public answer: problems, query rules, the identity header, representations.
//!
//! Depends on HTTP and warp, and on neither SQL nor Redis. A service's routes are warp filters whose handlers return
//! `Result<Representation, Problem>`; [`service()`] puts them behind the identity check and turns their results into
//! bytes, headers and one line of the access log; [`Backend`] is the frame in which all services behind the gate run.

pub mod access;
pub mod backend;
pub mod buckets;
pub mod client_address;
pub mod clock_skew;
pub mod csv;
pub mod deprecation;
pub mod format;
pub mod head;
pub mod identity;
pub mod language;
pub mod problem;
pub mod query;
pub mod representation;
pub mod request_head;
pub mod request_id;
pub mod route;
pub mod service;
pub mod span;
pub mod trace_context;
mod weights;

pub use access::Access;
pub use backend::{Backend, Config as BackendConfig};
pub use buckets::Buckets;
pub use client_address::TrustedProxies;
pub use clock_skew::ClockSkew;
pub use head::Head;
pub use identity::{Identity, IdentityKey, Signer, VerifiedIdentity, Verifier};
pub use language::Language;
pub use problem::{Code, Problem, ProblemBody};
pub use query::Query;
pub use representation::Representation;
pub use request_head::RequestHead;
pub use request_id::{RequestId, RequestIds};
pub use route::{Route, get};
pub use service::{format, identity, service};
pub use span::{HttpSpan, Spans};
pub use trace_context::{SpanId, TraceContext, TraceId};
pub use water_runtime::json;
