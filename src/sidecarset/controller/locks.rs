//! Locks that a panic leaves as they are: what they hold is whole after each statement.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
