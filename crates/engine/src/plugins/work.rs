//! How much work a decision was, counted in tests only: of a hostile object the work may grow with its size, and no faster.

/// Counts steps.
#[cfg(not(test))]
pub const fn done(_steps: usize) {}

#[cfg(test)]
pub use counted::{done, of};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static DONE: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts steps.
    pub fn done(steps: usize) {
        DONE.with(|done| done.set(done.get() + steps));
    }

    /// The steps of this work, with its result.
    pub fn of<T>(work: impl FnOnce() -> T) -> (usize, T) {
        DONE.with(|done| done.set(0));
        let result = work();
        (DONE.with(Cell::get), result)
    }
}
