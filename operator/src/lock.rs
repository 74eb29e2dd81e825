//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What it holds. A panic elsewhere does not matter: each change under a lock is one assignment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
