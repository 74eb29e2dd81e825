//! Property that every error of a store has.

/// A failure that did not come from the client.
pub trait Fault: std::error::Error + Send + Sync + 'static {
    /// Whether the same request may succeed later: a dependency is away, slow or overloaded.
    /// Otherwise it is a bug, and trying again is useless.
    fn is_transient(&self) -> bool;
}
